package listing_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// cachedStore makes a store whose contexts are in the cache, examined a moment ago.
func cachedStore(t *testing.T) (l *listing.Lister, other *engine.Store, dir string, ids []uuid.UUID) {
	t.Helper()
	s, dir := kit.NewStore(t)
	l = listing.New(s)
	for _, title := range []string{"a", "b", "c"} {
		ids = append(ids, labelled(t, s, engine.Metadata{Title: title, ExternalID: title}, map[string]string{"user": "eve", "of": title}))
	}
	old(t, dir, ids...)
	kit.ListBy(t, l)
	if forgotten := l.Forgotten(ids); len(forgotten) > 0 {
		t.Fatalf("%v are not in the cache", forgotten)
	}
	return l, kit.Must[*engine.Store](t)(kit.Open(dir)), dir, ids
}

// TestListSeesCommits: a list with conditions shows a context as soon as any store committed what it asks for, whether
// the list has the cache in memory or reads the file.
func TestListSeesCommits(t *testing.T) {
	ctx := context.Background()
	update := func(f func(m *engine.Metadata)) func(*engine.Store, uuid.UUID) error {
		return func(s *engine.Store, id uuid.UUID) error {
			return s.Use(ctx, id, func(c *engine.Context) error {
				return c.Update(ctx, func(m *engine.Metadata) error { f(m); return nil })
			})
		}
	}
	for _, x := range []struct {
		name   string
		o      listing.ListOptions
		change func(s *engine.Store, id uuid.UUID) error
		want   string
	}{
		{"label", listing.ListOptions{Labels: map[string]string{"user": "ada"}}, update(func(m *engine.Metadata) {
			_ = m.Labels.SetTexts(map[string]string{"user": "ada", "more": "<\"é"})
		}), "b"},
		{"escaped label", listing.ListOptions{Labels: map[string]string{"more": "<\"é\u2028"}}, update(func(m *engine.Metadata) {
			_ = m.Labels.SetTexts(map[string]string{"user": "ada", "more": "<\"é\u2028"})
		}), "b"},
		{"tool", listing.ListOptions{Tool: "x"}, update(func(m *engine.Metadata) {
			_ = m.Labels.SetTexts(map[string]string{"tool": "x"})
		}), "b"},
		{"title", listing.ListOptions{Title: "n*"}, update(func(m *engine.Metadata) { m.Title = "new" }), "new"},
		{"model", listing.ListOptions{Model: "small"}, update(func(m *engine.Metadata) { m.Config.SetText("model_id", "small") }), "b"},
		{"another context with the id", listing.ListOptions{Labels: map[string]string{"user": "ada"}}, func(s *engine.Store, id uuid.UUID) error {
			if _, err := s.Delete(ctx, id); err != nil {
				return err
			}
			_ = labelled(t, s, engine.Metadata{Title: "again", ExternalID: "b"}, map[string]string{"user": "ada"})
			return nil
		}, "again"},
	} {
		l, other, dir, ids := cachedStore(t)
		fresh := kit.Must[*engine.Store](t)(kit.Open(dir))
		kit.Check(t, x.change(other, ids[1]))
		for i, l := range []*listing.Lister{l, listing.New(fresh), listing.New(other)} {
			if got, _ := listed(t, l, x.o); got != x.want {
				t.Errorf("%s: store %d lists %q, want %q", x.name, i, got, x.want)
			}
		}
		kit.Check(t, other.Close())
		// Once the context is in the file, its text there is what a later list compares.
		old(t, dir, ids...)
		l.ForgetCheck()
		kit.ListBy(t, l)
		again := listing.New(kit.Must[*engine.Store](t)(kit.Open(dir)))
		if forgotten := again.Forgotten(ids); len(forgotten) > 0 {
			t.Errorf("%s: %v are not in the cache", x.name, forgotten)
		}
		if got, _ := listed(t, again, x.o); got != x.want {
			t.Errorf("%s: the next store lists %q, want %q", x.name, got, x.want)
		}
	}
}

