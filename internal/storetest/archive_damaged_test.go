package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestArchiveDamaged: neither an archive nor a merge takes the only whole copy of a message, or the place where it was.
func TestArchiveDamaged(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, kit.Manual(engine.DefaultTextThreshold)...)
	for n := range 12 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, 100+n)})
		kit.Check(t, c.Seal(ctx)) // eight become one
	}
	segments := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "segments", "*")))
	for _, path := range segments {
		b := kit.Must[[]byte](t)(os.ReadFile(path))
		if at := bytes.Index(b, []byte(`"n":110`)); at > 0 {
			b[at+5]++
			kit.Check(t, os.WriteFile(path, b, 0o600))
		}
	}
	_, err := kit.Archive(ctx, c, archiving.Options{})
	if !errors.Is(err, engine.ErrDamaged) {
		t.Errorf("archived: %v", err)
	}
	for n := range 8 { // a merge is due
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(12 + n), Body: []byte(`{"n":200}`)})
		kit.Check(t, c.Seal(ctx))
	}
	read := func(when string, store *engine.Store) {
		again := kit.Must[*engine.Context](t)(store.Context(ctx, c.ID()))
		defer again.Close()
		for i, m := range kit.Load(t, again.Active()) {
			if body, err := m.Body(ctx); err != nil || i < 12 && string(body) != fmt.Sprintf(`{"n":%d}`, 100+i) {
				t.Errorf("%s: message %d: %s, %v", when, i, body, err)
			}
		}
	}
	other := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(dir)))
	defer other.Close()
	read("damaged", other)
	kit.Finish(t, checking.Repair(ctx, other, nil, checking.Options{}))
	files := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "messages", "branch-main", "*")))
	if len(files) != 9 { // those that are not archived, and the one that was the only copy
		t.Errorf("%d files", len(files))
	}
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	kit.Check(t, os.RemoveAll(filepath.Join(dir, "messages")))
	read("repaired and archived", other)
}
