package storetest_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func (d *driver) append() {
	name := d.branch()
	l := d.m.branches[name]
	b := d.open(name)
	draft := engine.Draft{Body: []byte(d.body())}
	want := len(l.view())
	if rapid.Bool().Draw(d.t, "own id") {
		draft.ID = uuid.New()
	}
	if all := d.everyID(); len(all) > 0 && rapid.IntRange(0, 3).Draw(d.t, "taken id") == 0 {
		draft.ID = rapid.SampledFrom(all).Draw(d.t, "id")
	}
	i := slices.IndexFunc(l.view(), func(m *modelMessage) bool { return m.id == draft.ID })
	if i >= 0 {
		if _, err := b.Append(d.ctx(), draft); !errors.Is(err, engine.ErrConflict) {
			d.t.Fatalf("another body under id %s: %v, wanted ErrConflict", draft.ID, err)
		}
		draft.Body, want = []byte(l.view()[i].body), i
	}
	got, err := b.Append(d.ctx(), draft, engine.AtPosition(int64(want)))
	d.check(err)
	if got.Position != int64(want) || got.Existed != (i >= 0) {
		d.t.Fatalf("appended %+v, wanted position %d", got, want)
	}
	if i < 0 {
		l.own = append(l.own, &modelMessage{got.ID, string(draft.Body)})
	}
	beyond := engine.AtPosition(int64(len(l.view())) + 1)
	if _, err := b.Append(d.ctx(), engine.Draft{Body: []byte("{}")}, beyond); !errors.Is(err, engine.ErrPosition) {
		d.t.Fatalf("a wrong expectation: %v, wanted ErrPosition", err)
	}
}