// TestListSeesEdits: an edit of metadata.json shows at once in a list of the context, and at the next full check in a
// list that the context was not in.
func TestListSeesEdits(t *testing.T) {
	l, _, dir, ids := cachedStore(t)
	path := filepath.Join(dir, ids[1].String(), ctxfolder.MetadataFile)
	b := kit.Must[[]byte](t)(os.ReadFile(path))
	kit.Check(t, os.WriteFile(path, bytes.Replace(b, []byte(`"eve"`), []byte(`"ada"`), 1), 0o600))
	ada, eve := listing.ListOptions{Labels: map[string]string{"user": "ada"}}, listing.ListOptions{Labels: map[string]string{"user": "eve"}}
	if got, _ := listed(t, l, ada); got != "" {
		t.Errorf("%q is listed: this list examined all files", got)
	}
	l.ForgetCheck()
	if got, _ := listed(t, l, ada); got != "b" {
		t.Errorf("%q is listed after the full check, want b", got)
	}
	if got, _ := listed(t, l, eve); got != "c a" {
		t.Errorf("%q is listed after the edit, want c a", got)
	}
	l, other, dir, ids := cachedStore(t)
	path = filepath.Join(dir, ids[1].String(), ctxfolder.MetadataFile)
	kit.Check(t, os.WriteFile(path, bytes.Replace(kit.Must[[]byte](t)(os.ReadFile(path)), []byte(`"eve"`), []byte(`"ada"`), 1), 0o600))
	if got, _ := listed(t, l, eve); got != "c a" {
		t.Errorf("%q is listed right after the edit, want c a", got)
	}
	// A store that opens later finds in the file when the last full check was.
	kit.ForgetListCheck(t, other.FS)
	if got, _ := listed(t, listing.New(kit.Must[*engine.Store](t)(kit.Open(dir))), ada); got != "b" {
		t.Errorf("another store lists %q after the full check was due, want b", got)
	}
}

// TestListWithoutChangesFile: if the file of changes was removed, cut short or spoiled, a list examines all files.
func TestListWithoutChangesFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"torn":    func(path string) error { return os.WriteFile(path, []byte("0190"), 0o600) },
		"another": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("zzzzzzzz-0000-7000-8000-000000000000\n"), 9), 0o600)
		},
		"folder": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		l, other, dir, ids := cachedStore(t)
		other.NoteChange(ids[0])
		old(t, dir, ids...)
		kit.ListBy(t, l) // has seen one change
		kit.Check(t, other.Use(t.Context(), ids[1], func(c *engine.Context) error {
			return c.Update(t.Context(), func(m *engine.Metadata) error { m.Title = "new"; return nil })
		}))
		kit.Check(t, spoil(filepath.Join(dir, engine.ChangesFile)))
		if got, _ := listed(t, l, listing.ListOptions{Title: "new"}); got != "new" {
			t.Errorf("%s: %q is listed, want new", name, got)
		}
	}
}

// TestListsAtOnce: lists at the same time share the cache, which they decode as they need it.
func TestListsAtOnce(t *testing.T) {
	_, _, dir, ids := cachedStore(t)
	for range 20 {
		l := listing.New(kit.Must[*engine.Store](t)(kit.Open(dir)))
		var group sync.WaitGroup
		begin := make(chan struct{})
		for i := range 16 {
			group.Go(func() {
				<-begin
				of := string(rune('a' + i%4))
				n := 0
				for sum, err := range l.List(t.Context(), listing.ListOptions{Labels: map[string]string{"of": of}}) {
					if n++; err != nil || sum.ID != ids[i%4] || sum.Labels["of"] != of {
						t.Errorf("a list of %q has %+v, %v", of, sum, err)
					}
				}
				if i%4 < len(ids) != (n == 1) {
					t.Errorf("a list of %q has %d contexts", of, n)
				}
			})
		}
		close(begin)
		group.Wait()
	}
}
