package erase_test

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// listedFS is a file system that tells which folders are listed.
type listedFS struct {
	vfs.FS
	in   string
	list func(name string)
}

func (l *listedFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	l.list(l.in + name)
	return l.FS.ReadDir(name)
}

func (l *listedFS) Sub(name string) (vfs.FS, error) {
	sub, err := l.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &listedFS{sub, l.in + name + "/", l.list}, nil
}

// TestSearchOnce: an erase lists the files of messages once, for those of its messages and for copies that a person made.
func TestSearchOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	listed := map[string]int{}
	disk := &listedFS{crashfs.New(), "", func(name string) { listed[name]++ }}
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithFiles(engine.FilesOnReturn)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	for n := range 3 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)})
	}
	kit.Check(t, c.Close())
	clear(listed)
	kit.Finish(t, erase.Messages(ctx, s, kit.TestID(60000), []uuid.UUID{kit.TestID(1)}, erase.Options{}))
	kit.Check(t, s.Close())
	n := listed["./"+kit.TestID(60000).String()+"/messages/branch-main"]
	if n != 1 {
		t.Errorf("the folder of the messages was listed %d times: %v", n, listed)
	}
}
