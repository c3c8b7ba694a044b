package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// besideSweep is a disk with a context whose branch alt has one reference to a blob: in a message file that was edited
// by hand, of which the index knows nothing.
func besideSweep(t *testing.T) *crashfs.FS {
	ctx := context.Background()
	disk := crashfs.New()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
	defer s.Close()
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	defer c.Close()
	b := must[*Branch](t)(c.NewBranch(ctx, "alt"))
	must[Appended](t)(b.Append(ctx, Draft{ID: testID(2), Body: []byte(`{"n":2}`)}))
	must[Appended](t)(b.Append(ctx, Draft{ID: testID(1), Body: []byte(largeBody("e"))}))
	stored := must[*Message](t)(b.Message(ctx, testID(1))).Stored
	check(t, b.Replace(ctx, testID(1), Draft{Body: []byte(`{"n":1}`)}), c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
	for _, err := range s.Purge(ctx, nil, 0, false) {
		check(t, err)
	}
	name := c.dir.MessagePath("branch-alt", testID(2))
	whole := must[[]byte](t)(vfs.ReadFile(c.dir.FS, name, ctxfolder.MaxMessage))
	check(t, c.dir.FS.Remove(name), vfs.WriteNew(c.dir.FS, name, []byte(strings.Replace(string(whole), `{"n":2}`, string(stored), 1))))
	return disk
}

// TestSweepBeside: before any operation of a sweep another process moves the context, or renames the branch, or ends a
// rename that was begun. The sweep does not fail, and leaves the blob.
func TestSweepBeside(t *testing.T) {
	ctx := context.Background()
	fresh := besideSweep(t)
	stopped := errors.New("stopped")
	for what, do := range map[string]func(s *Store) error{
		"delete": func(s *Store) error {
			_, err := s.Delete(ctx, testID(60000))
			return err
		},
		"rename and delete": func(s *Store) error {
			err := besideRename(ctx, s)
			_, derr := s.Delete(ctx, testID(60000))
			return errors.Join(err, derr)
		},
		"rename": func(s *Store) error { return besideRename(ctx, s) },
		"rename that was begun": func(s *Store) error {
			c, err := s.Context(ctx, testID(60000))
			if err != nil {
				return err
			}
			return errors.Join(c.Update(ctx, func(*Metadata) error { return nil }), c.Close())
		},
	} {
		for k := 1; ; k++ {
			disk := fresh.Clone()
			others := must[*Store](t)(Open("disk", withFS(disk)))
			if what == "rename that was begun" {
				disk.Fail(func(o crashfs.Op) error {
					if o.Kind == crashfs.KindRename && strings.HasSuffix(o.Path, "/messages/branch-alt") {
						return stopped
					}
					return nil
				})
				if err := besideRename(ctx, others); !errors.Is(err, stopped) {
					t.Fatal(err)
				}
			}
			s := must[*Store](t)(Open("disk", withFS(disk)))
			n, doing := 0, false
			disk.Fail(func(o crashfs.Op) error {
				if doing || !strings.Contains(o.Path, testID(60000).String()) {
					return nil
				}
				if n++; n == k {
					doing = true
					check(t, do(others))
					doing = false
				}
				return nil
			})
			for x, err := range s.Sweep(ctx, 0, false) {
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

func besideRename(ctx context.Context, s *Store) error {
	c, err := s.Context(ctx, testID(60000))
	if err != nil {
		return err
	}
	return errors.Join(c.Rename(ctx, "alt", "beta"), c.Close())
}
