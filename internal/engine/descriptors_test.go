package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/held"
)

// TestDescriptorsStay: whatever goes on in a context, through one handle and another, what it opened is closed when it
// is of no more use, and not when the garbage collector finds it.
func TestDescriptorsStay(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ctx := context.Background()
	s, dir := newStore(t, WithFoldBytes(-1), withRetain(1), WithTextThreshold(100))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	other := must[*Store](t)(Open(dir))
	defer other.Close()
	theirs := must[*Context](t)(other.Context(ctx, c.ID()))
	defer theirs.Close()
	name, n := "main", 0
	read := func(c *Context) {
		check(t, c.Refresh(ctx))
		for _, m := range must[[]*Message](t)(c.Active().Load(ctx)) {
			must[json.RawMessage](t)(m.Body(ctx))
		}
	}
	round := func() {
		for range 3 {
			n++
			must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(n), Body: fmt.Appendf(nil, `{"n":%d,"text":"%0200d"}`, n, n)}))
			read(theirs)
			check(t, c.log.Fold(ctx, n%3 == 0))
		}
		to := fmt.Sprintf("branch-%d", n)
		check(t, c.Rename(ctx, name, to))
		name = to
		read(theirs)
		must[Archived](t)(theirs.Archive(ctx, ArchiveOptions{}))
		read(c)
		must[Archived](t)(c.Unarchive(ctx, nil))
		read(theirs)
		must[*Message](t)(c.Active().Message(ctx, testID(n)))
		for x, err := range s.Sweep(ctx, time.Hour, false) {
			t.Error(x, err)
		}
		for f, err := range other.Check(ctx, nil, CheckOptions{ReadData: true}) {
			t.Error(f, err)
		}
		third := must[*Context](t)(other.Create(ctx, Metadata{}))
		must[Appended](t)(third.Active().Append(ctx, Draft{Body: fmt.Appendf(nil, `{"text":"%0200d"}`, n)}))
		check(t, third.Close())
		must[Trashed](t)(s.Delete(ctx, third.ID()))
		for x, err := range s.Collect(ctx, Collecting{Grace: time.Hour}) {
			if err != nil {
				t.Error(x, err)
			}
		}
		check(t, c.log.Close())
		read(c)
	}
	round()
	round()
	files := descriptors(t)
	for range 10 {
		round()
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors, there were %d", now, files)
	}
}

// TestDescriptorsBounded: a handle that reads every branch of a context does not keep open a row file and a folder of each.
func TestDescriptorsBounded(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t, WithFoldBytes(-1))
	const branches = 5 * held.MaxOpen
	for i := range branches {
		fill(t, must[*Branch](t)(c.NewBranch(ctx, fmt.Sprintf("branch %d", i))), 1)
	}
	check(t, c.Fold(ctx))
	c = must[*Context](t)(c.store.Context(ctx, c.ID()))
	defer c.Close()
	before := descriptors(t)
	for i := range branches {
		for _, m := range must[[]*Message](t)(must[*Branch](t)(c.Branch(fmt.Sprintf("branch %d", i))).Last(ctx, 1)) {
			must[json.RawMessage](t)(m.Body(ctx))
		}
	}
	if opened := descriptors(t) - before; opened > 3*held.MaxOpen+8 { // folders, two each; row files; and what the context itself needs
		t.Errorf("%d descriptors more", opened)
	}
}
