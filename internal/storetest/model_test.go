package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// modelLine is a line as the documentation describes it: some messages of a parent, then its own.
type modelLine struct {
	parent *modelLine
	base   int
	own    []*modelMessage
}

type modelMessage struct {
	id   uuid.UUID
	body string
}

func (l *modelLine) view() []*modelMessage {
	if l.parent == nil {
		return slices.Clone(l.own)
	}
	return append(l.parent.view()[:l.base:l.base], l.own...)
}

// model is a context without a disk.
type model struct {
	branches map[string]*modelLine
	lines    []*modelLine
	active   string
	title    string
	label    string
}

func (m *model) names() []string {
	var names []string
	for n := range m.branches {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// begin makes a line of the first at messages of another; the owner of the last one is its parent.
func (m *model) begin(of *modelLine, at int) *modelLine {
	for of != nil && at <= of.base {
		of = of.parent
	}
	l := &modelLine{parent: of, base: at}
	if at == 0 {
		l.parent = nil
	}
	m.lines = append(m.lines, l)
	return l
}

// driver runs operations on a context and on the model, and compares.
type driver struct {
	t     *rapid.T
	dir   string
	files engine.MessageFiles
	began time.Time
	store *engine.Store
	c     *engine.Context
	other *engine.Context // a second handle, as another process would have
	m     model
	n     int

	trash map[uuid.UUID]*modelLine // the removed lines
}

func (d *driver) ctx() context.Context { return context.Background() }

func (d *driver) check(err error) {
	if err != nil {
		d.t.Helper()
		d.t.Fatal(err)
	}
}

func (d *driver) branch() string { return rapid.SampledFrom(d.m.names()).Draw(d.t, "branch") }

func (d *driver) body() string {
	d.n++
	size := rapid.SampledFrom([]int{0, 10, 3000, 30000}).Draw(d.t, "size")
	return fmt.Sprintf(`{"role":"user","n":%d,"f":0.000003,"text":%q}`, d.n, strings.Repeat("x", size))
}

// handle is the one that acts: what the other one does must be visible after Refresh.
func (d *driver) handle() *engine.Context {
	if rapid.IntRange(0, 3).Draw(d.t, "handle") == 0 {
		d.c, d.other = d.other, d.c
	}
	d.check(d.c.Refresh(d.ctx()))
	return d.c
}

func (d *driver) open(name string) *engine.Branch {
	b, err := d.handle().Branch(name)
	d.check(err)
	return b
}

// compare reads everything in every way and holds it against the model.
func (d *driver) compare() {
	c := d.handle()
	infos, err := c.Branches(d.ctx())
	d.check(err)
	if len(infos) != len(d.m.branches) || c.Metadata().ActiveBranch != d.m.active || c.Metadata().Title != d.m.title {
		d.t.Fatalf("branches %v, wanted %q; active %q, wanted %q; title %q, wanted %q",
			infos, d.m.names(), c.Metadata().ActiveBranch, d.m.active, c.Metadata().Title, d.m.title)
	}
	if m := c.Metadata(); m.Labels.Texts()["model"] != d.m.label || m.Kind != "" {
		d.t.Fatalf("labels %v, want %q; kind %q", m.Labels.Texts(), d.m.label, m.Kind)
	}
	if sum := listing.Summarise(c); sum.Problem == nil && (sum.Title != d.m.title || sum.Labels["model"] != d.m.label) {
		d.t.Fatalf("summary: title %q, labels %v", sum.Title, sum.Labels)
	}
	reachable := map[*modelMessage]bool{}
	for _, info := range infos {
		l := d.m.branches[info.Name]
		if l == nil {
			d.t.Fatalf("branch %q should not be there", info.Name)
		}
		view := l.view()
		for _, m := range view {
			reachable[m] = true
		}
		if info.Messages != int64(len(view)) || info.Base != int64(l.base) {
			d.t.Fatalf("branch %q: %+v, wanted %d messages, base %d", info.Name, info, len(view), l.base)
		}
		entries, err := c.Index.Entries(info.Line, info.Base, info.Messages)
		d.check(err)
		var size int64
		for _, e := range entries {
			size += e.Size
		}
		if info.Bytes != size {
			d.t.Fatalf("branch %q: %d bytes, its entries have %d", info.Name, info.Bytes, size)
		}
		b, err := c.Branch(info.Name)
		d.check(err)
		at := 0
		for m, err := range b.Messages(d.ctx()) {
			d.check(err)
			d.same(view, at, m)
			at++
		}
		if at != len(view) {
			d.t.Fatalf("branch %q shows %d messages, wanted %d", info.Name, at, len(view))
		}
		from := rapid.IntRange(0, len(view)).Draw(d.t, "from")
		to := rapid.IntRange(from, len(view)+3).Draw(d.t, "to")
		ms, err := b.Range(d.ctx(), int64(from), int64(to))
		d.check(err)
		if len(ms) != min(to, len(view))-from {
			d.t.Fatalf("range %d:%d of %d gives %d", from, to, len(view), len(ms))
		}
		for i, m := range ms {
			d.same(view, from+i, m)
		}
		last, err := b.Last(d.ctx(), 5)
		d.check(err)
		for i, m := range last {
			d.same(view, len(view)-len(last)+i, m)
		}
		for i, want := range view {
			if i%7 != d.n%7 {
				continue
			}
			m, err := b.Message(d.ctx(), want.id)
			d.check(err)
			if kit.BodyOf(m) != want.body {
				d.t.Fatalf("message %s by id has another body", want.id)
			}
		}
		if _, err := b.Message(d.ctx(), uuid.New()); !errors.Is(err, engine.ErrNotExist) {
			d.t.Fatalf("an unknown id: %v", err)
		}
	}
	if got := listing.Summarise(c); got.Messages != int64(len(reachable)) || got.Problem != nil {
		d.t.Fatalf("summary %+v, wanted %d messages", got, len(reachable))
	}
}

func (d *driver) same(view []*modelMessage, at int, m *engine.Message) {
	d.t.Helper()
	if m.Position != int64(at) || m.ID != view[at].id || m.Unavailable != nil || m.Edited || kit.BodyOf(m) != view[at].body {
		d.t.Fatalf("position %d: %s at %d, unavailable %v, edited %v, body %.300s; wanted %s, %.300s",
			at, m.ID, m.Position, m.Unavailable, m.Edited, kit.BodyOf(m), view[at].id, view[at].body)
	}
}

// operations of one property run; rapid does 100 runs, in short mode 20.
func operations() int {
	if testing.Short() {
		return 40
	}
	return 110
}

func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ctxdir-model-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files := rapid.SampledFrom([]engine.MessageFiles{engine.FilesBehind, engine.FilesOnReturn, engine.FilesHeld}).Draw(t, "files")
		// The sync is left out for speed: nothing loses power here.
		s, err := kit.Init(dir, engine.WithDurability(engine.Relaxed),
			engine.WithSealBytes(rapid.SampledFrom([]int64{-1, 2000, 100000}).Draw(t, "seal at")),
			engine.WithFiles(files),
			engine.WithTextThreshold(rapid.SampledFrom([]int64{-1, 0, 1 << 10}).Draw(t, "threshold")),
			engine.WithPool(rapid.SampledFrom([]int64{0, 5000, 1 << 20}).Draw(t, "pool")))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		d := &driver{t: t, dir: dir, files: files, began: time.Now(), store: s, trash: map[uuid.UUID]*modelLine{}}
		d.begin()
		ops := map[string]func(){
			"append": d.append, "batch": d.batch, "replace": d.replace, "fork": d.fork, "rewind": d.rewind, "rename": d.rename,
			"remove": d.remove, "switch": d.switchTo, "update": d.update, "edit": d.edit, "seal": d.seal, "reopen": d.reopen, "lose": d.lose,
			"collect": d.collect, "restore": d.restore, "archive": d.archive, "unarchive": d.unarchive, "rollback": d.rollback,
			"commit": d.commit,
		}
		often := strings.Fields("append append append append batch batch replace replace fork fork rewind rename remove switch " +
			"update commit commit commit edit seal seal reopen lose collect restore archive archive unarchive rollback")
		for i := range operations() {
			ops[rapid.SampledFrom(often).Draw(t, "operation")]()
			if i%10 == 9 {
				d.compare()
			}
		}
		d.check(d.c.Close())
		d.check(d.other.Close())
	})
}
