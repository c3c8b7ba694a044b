package storetest_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// modelTrash is the end of a line in trash.
type modelTrash struct {
	line *modelLine
	from int
	own  []*modelMessage
}

func (l *modelLine) end() int { return l.base + len(l.own) }

// learn notes which line is which.
func (d *driver) learn() {
	m := d.c.Metadata()
	for name, l := range d.m.branches {
		if b, ok := m.Branch(name); ok {
			d.lines[b.Line] = l
		}
	}
}

// quiet waits for folds in the background: the one of a collection is left out beside them, and rows that are left over
// can come back with an index that is lost.
func (d *driver) quiet() {
	for _, c := range []*engine.Context{d.c, d.other} {
		c.AwaitFold()
	}
}

// collect moves to trash what no branch shows, and nothing else.
func (d *driver) collect() {
	if rapid.IntRange(0, 2).Draw(d.t, "collect") > 0 {
		return // it syncs, which takes long
	}
	d.quiet()
	var contexts []uuid.UUID
	if rapid.Bool().Draw(d.t, "alone") {
		contexts = []uuid.UUID{d.c.ID()}
	}
	shown, descended := map[*modelMessage]bool{}, map[*modelLine]bool{}
	for _, l := range d.m.branches {
		for _, m := range l.view() {
			shown[m] = true
		}
		for ; l != nil; l = l.parent {
			descended[l] = true
		}
	}
	var found []engine.TrashItem
	for x, err := range trash.Collect(d.ctx(), d.store, trash.CollectOptions{Contexts: contexts, Grace: trash.DefaultGrace}) {
		d.check(err)
		if x.Purged && !strings.Contains(x.Path, "/archive/") {
			d.t.Fatalf("%+v was purged", x)
		}
		if x.Kind == "line" {
			found = append(found, x.TrashItem)
		}
	}
	want := 0
	for id, l := range d.lines {
		n := 0
		for n < len(l.own) && shown[l.own[n]] {
			n++
		}
		if n < len(l.own) {
			want++
			i := slices.IndexFunc(found, func(t engine.TrashItem) bool { return d.lineOf(t.Item) == id })
			if i < 0 {
				d.t.Fatalf("the end of line %s was not collected", id)
			}
			d.trash[found[i].Item] = modelTrash{l, l.base + n, slices.Clone(l.own[n:])}
		}
		l.own = l.own[:n:n]
	}
	if len(found) != want {
		d.t.Fatalf("%d ends of lines collected, wanted %d: %+v", len(found), want, found)
	}
	d.m.lines = slices.DeleteFunc(d.m.lines, func(l *modelLine) bool { return !descended[l] })
	d.filesAgree()
}

// items are those in trash, in the order in which they came there.
func (d *driver) items() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(d.trash), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

func (d *driver) lineOf(item uuid.UUID) uuid.UUID {
	for t, err := range trash.EachItem(d.ctx(), d.store, nil, nil) {
		d.check(err)
		if t.ID == item {
			return t.Item.Line
		}
	}
	d.t.Fatalf("item %s is not in trash", item)
	return uuid.Nil
}

// filesAgree: there is a file for each message that counts and is not archived, and no other.
func (d *driver) filesAgree() {
	c := d.handle()
	d.check(c.Flush(d.ctx()))
	all, _, err := c.Log.AllCounts()
	d.check(err)
	want := int64(0)
	for _, counts := range all {
		want += counts.Count
	}
	uses, err := c.Log.PackUses(d.ctx())
	d.check(err)
	for _, use := range uses {
		for _, live := range use.Live {
			want -= live.Len()
		}
	}
	files, err := filepath.Glob(filepath.Join(d.dir, c.ID().String(), "messages", "*", "*.json"))
	d.check(err)
	if int64(len(files)) != want {
		d.t.Fatalf("%d message files, wanted %d", len(files), want)
	}
}

// restore brings the end of a line back, or says what it needs.
func (d *driver) restore() {
	items := d.items()
	if len(items) == 0 {
		return
	}
	item := rapid.SampledFrom(items).Draw(d.t, "item")
	t := d.trash[item]
	l := t.line
	r, err := trash.Restore(d.ctx(), d.store, item)
	there := slices.Contains(d.m.lines, l)
	var want error
	switch {
	case !there && l.parent != nil && (!slices.Contains(d.m.lines, l.parent) || l.parent.end() < l.base), l.end() < t.from:
		want = engine.ErrPosition
	case !slices.Equal(l.own[t.from-l.base:][:min(l.end()-t.from, len(t.own))], t.own[:min(l.end()-t.from, len(t.own))]):
		want = engine.ErrConflict
	}
	if want != nil {
		if !errors.Is(err, want) {
			d.t.Fatalf("restoring %s, messages from %d to a line that ends at %d: %v, wanted %v", item, t.from, l.end(), err, want)
		}
		return
	}
	d.check(err)
	delete(d.trash, item)
	if !there {
		d.m.lines = append(d.m.lines, l)
	}
	l.own = append(l.own, t.own[min(l.end()-t.from, len(t.own)):]...)
	for name, other := range d.m.branches {
		if other == l && name != r.Branch {
			d.t.Fatalf("the line of branch %q was given the name %q", name, r.Branch)
		}
	}
	if other := d.m.branches[r.Branch]; other != nil && other != l {
		d.t.Fatalf("the name %q was taken", r.Branch)
	}
	d.m.branches[r.Branch] = l
	if _, err := os.Stat(filepath.Join(d.dir, d.c.ID().String(), "trash", item.String())); !os.IsNotExist(err) {
		d.t.Fatalf("the item is still there: %v", err)
	}
	d.quiet()
	d.filesAgree()
}
