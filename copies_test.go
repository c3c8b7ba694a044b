package ctxdir_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
	"github.com/google/uuid"
)

// TestEnvelope: a message of one store is the same in another one, with its payloads and its time.
func TestEnvelope(t *testing.T) {
	ctx := t.Context()
	from, to := ctxdirtest.New(t, ctxdir.Options{TextThreshold: 100}), ctxdirtest.New(t)
	c, err := from.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := json.RawMessage(`{"role":"user","content":"` + strings.Repeat("text ", 100) + `","n":1.50e2,"k":1,"k":"<&>"}`)
	draft := ctxdir.Draft{
		Body: body, OriginID: "elsewhere", Source: json.RawMessage(`{"tool":"t"}`), References: json.RawMessage(`[{"file":"f"}]`),
	}
	if _, err := c.Active().Append(ctx, draft); err != nil {
		t.Fatal(err)
	}
	was := last(t, c)
	payload := func(string) (io.ReadCloser, int64, error) { return was.Open(payloadsOf(t, was)[0]) }
	other, err := to.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b := other.Active()
	if _, err := b.Append(ctx, ctxdir.Draft{Envelope: was.Envelope()}); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("without the payload: %v", err)
	}
	wrong := func(string) (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("another")), 7, nil }
	if _, err := b.Append(ctx, ctxdir.Draft{Envelope: was.Envelope(), Payload: wrong}); !errors.Is(err, ctxdir.ErrDamaged) {
		t.Errorf("with another payload: %v", err)
	}
	if _, err := b.Append(ctx, ctxdir.Draft{Envelope: json.RawMessage(`{"id":1}`)}); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("with no envelope: %v", err)
	}
	if n, err := b.Len(ctx); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	for range 2 { // the second one is a retry
		if _, err := b.Append(ctx, ctxdir.Draft{Envelope: was.Envelope(), Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	is := last(t, other)
	got, err := is.Body(ctx)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%v, %s", err, got)
	}
	if is.ID != was.ID || !is.StoredAt.Equal(was.StoredAt) || is.OriginID != was.OriginID || !bytes.Equal(is.Source, was.Source) ||
		!bytes.Equal(is.References, was.References) || !bytes.Equal(is.Stored, was.Stored) {
		t.Errorf("%+v, wanted %+v", is, was)
	}
	// One that nobody has: the message is stored without it.
	without := ctxdir.Draft{Body: json.RawMessage(`{"x":"` + strings.Repeat("lost ", 100) + `"}`)}
	if err := c.Active().Replace(ctx, was.ID, without); err != nil {
		t.Fatal(err)
	}
	nobody := func(string) (io.ReadCloser, int64, error) { return nil, 0, fs.ErrNotExist }
	next := last(t, c)
	if err := b.Replace(ctx, was.ID, ctxdir.Draft{Envelope: next.Envelope(), Payload: nobody}); err != nil {
		t.Fatal(err)
	}
	is = last(t, other)
	if _, err := is.Body(ctx); err == nil || !is.StoredAt.Equal(next.StoredAt) {
		t.Errorf("%v, %v, wanted %v", err, is.StoredAt, next.StoredAt)
	}
	// A time in the future does not count.
	future := bytes.Replace(next.Envelope(), []byte(`"stored_at":"20`), []byte(`"stored_at":"21`), 1)
	future = bytes.Replace(future, []byte(was.ID.String()), []byte(uuid.NewString()), 1)
	if _, err := b.Append(ctx, ctxdir.Draft{Envelope: future, Payload: nobody}); err != nil {
		t.Fatal(err)
	}
	if at := last(t, other).StoredAt; at.After(time.Now()) {
		t.Errorf("stored at %v", at)
	}
}

func last(t *testing.T, c *ctxdir.Context) *ctxdir.Message {
	t.Helper()
	m, err := c.Active().Last(t.Context(), 1)
	if err != nil || len(m) != 1 || m[0].Unavailable != nil {
		t.Fatal(m, err)
	}
	return m[0]
}

func payloadsOf(t *testing.T, m *ctxdir.Message) []ctxdir.Payload {
	t.Helper()
	all, err := m.Payloads()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// TestUnavailableDrafts: messages that another store cannot show keep their positions, before and after they are sealed. A lost
// one can be stored again, an erased one stays erased.
func TestUnavailableDrafts(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s, err := ctxdir.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	erased, lost := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	said := func(text string) json.RawMessage { return json.RawMessage(`{"role":"user","content":"` + text + `"}`) }
	drafts := []ctxdir.Draft{
		{Body: said("one")}, {ID: erased, Unavailable: ctxdir.ErrErased}, {ID: lost, Unavailable: ctxdir.ErrDamaged}, {Body: said("four")},
	}
	if _, err := c.Active().AppendBatch(ctx, drafts[1:2]); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Active().Len(ctx); n != 0 || err != nil {
		t.Errorf("a batch stored it: %d, %v", n, err)
	}
	for range 2 { // the second one is a retry
		if _, err := c.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Append("main", drafts[:3]...) }, ctxdir.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		drafts[0].ID = first(t, c).ID
	}
	if _, err := c.Active().Append(ctx, drafts[3]); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		all, err := c.Active().Range(ctx, 0, ctxdir.End)
		if err != nil || len(all) != 4 {
			t.Fatalf("%s: %d messages, %v", when, len(all), err)
		}
		if all[0].Unavailable != nil || all[3].Unavailable != nil || all[1].ID != erased || all[2].ID != lost ||
			!errors.Is(all[1].Unavailable, ctxdir.ErrErased) || !errors.Is(all[2].Unavailable, ctxdir.ErrDamaged) ||
			errors.Is(all[2].Unavailable, ctxdir.ErrErased) {
			t.Errorf("%s: %v, %v", when, all[1], all[2])
		}
		var rows []ctxdir.Row
		for r, err := range c.Active().Rows(ctx, 1, 3) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		if len(rows) != 2 || rows[0].ID != erased || !rows[0].Erased || !rows[0].Gone || rows[1].ID != lost || rows[1].Erased || !rows[1].Gone {
			t.Errorf("%s: rows %+v", when, rows)
		}
		for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true, ReadData: true}) {
			if err != nil || f.ID != lost {
				t.Errorf("%s: %+v, %v", when, f, err)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "messages", "branch-main", "*")); len(files) != 2 {
			t.Errorf("%s: files %v", when, files)
		}
	}
	flush := func() {
		t.Helper()
		if err := c.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	look("in the log")
	if err := c.Admin().Seal(ctx); err != nil {
		t.Fatal(err)
	}
	look("in a segment")
	if _, err := c.Active().Append(ctx, ctxdir.Draft{ID: lost, Body: said("three")}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Active().Message(ctx, lost)
	if err != nil || m.Unavailable != nil || m.Position != 2 {
		t.Errorf("stored again: %+v, %v", m, err)
	}
	// Another line gets a message that is erased: it is erased there too.
	if _, err := c.NewBranch(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	envelope := bytes.Replace(m.Envelope(), []byte(lost.String()), []byte(erased.String()), 1)
	if _, err := c.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Append("other", ctxdir.Draft{Envelope: envelope}) }); err != nil {
		t.Fatal(err)
	}
	other, err := c.Branch("other")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := other.Message(ctx, erased); err == nil && !errors.Is(m.Unavailable, ctxdir.ErrErased) {
		t.Errorf("%+v", m)
	}
	if all, err := other.Range(ctx, 0, 1); err != nil || len(all) != 1 || !errors.Is(all[0].Unavailable, ctxdir.ErrErased) {
		t.Errorf("%v, %v", all, err)
	}
}

func first(t *testing.T, c *ctxdir.Context) *ctxdir.Message {
	t.Helper()
	m, err := c.Active().Range(t.Context(), 0, 1)
	if err != nil || len(m) != 1 {
		t.Fatal(m, err)
	}
	return m[0]
}

// TestCommitEdits: what a person changed in a file becomes the next version, once.
func TestCommitEdits(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s, err := ctxdir.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"one", "two"} {
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: json.RawMessage(`{"content":"` + text + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	was := first(t, c)
	path := filepath.Join(dir, c.ID().String(), "messages", "branch-main", was.ID.String()+".json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte("one"), []byte("another"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	commit := c.Summary().Commit
	for _, want := range []int{1, 0} {
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := c.CommitEdits(ctx); n != want || err != nil {
			t.Errorf("%d edits, %v, wanted %d", n, err, want)
		}
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if m := first(t, c); m.Edited || !strings.Contains(string(m.Stored), "another") || !m.StoredAt.After(was.StoredAt) {
		t.Errorf("%+v", m)
	}
	_, rows := c.Changes(ctx, commit)
	for r, err := range rows {
		if err != nil || r.ID != was.ID {
			t.Errorf("changed since: %+v, %v", r, err)
		}
	}
}
