package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestCollectKeepsBlobs: a collection looks for references while it goes from context to context. It misses none that
// goes to the trash meanwhile, in the same pass, nor one of a context that is removed beside it; and it moves no blob
// when a message cannot be read.
func TestCollectKeepsBlobs(t *testing.T) {
	ctx := context.Background()
	for name, hide := range map[string]struct {
		before func(t *testing.T, s *Store, c *Context)
		beside func(t *testing.T, s *Store, c *Context) // once something was collected
	}{
		"in a line": {},
		"an old version": {before: func(t *testing.T, _ *Store, c *Context) {
			check(t, c.Active().Replace(ctx, testID(1), Draft{Body: []byte(`{"n":2}`)}), c.Fold(ctx))
		}},
		"collected in this pass": {before: func(t *testing.T, _ *Store, c *Context) {
			check(t, c.Active().Rewind(ctx, 0), c.Fold(ctx))
		}},
		"removed before": {before: func(t *testing.T, s *Store, c *Context) { must[Trashed](t)(s.Delete(ctx, c.ID())) }},
		"removed beside": {beside: func(t *testing.T, s *Store, c *Context) { must[Trashed](t)(s.Delete(ctx, c.ID())) }},
		"cannot be read": {before: func(t *testing.T, s *Store, c *Context) {
			check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
			folder := filepath.Join(s.Path(), c.ID().String())
			write(t, filepath.Join(folder, "messages", "branch-main", testID(1).String()+".json"), nil)
		}},
	} {
		for round := range 4 { // contexts come in a random order
			s, dir := newStore(t, WithFoldBytes(-1))
			c := must[*Context](t)(s.Create(ctx, Metadata{}))
			must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(1), Body: []byte(largeBody("a"))}))
			other, _ := orphaned(t, s) // something is collected
			check(t, other.Close())
			if hide.before != nil {
				hide.before(t, s, c)
			}
			if name == "in a line" {
				loose, _, err := s.blobs.Put([]byte("loose"))
				check(t, err)
				defer func() {
					if _, _, err := s.blobs.Open(loose); err == nil {
						t.Errorf("%s, %d: the blob that nothing refers to is there", name, round)
					}
				}()
			}
			age(t, dir)
			for x, err := range s.Collect(ctx, Collecting{Grace: DefaultGrace}) {
				if err != nil && name != "cannot be read" {
					t.Errorf("%s, %d: %v", name, round, err)
				}
				if hide.beside != nil && x.Context == other.ID() {
					hide.beside(t, s, c)
				}
			}
			if n := len(blobFiles(t, dir)); n != 1 {
				t.Errorf("%s, %d: %d blobs, wanted the one that is referred to", name, round, n)
			}
			check(t, c.Close(), os.RemoveAll(dir))
		}
	}
}
