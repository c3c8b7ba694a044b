package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestCopiedContext: a context's folder that was copied under another id is a context of its own after a repair.
func TestCopiedContext(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{false, true} {
		p := kit.NewPatient(t, log)
		p.ID = uuid.New()
		dir := filepath.Join(p.Store.Path(), p.ID.String())
		kit.Check(t, copyTree(p.Dir, dir))
		p.Dir = dir
		for _, f := range p.Check(true) {
			if f.Context != p.ID {
				t.Errorf("about the other one: %+v", f)
			}
		}
		if _, lost := p.Heal(checking.Options{}); lost > 0 {
			t.Errorf("%d messages of the copy are gone", lost)
		}
		p.In(func(c *engine.Context) {
			if c.Metadata().Title != "a title" {
				t.Errorf("title %q", c.Metadata().Title)
			}
		})
	}
}

// TestRepairStopped: a repair that is cancelled, or whose results nobody wants any more, leaves nothing worse, and the
// next one does the rest.
func TestRepairStopped(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		p := kit.NewPatient(t, n%2 == 0)
		for _, path := range p.Main[5:8] {
			kit.Write(t, path, nil)
		}
		p.Remove(p.Glob("metadata.json")...)
		ctx, cancel := context.WithCancel(context.Background())
		seen := 0
		for _, err := range checking.Repair(ctx, p.Store, nil, checking.Options{}) {
			if err != nil {
				break
			}
			if seen++; seen > n/2 {
				cancel()
				if n%2 == 0 {
					break
				}
			}
		}
		cancel()
		if _, lost := p.Heal(checking.Options{}); lost > 0 {
			t.Errorf("stopped after %d: %d messages are gone", n, lost)
		}
	}
}

// TestRecoveryCosts: what the first append after a crash reads grows with the log, and not with the context.
func TestRecoveryCosts(t *testing.T) {
	ctx := context.Background()
	cost := func(messages int) (files, bytesRead int64) {
		k := newCounted(t, engine.WithSealBytes(-1))
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
		for range messages / 500 {
			kit.Fill(t, c.Active(), 500)
		}
		kit.Check(t, c.Seal(ctx))
		kit.Fill(t, c.Active(), 10)
		kit.Check(t, c.Close())
		k.tear(t, c.ID())
		again := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
		defer again.Close()
		calls := k.during(func() { kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"a":1}`)}) })
		for _, o := range calls {
			switch o.Kind {
			case crashfs.KindOpen:
				files++
			case crashfs.KindRead:
				bytesRead += o.Size
			}
		}
		return files, bytesRead
	}
	files, size := cost(500)
	manyFiles, manySize := cost(5000)
	if manyFiles > files || manySize > size+size/10 {
		t.Errorf("%d files and %d bytes for 500 messages, %d and %d for 5,000", files, size, manyFiles, manySize)
	}
}

// tear leaves half a record behind a context's newest log.
func (k *counted) tear(t *testing.T, id uuid.UUID) {
	t.Helper()
	var name string
	for e, err := range k.disk.ReadDir(id.String()) {
		kit.Check(t, err)
		if strings.HasPrefix(e.Name(), "log-") {
			name = id.String() + "/" + e.Name()
		}
	}
	raw := kit.Must[[]byte](t)(vfs.ReadFile(k.disk, name, 1<<20))
	f := kit.Must[vfs.File](t)(k.disk.OpenFile(name, os.O_RDWR))
	defer f.Close()
	_, err := f.WriteAt([]byte(`{"chain":"0123456789abcdef","prev":"`), int64(len(bytes.TrimRight(raw, "\n"))+1))
	kit.Check(t, err)
}
