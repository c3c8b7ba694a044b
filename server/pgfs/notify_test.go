package pgfs

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestNotify: whoever asks is told of each change, by its name below the folder that was asked, when it is there.
func TestNotify(t *testing.T) {
	f := newDisk(t).open()
	var whole, part []string
	stop := f.Notify(func(name string) { whole = append(whole, name) })
	check(t, f.Mkdir("a"))
	sub, err := f.Sub("a")
	check(t, err)
	stopPart := sub.(*FS).Notify(func(name string) { part = append(part, name) })
	check(t, vfs.WriteNew(sub, "b", []byte("1")))
	check(t, f.Rename("a/b", "c"))
	check(t, f.Rename("c", "a/d"))
	h, err := f.OpenFile("a/d", os.O_RDWR)
	check(t, err)
	_, err = h.WriteAt([]byte("2"), 0)
	check(t, err)
	before := len(whole)
	check(t, h.Datasync())
	if len(whole) == before {
		t.Error("no word of a sync")
	}
	check(t, h.Close())
	check(t, f.Remove("a/d"))
	stopPart()
	check(t, f.Mkdir("a/e"))
	stop()
	check(t, f.Mkdir("g"))
	for _, c := range []struct{ got, want []string }{
		{whole, []string{"a", "a/b", "c", "a/d", "a/e"}},
		{part, []string{"b", "d"}},
	} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if got := slices.Compact(c.got); !slices.Equal(got, c.want) {
			t.Errorf("told of %q, want %q", got, c.want)
		}
	}
}

// TestFollowsWithoutPolling follows a store in the database: the followers are told of new commits, and look for none.
func TestFollowsWithoutPolling(t *testing.T) {
	never := func(o *engine.Options) { o.Watching.Every = time.Hour } // a look without a word
	s, err := ctxdir.Init("database", knobs.Options(engine.WithFS(newDisk(t).open()), never))
	check(t, err)
	w, err := s.Watch(t.Context())
	check(t, err)
	if w.Polling != nil {
		t.Error("it polls: ", w.Polling)
	}
	const contexts, messages = 3, 5
	go func() {
		for range contexts {
			c, err := s.Create(context.Background(), ctxdir.Metadata{})
			for i := 0; i < messages && err == nil; i++ {
				_, err = c.Active().Append(context.Background(), ctxdir.Draft{Body: []byte(`{"role":"user","content":"new"}`)})
			}
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	heard := 0
	for e := range w.Events(t.Context()) {
		if e.Op == ctxdir.OpAppended {
			heard++
		}
		if heard == contexts*messages {
			break
		}
	}
	check(t, w.Close())
	check(t, s.Close())
}
