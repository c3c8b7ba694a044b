package trash_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// besideSweep is a disk with a context whose branch alt has one reference to a blob: in a message file that was edited
// by hand, of which the index knows nothing.
func besideSweep(t *testing.T) *crashfs.FS {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	defer c.Close()
	b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
	kit.Append(t, b, engine.Draft{ID: kit.TestID(2), Body: []byte(`{"n":2}`)})
	kit.Append(t, b, engine.Draft{ID: kit.TestID(1), Body: []byte(kit.LargeBody("e"))})
	stored := kit.Must[*engine.Message](t)(b.Message(ctx, kit.TestID(1))).Stored
	kit.Check(t, b.Replace(ctx, kit.TestID(1), engine.Draft{Body: []byte(`{"n":1}`)}), c.Seal(ctx))
	for _, err := range trash.Purge(ctx, s, nil, 0, false) {
		kit.Check(t, err)
	}
	name := c.Dir.MessagePath("branch-alt", kit.TestID(2))
	whole := kit.Must[[]byte](t)(vfs.ReadFile(c.Dir.FS, name, ctxfolder.MaxMessage))
	kit.Check(t, c.Dir.FS.Remove(name), vfs.WriteNew(c.Dir.FS, name, []byte(strings.Replace(string(whole), `{"n":2}`, string(stored), 1))))
	return disk
}

// TestSweepBeside: before any operation of a sweep another process moves the context, or renames the branch. The sweep does
// not fail, and leaves the blob.
func TestSweepBeside(t *testing.T) {
	ctx := context.Background()
	fresh := besideSweep(t)
	for what, do := range map[string]func(s *engine.Store) error{
		"delete": func(s *engine.Store) error {
			_, err := s.Delete(ctx, kit.TestID(60000))
			return err
		},
		"rename and delete": func(s *engine.Store) error {
			err := besideRename(ctx, s)
			_, derr := s.Delete(ctx, kit.TestID(60000))
			return errors.Join(err, derr)
		},
		"rename": func(s *engine.Store) error { return besideRename(ctx, s) },
	} {
		for k := 1; ; k++ {
			disk := fresh.Clone()
			others := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk)))
			s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk)))
			n, doing := 0, false
			disk.Fail(func(o crashfs.Op) error {
				if doing || !strings.Contains(o.Path, kit.TestID(60000).String()) {
					return nil
				}
				if n++; n == k {
					doing = true
					kit.Check(t, do(others))
					doing = false
				}
				return nil
			})
			for x, err := range kit.SweepAll(ctx, s, 0) {
				t.Errorf("%s before operation %d: %s %v", what, k, x.Path, err)
			}
			disk.Fail(nil)
			if n < k {
				if k < 10 {
					t.Errorf("%s: %d operations", what, k-1)
				}
				break
			}
		}
	}
}

func besideRename(ctx context.Context, s *engine.Store) error {
	c, err := s.Context(ctx, kit.TestID(60000))
	if err != nil {
		return err
	}
	return errors.Join(c.Rename(ctx, "alt", "beta"), c.Close())
}
