package ctxdir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// tidy compresses old messages, and removes what was removed longer ago than the grace period for good.
func tidy(ctx context.Context, s *ctxdir.Store) error {
	_, err := s.Archive(ctx, ctxdir.ArchiveOptions{All: true, OlderThan: 180 * 24 * time.Hour})
	if err != nil {
		log.Printf("archive: %v", err) // some contexts stay as they are
	}
	_, err = s.Collect(ctx, ctxdir.CollectOptions{All: true})
	return err
}

func ExampleStore_Collect() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	check(c.Active().Rewind(ctx, 1))
	check(tidy(ctx, s))
	for t, err := range s.Trash(ctx, c.ID()) {
		fmt.Println(t.Kind, t.Name, err)
	}
	// Output: line main <nil>
}

// retain lets collections archive messages after 180 days, but for the newest 100 of each branch.
func retain(ctx context.Context, s *ctxdir.Store) error {
	return s.Configure(ctx, func(settings *ctxdir.Settings) error {
		settings.ArchiveAfter, settings.KeepLast = 180*24*time.Hour, 100
		return nil
	})
}

func ExampleStore_Configure() {
	ctx := context.Background()
	s, _, done := temporary("A walk")
	defer done()
	check(retain(ctx, s))
	settings := must(s.Settings())
	fmt.Println(settings.ArchiveAfter, settings.KeepLast)
	// Output: 4320h0m0s 100
}

func ExampleStore_Archive() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	for i := range 100 {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", fmt.Sprintf("Step %d of the walk along the quay.", i))}))
	}
	did := must(s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{c.ID()}}))[0]
	fmt.Println(did.Messages, did.After < did.Before)
	fmt.Println(string(must(c.Active().Last(ctx, 1))[0].Stored))
	back := must(c.Admin().Unarchive(ctx, nil))
	fmt.Println(back.Messages)
	// Output:
	// 100 true
	// {"role":"user","content":"Step 99 of the walk along the quay."}
	// 100
}

// bin moves a context to the trash.
func bin(ctx context.Context, s *ctxdir.Store, id uuid.UUID) (item uuid.UUID, err error) {
	t, err := s.Remove(ctx, id)
	return t.ID, err
}

func ExampleStore_Restore() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	item := must(bin(ctx, s, c.ID()))
	_, err := s.Open(ctx, c.ID())
	fmt.Println(errors.Is(err, ctxdir.ErrNotExist))

	back := must(s.Restore(ctx, item))
	fmt.Println(back.Kind, back.Context == c.ID())
	// Output:
	// true
	// context true
}

// forget removes messages for good, whatever branches show them.
func forget(ctx context.Context, s *ctxdir.Store, id uuid.UUID, messages ...uuid.UUID) error {
	_, err := s.Erase(ctx, id, messages, ctxdir.EraseOptions{Shared: true})
	return err
}

func ExampleStore_Erase() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	at := must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "My password is swordfish.")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Do not tell me.")}))
	check(forget(ctx, s, c.ID(), at.ID))
	check(c.Refresh(ctx))
	for _, m := range must(c.Active().Range(ctx, 0, ctxdir.End)) {
		fmt.Println(m.Position, errors.Is(m.Unavailable, ctxdir.ErrErased))
	}
	// Output:
	// 0 true
	// 1 false
}

func ExampleStore_Backup() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	dir := must(os.MkdirTemp("", "backup-"))
	defer os.RemoveAll(dir)

	to := must(ctxdir.Init(dir))
	defer to.Close()
	copied := must(s.Backup(ctx, c.ID(), to))
	fmt.Println(copied.Messages, copied.Missing)

	same := must(to.Open(ctx, c.ID()))
	defer same.Close()
	list(same.Active())
	// Output:
	// 1 0
	// 0 {"role":"user","content":"Which way?"}
}
