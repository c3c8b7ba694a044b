package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestExternaliseEdited: a message that is edited by hand after it was read stays as it was edited.
func TestExternaliseEdited(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for n, size := range []int{5000, 100 << 10} { // the second one's payload is a blob from the start
		body := []byte(`{"content":"` + strings.Repeat("a", size) + `"}`)
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: body})
	}
	kit.Check(t, c.Seal(ctx), c.Close())
	edited := filepath.Join(dir, c.ID().String(), "messages/branch-main", kit.TestID(0).String()+".json")
	done := false
	beside := &hookedFS{FS: s.FS, remove: func(string) {}, open: func(name string) {
		if !done && strings.HasPrefix(name, "blobs/") {
			done = true
			b := kit.Must[[]byte](t)(os.ReadFile(edited))
			kit.Check(t, os.WriteFile(edited, bytes.Replace(b, []byte("aaaa"), []byte("EDIT"), 1), 0o600))
		}
	}}
	other := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithFS(beside), engine.WithTextThreshold(-1)))
	c = kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer c.Close()
	moved := kit.Must[archiving.Result](t)(archiving.Externalise(ctx, c, 1000, false))
	if !done || moved.Messages != 1 {
		t.Errorf("edited meanwhile: %v; %d messages externalised, want 1", done, moved.Messages)
	}
	kit.Check(t, c.Refresh(ctx))
	m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(0)))
	if body := kit.Must[json.RawMessage](t)(m.Body(ctx)); !bytes.Contains(body, []byte("EDIT")) {
		t.Error("the edit is gone")
	}
}

// TestExternaliseArchived: an archived message stays without a file.
func TestExternaliseArchived(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(0), Body: []byte(`{"content":"` + strings.Repeat("a", 5000) + `"}`)})
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	if moved := kit.Must[archiving.Result](t)(archiving.Externalise(ctx, c, 1000, false)); moved.Messages != 1 {
		t.Fatalf("%+v", moved)
	}
	file := filepath.Join(dir, c.ID().String(), "messages/branch-main", kit.TestID(0).String()+".json")
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has a file: %v", err)
	}
	kit.NothingFound(t, "after it", s, checking.Options{ReadData: true})
}