func (d *driver) everyID() (ids []uuid.UUID) {
	for _, l := range d.m.lines {
		for _, m := range l.own {
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (d *driver) batch() {
	name := d.branch()
	l := d.m.branches[name]
	var drafts []engine.Draft
	for range rapid.IntRange(0, 40).Draw(d.t, "messages") {
		drafts = append(drafts, engine.Draft{Body: []byte(d.body())})
	}
	results, err := d.open(name).AppendBatch(d.ctx(), drafts)
	d.check(err)
	for i, r := range results {
		if r.Err != nil || r.Position != int64(len(l.view())) {
			d.t.Fatalf("message %d of the batch: %+v", i, r)
		}
		l.own = append(l.own, &modelMessage{r.ID, string(drafts[i].Body)})
	}
}

func (d *driver) replace() {
	name := d.branch()
	l := d.m.branches[name]
	view := l.view()
	if len(view) == 0 {
		return
	}
	i := rapid.IntRange(0, len(view)-1).Draw(d.t, "position")
	showing := 0
	for _, line := range d.m.branches {
		if slices.Contains(line.view(), view[i]) {
			showing++
		}
	}
	shared := showing > 1
	b := d.open(name)
	body := d.body()
	err := b.Replace(d.ctx(), view[i].id, engine.Draft{Body: []byte(body)})
	if shared {
		if !errors.Is(err, engine.ErrShared) {
			d.t.Fatalf("replacing a shared message: %v, wanted ErrShared", err)
		}
		err = b.Replace(d.ctx(), view[i].id, engine.Draft{Body: []byte(body)}, engine.Shared())
	}
	d.check(err)
	view[i].body = body
}

func (d *driver) name() string {
	return rapid.SampledFrom([]string{"a", "b", "c d", "ü/x", "🙂", "..", "main"}).Draw(d.t, "name")
}

func (d *driver) fork() {
	from, name := d.branch(), d.name()
	l := d.m.branches[from]
	at := rapid.IntRange(0, len(l.view())).Draw(d.t, "at")
	_, err := d.open(from).Fork(d.ctx(), name, int64(at))
	if d.m.branches[name] != nil {
		if !errors.Is(err, engine.ErrExist) {
			d.t.Fatalf("a taken name: %v", err)
		}
		return
	}
	d.check(err)
	d.m.branches[name] = d.m.begin(l, at)
	if _, err := d.c.Active().Fork(d.ctx(), "beyond", math.MaxInt32); !errors.Is(err, engine.ErrPosition) {
		d.t.Fatalf("a fork beyond the end: %v", err)
	}
}

func (d *driver) rewind() {
	name := d.branch()
	l := d.m.branches[name]
	to := rapid.IntRange(0, len(l.view())).Draw(d.t, "to")
	b := d.open(name)
	line := d.lineOf(name)
	d.check(b.Rewind(d.ctx(), int64(to)))
	if to != len(l.view()) {
		d.trash[line] = l
		d.m.branches[name] = d.m.begin(l, to)
	}
}

func (d *driver) rename() {
	name, to := d.branch(), d.name()
	err := d.handle().Rename(d.ctx(), name, to)
	if d.m.branches[to] != nil && to != name {
		if !errors.Is(err, engine.ErrExist) {
			d.t.Fatalf("a taken name: %v", err)
		}
		return
	}
	d.check(err)
	l := d.m.branches[name]
	delete(d.m.branches, name)
	d.m.branches[to] = l
	if d.m.active == name {
		d.m.active = to
	}
}

func (d *driver) remove() {
	name, c := d.branch(), d.handle()
	line := d.lineOf(name)
	err := c.Remove(d.ctx(), name)
	if name == d.m.active {
		if !errors.Is(err, engine.ErrActive) {
			d.t.Fatalf("removing the active branch: %v", err)
		}
		return
	}
	d.check(err)
	d.trash[line] = d.m.branches[name]
	delete(d.m.branches, name)
}

func (d *driver) switchTo() {
	name := d.branch()
	d.check(d.handle().Switch(d.ctx(), name))
	d.m.active = name
}

func (d *driver) update() {
	d.m.title, d.m.label = d.body(), d.body()
	d.check(d.handle().Update(d.ctx(), func(m *engine.Metadata) error {
		m.Title = d.m.title
		d.check(m.Labels.SetTexts(map[string]string{"model": d.m.label}))
		m.Kind = "other"                          // is undone
		m.Lines, m.ActiveBranch = nil, "nonsense" // is undone
		return nil
	}))
}

// edit changes metadata.json by hand: the title and the label count, and nothing else of it.
func (d *driver) edit() {
	d.quiet() // nothing replaces the file while it is being edited
	file := filepath.Join(d.dir, d.c.ID().String(), "metadata.json")
	raw, err := os.ReadFile(file)
	d.check(err)
	var m engine.Object
	d.check(m.UnmarshalJSON(raw))
	d.m.title, d.m.label = d.body(), d.body()
	m.SetText("title", d.m.title)
	var labels engine.Object
	labels.SetText("model", d.m.label)
	rawLabels, err := labels.MarshalJSON()
	d.check(err)
	m.Set("labels", rawLabels)
	m.SetText("updated_at", "2001-01-01T00:00:00Z")
	raw, err = m.MarshalJSON()
	d.check(err)
	d.check(os.WriteFile(file, raw, 0o600))
}

func (d *driver) seal() { d.check(d.handle().Seal(d.ctx())) }

func (d *driver) reopen() {
	d.check(d.c.Close())
	c, err := d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
	d.c = c
}

// lose deletes or damages views, repairs, and opens again.
func (d *driver) lose() {
	d.quiet()
	d.check(d.c.Close())
	d.check(d.other.Close())
	folder := filepath.Join(d.dir, d.c.ID().String())
	switch rapid.IntRange(0, 2).Draw(d.t, "what") {
	case 0:
		d.check(os.RemoveAll(filepath.Join(folder, "index.json")))
	case 1:
		d.check(os.WriteFile(filepath.Join(folder, "index.json"), bytes.Repeat([]byte{0}, 100), 0o600))
	case 2:
		d.check(os.RemoveAll(filepath.Join(folder, "messages")))
	}
	for _, err := range checking.Repair(d.ctx(), d.store, []uuid.UUID{d.c.ID()}, checking.Options{}) {
		d.check(err)
	}
	for f, err := range checking.Check(d.ctx(), d.store, []uuid.UUID{d.c.ID()}, checking.Options{}) {
		if d.check(err); f.Severity != integrity.SeverityInfo {
			d.t.Fatalf("a check finds %+v", f)
		}
	}
	var err error
	d.c, err = d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
	d.other, err = d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
}

// archive removes the files of some messages: all, what one branch shows, or some of them by their age.
func (d *driver) archive() {
	var o archiving.Options
	if rapid.Bool().Draw(d.t, "of one") {
		o.Branch = d.branch()
	}
	if rapid.Bool().Draw(d.t, "by age") {
		o.OlderThan = time.Duration(rapid.Int64Range(1, int64(time.Since(d.began))).Draw(d.t, "age"))
	}
	done, err := kit.Archive(d.ctx(), d.handle(), o)
	d.check(err)
	if done.Stayed > 0 {
		d.t.Fatalf("archived %+v: nothing was edited", done)
	}
}

func (d *driver) unarchive() {
	done, err := archiving.Unarchive(d.ctx(), d.handle(), nil)
	d.check(err)
	if done.Stayed > 0 {
		d.t.Fatalf("unarchived %+v", done)
	}
	for _, l := range d.c.Current().Lines {
		if l.Archived > 0 {
			d.t.Fatalf("something is archived still: %+v", l)
		}
	}
}
