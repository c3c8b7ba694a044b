package ctxdir_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// TestZeroOptions says what the zero value of each struct of options does: everything, or nothing and an error.
func TestZeroOptions(t *testing.T) {
	ctx := t.Context()
	s, ids := stocked(t, 1)
	id := ids[0]
	c, err := s.Open(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"hello"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	messages, err := c.Active().Range(ctx, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	check := func(o ctxdir.CheckOptions) (err error) {
		for _, err = range s.Check(ctx, o) {
		}
		return err
	}
	both := []uuid.UUID{id}
	for name, refused := range map[string]error{
		"check nothing":        check(ctxdir.CheckOptions{ReadData: true}),
		"check both":           check(ctxdir.CheckOptions{Contexts: both, All: true}),
		"repair nothing":       only(s.Repair(ctx, ctxdir.RepairOptions{})),
		"repair both":          only(s.Repair(ctx, ctxdir.RepairOptions{Contexts: both, All: true})),
		"archive nothing":      only(s.Archive(ctx, ctxdir.ArchiveOptions{})),
		"archive both":         only(s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: both, All: true})),
		"collect nothing":      only(s.Collect(ctx, ctxdir.CollectOptions{})),
		"collect both":         only(s.Collect(ctx, ctxdir.CollectOptions{Contexts: both, All: true})),
		"two grace periods":    only(s.Collect(ctx, ctxdir.CollectOptions{All: true, Grace: time.Hour, NoGrace: true})),
		"due for some":         only(s.Collect(ctx, ctxdir.CollectOptions{Contexts: both, IfDue: true})),
		"due in a dry run":     only(s.Collect(ctx, ctxdir.CollectOptions{All: true, IfDue: true, DryRun: true})),
		"negative grace":       only(s.Collect(ctx, ctxdir.CollectOptions{All: true, Grace: -1})),
		"erase nothing":        only(s.Erase(ctx, id, nil, ctxdir.EraseOptions{})),
		"purge nothing":        only(s.Purge(ctx, ctxdir.PurgeOptions{})),
		"purge items and all":  only(s.Purge(ctx, ctxdir.PurgeOptions{Items: []uuid.UUID{id}, All: true})),
		"purge all of an age":  only(s.Purge(ctx, ctxdir.PurgeOptions{Age: time.Hour, All: true})),
		"negative age":         only(s.Purge(ctx, ctxdir.PurgeOptions{Age: -1})),
		"append to shared":     only(c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{}`)}, ctxdir.WriteOptions{Shared: true})),
		"batch to shared":      only(c.Active().AppendBatch(ctx, nil, ctxdir.WriteOptions{Shared: true})),
		"update at a position": c.Update(ctx, func(*ctxdir.Metadata) error { return nil }, ctxdir.WriteOptions{Position: new(int64(99))}),
		"commit to shared":     only(c.Commit(ctx, func(*ctxdir.Tx) error { return nil }, ctxdir.WriteOptions{Shared: true})),
		"position of nothing":  only(c.Commit(ctx, func(*ctxdir.Tx) error { return nil }, ctxdir.WriteOptions{Position: new(int64(3))})),
		"sequence in a commit": only(c.Commit(ctx, func(tx *ctxdir.Tx) error {
			return tx.Replace("main", messages[0].ID, ctxdir.Draft{Body: []byte(`{}`)}, ctxdir.WriteOptions{Sequence: new(uint64(1))})
		})),
	} {
		if !errors.Is(refused, ctxdir.ErrInvalid) {
			t.Errorf("%s: %v", name, refused)
		}
	}
	if now, err := c.Active().Range(ctx, 0, ctxdir.End); err != nil || len(now) != 3 {
		t.Errorf("%d messages, %v", len(now), err)
	}

	// These act on all, or as the documentation says.
	listed := 0
	for _, err := range s.List(ctx, ctxdir.ListOptions{}) {
		if listed++; err != nil {
			t.Fatal(err)
		}
	}
	if listed != 1 {
		t.Errorf("a list without conditions has %d contexts", listed)
	}
	empty, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil || empty.Active().Name() != "main" {
		t.Fatal(err)
	}
	if _, err := empty.Active().Append(ctx, ctxdir.Draft{}); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("a draft without a body: %v", err)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	// The messages to erase are named, so only those that other branches show are spared.
	gone := []uuid.UUID{messages[1].ID}
	if done, err := s.Erase(ctx, id, gone, ctxdir.EraseOptions{}); err != nil || len(done) == 0 {
		t.Errorf("%v, %v", done, err)
	}
	if _, err := s.Remove(ctx, empty.ID()); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Purge(ctx, ctxdir.PurgeOptions{All: true}); err != nil || len(done) != 1 || !done[0].Purged {
		t.Errorf("%v, %v", done, err)
	}
	if kept, err := s.Settings(); err != nil || kept.StorageMode != "" && kept.StorageMode != ctxdir.StorageLocal {
		t.Errorf("%+v, %v", kept, err)
	}
	to := t.TempDir() + "/legacy.json"
	if done, err := s.Rollback(ctx, id, ctxdir.RollbackOptions{To: to, Force: true}); err != nil || done.Messages == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := s.Rollback(ctx, id, ctxdir.RollbackOptions{}); err == nil {
		t.Error("a context that was never migrated has been rolled back")
	}
	if _, err := s.Migrate(ctx, to, ctxdir.MigrateOptions{}); !errors.Is(err, ctxdir.ErrExist) {
		t.Errorf("migrated onto the context itself: %v", err)
	}
	var body json.RawMessage
	if body, err = messages[0].Body(ctx); err != nil || len(body) == 0 {
		t.Errorf("%s, %v", body, err)
	}
}
