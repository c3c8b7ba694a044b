package storetest_test

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// hookedFS is a file system that tells before a file is opened or removed.
type hookedFS struct {
	vfs.FS
	open, remove func(name string)
	look         func(name string) // before an Lstat; may be nil
}

func (h *hookedFS) Lstat(name string) (fs.FileInfo, error) {
	if h.look != nil {
		h.look(name)
	}
	return h.FS.Lstat(name)
}

func (h *hookedFS) OpenFile(name string, flag int) (vfs.File, error) {
	h.open(name)
	return h.FS.OpenFile(name, flag)
}

func (h *hookedFS) Remove(name string) error {
	h.remove(name)
	return h.FS.Remove(name)
}

func (h *hookedFS) Sub(name string) (vfs.FS, error) {
	sub, err := h.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &hookedFS{sub, h.open, h.remove, h.look}, nil
}

// TestStaleAppend: an append through a handle that is two journals behind, while a fold of another process removes
// these: between the look at the one that the handle knows and that for the next one both go. What is acknowledged is
// there.
func TestStaleAppend(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	draft := func(n int) engine.Draft {
		return engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)}
	}
	removing, looked, folded := make(chan bool), make(chan bool), make(chan bool)
	var behind, folding sync.Once
	armed := false
	nothing := func(string) {}
	appends := &hookedFS{FS: disk, remove: nothing, open: func(name string) {
		if armed && name == "journal-2.jsonl" {
			behind.Do(func() { close(looked); <-folded })
		}
	}}
	folds := &hookedFS{FS: disk, open: nothing, remove: func(name string) {
		if armed && name == "journal-1.jsonl" {
			folding.Do(func() { close(removing); <-looked })
		}
	}}
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(appends), engine.WithFoldBytes(-1), engine.WithRetain(-1)))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	defer c.Close()
	kit.Append(t, c.Active(), draft(1))
	other := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(folds), engine.WithFoldBytes(-1), engine.WithRetain(-1)))
	defer other.Close()
	theirs := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer theirs.Close()
	armed = true
	ended := make(chan error)
	go func() {
		var err error
		for i := 0; i < 2 && err == nil; i++ {
			if _, err = theirs.Active().Append(ctx, draft(10+i)); err == nil {
				err = theirs.Log.Fold(ctx, false)
			}
		}
		close(folded)
		ended <- err
	}()
	<-removing
	at := kit.Append(t, c.Active(), draft(2))
	kit.Check(t, <-ended)
	again := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithFoldBytes(-1)))
	defer again.Close()
	read := kit.Must[*engine.Context](t)(again.Context(ctx, c.ID()))
	defer read.Close()
	m, err := read.Active().Message(ctx, kit.TestID(2))
	if err != nil || m.Position != at.Position {
		t.Errorf("acknowledged at %d: %+v, %v", at.Position, m, err)
	}
	if n := kit.Must[int64](t)(read.Active().Len(ctx)); n != 4 {
		t.Errorf("%d messages, 4 were acknowledged", n)
	}
}
