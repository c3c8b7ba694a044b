package erase_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// A segment in the trash has one damaged message, and others that are whole. An erase of a message that it never had
// removes it.
func TestTrashedSegment(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for _, text := range []string{"one", "damaged", "whole words"} {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"content":"` + text + `"}`)})
	}
	kit.Check(t, c.Seal(ctx))
	folder := filepath.Join(dir, c.ID().String())
	segs := kit.Must[[]string](t)(filepath.Glob(filepath.Join(folder, "segments", "*.zst")))
	if len(segs) != 1 {
		t.Fatal(segs)
	}
	raw := kit.Must[[]byte](t)(os.ReadFile(segs[0]))
	i := bytes.Index(raw, []byte("damaged"))
	raw[i] ^= 1
	// As a repair leaves it in the trash.
	stray := filepath.Join(folder, "segments", "900-901-00000000.zst")
	kit.Check(t, os.WriteFile(stray, raw, 0o600))
	kit.Check(t, c.Dir.SetAside("segments/900-901-00000000.zst"))
	last := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"content":"another"}`)})
	kit.Check(t, c.Close())
	kit.Finish(t, erase.Messages(ctx, s, c.ID(), []uuid.UUID{last.ID}, erase.Options{}))
	found := false
	trash := kit.Must[vfs.FS](t)(vfs.OS(filepath.Join(folder, "trash")))
	defer trash.Close()
	kit.Check(t, engine.WalkFiles(trash, ".", func(p string) error {
		if filepath.Ext(p) != archive.End {
			return nil
		}
		sub := kit.Must[vfs.FS](t)(trash.Sub(filepath.Dir(p)))
		defer sub.Close()
		seg, err := archive.Open(sub, filepath.Base(p))
		if err != nil {
			return err
		}
		defer seg.Close()
		for b := range seg.Envelopes() {
			found = found || strings.Contains(string(b), "whole words")
		}
		return nil
	}))
	if !found {
		t.Error("the whole message of the segment in the trash is gone")
	}
}
