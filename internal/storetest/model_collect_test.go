package storetest_test

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// lineOf is the id of the line at which a branch points.
func (d *driver) lineOf(name string) uuid.UUID {
	b, ok := d.c.Metadata().Branch(name)
	if !ok {
		d.t.Fatalf("branch %q is missing", name)
	}
	return b.Line
}

// quiet waits for everything in the background. A seal that is due begins when the files of either handle are made, and
// what a seal leaves to be made is made in the second round.
func (d *driver) quiet() {
	for range 2 {
		if d.files == engine.FilesBehind {
			d.check(d.c.Flush(d.ctx()))
			d.check(d.other.Flush(d.ctx()))
		}
		d.c.AwaitSeal()
		d.other.AwaitSeal()
	}
}

// collect purges all removed lines or some of them, or none while their grace period runs.
func (d *driver) collect() {
	if rapid.IntRange(0, 2).Draw(d.t, "collect") > 0 {
		return // it syncs, which takes long
	}
	d.quiet()
	d.listed()
	items := d.items()
	switch rapid.IntRange(0, 2).Draw(d.t, "what") {
	case 0:
		for x, err := range trash.Collect(d.ctx(), d.store, trash.CollectOptions{Grace: trash.DefaultGrace}) {
			d.check(err)
			if !strings.Contains(x.Path, "/archive/") {
				d.t.Fatalf("%+v was collected", x)
			}
		}
		items = nil
	case 1:
		d.check(kit.CollectAll(d.store, 0))
	default:
		items = slices.DeleteFunc(items, func(uuid.UUID) bool { return rapid.Bool().Draw(d.t, "stays") })
		if len(items) == 0 {
			return
		}
		for _, err := range trash.Purge(d.ctx(), d.store, items, 0, false) {
			d.check(err)
		}
	}
	for _, item := range items {
		delete(d.trash, item)
	}
	if len(items) > 0 {
		d.forget()
	}
	d.listed()
	d.filesAgree()
}

// forget cuts from the model what neither a branch nor a removed line shows.
func (d *driver) forget() {
	shown, descended := map[*modelMessage]bool{}, map[*modelLine]bool{}
	for _, l := range slices.Concat(slices.Collect(maps.Values(d.m.branches)), slices.Collect(maps.Values(d.trash))) {
		for _, m := range l.view() {
			shown[m] = true
		}
		for ; l != nil; l = l.parent {
			descended[l] = true
		}
	}
	d.m.lines = slices.DeleteFunc(d.m.lines, func(l *modelLine) bool { return !descended[l] })
	for _, l := range d.m.lines {
		l.own = slices.DeleteFunc(l.own, func(m *modelMessage) bool { return !shown[m] })
	}
}

// listed: the trash lists each removed line, and no other.
func (d *driver) listed() {
	var listed []uuid.UUID
	for x, err := range trash.List(d.ctx(), d.store, d.c.ID()) {
		d.check(err)
		if x.Kind == "line" {
			listed = append(listed, x.Item)
		}
	}
	slices.SortFunc(listed, compareIDs)
	if !slices.Equal(listed, d.items()) {
		d.t.Fatalf("the trash lists %v, wanted %v", listed, d.items())
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// items are the removed lines.
func (d *driver) items() []uuid.UUID { return slices.SortedFunc(maps.Keys(d.trash), compareIDs) }

// filesAgree: there is a file for each message that counts and is not archived, and no other.
func (d *driver) filesAgree() {
	c := d.handle()
	d.check(c.Flush(d.ctx()))
	all, _, err := c.Index.AllCounts()
	d.check(err)
	want, model := int64(0), int64(0)
	for _, counts := range all {
		want += counts.Count
	}
	for _, l := range d.m.lines {
		model += int64(len(l.own))
	}
	if want != model {
		d.t.Fatalf("%d messages count, wanted %d", want, model)
	}
	for _, l := range c.Current().Lines {
		for e, err := range c.Index.All(d.ctx(), l.ID, l.Base, l.Archived) {
			d.check(err)
			if _, is, _ := views.Read(c.Dir, l.Folder, e); is != views.Edited {
				want--
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(d.dir, c.ID().String(), "messages", "*", "*.json"))
	d.check(err)
	if int64(len(files)) != want {
		d.t.Fatalf("%d message files, wanted %d", len(files), want)
	}
}

// restore gives a removed line a name again.
func (d *driver) restore() {
	items := d.items()
	if len(items) == 0 {
		if _, err := trash.Restore(d.ctx(), d.store, uuid.New()); !errors.Is(err, engine.ErrNotExist) {
			d.t.Fatalf("an unknown item: %v", err)
		}
		return
	}
	item := rapid.SampledFrom(items).Draw(d.t, "item")
	r, err := trash.Restore(d.ctx(), d.store, item)
	d.check(err)
	if d.m.branches[r.Branch] != nil {
		d.t.Fatalf("the name %q was taken", r.Branch)
	}
	d.m.branches[r.Branch] = d.trash[item]
	delete(d.trash, item)
	d.listed()
}
