package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
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
	began time.Time
	store *engine.Store
	c     *engine.Context
	other *engine.Context // a second handle, as another process would have
	m     model
	n     int

	lines map[uuid.UUID]*modelLine
	trash map[uuid.UUID]modelTrash // by item
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
	for _, item := range d.items() {
		for _, m := range d.trash[item].own {
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
	d.check(d.open(name).Rewind(d.ctx(), int64(to)))
	if to != len(l.view()) {
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
	if packs, _ := filepath.Glob(filepath.Join(d.dir, d.c.ID().String(), "archive", "*")); len(l.own) > 0 && len(packs) == 0 {
		if _, err := os.Stat(filepath.Join(d.dir, d.c.ID().String(), "messages", d.folder(to))); err != nil {
			d.t.Fatalf("the folder does not bear the new name: %v", err)
		}
	}
}

func (d *driver) folder(name string) string {
	m := d.c.Metadata()
	b, _ := m.Branch(name)
	l, _ := m.Line(b.Line)
	return l.Folder
}

func (d *driver) remove() {
	name := d.branch()
	err := d.handle().Remove(d.ctx(), name)
	if name == d.m.active {
		if !errors.Is(err, engine.ErrActive) {
			d.t.Fatalf("removing the active branch: %v", err)
		}
		return
	}
	d.check(err)
	delete(d.m.branches, name)
}

func (d *driver) switchTo() {
	name := d.branch()
	d.check(d.handle().Switch(d.ctx(), name))
	d.m.active = name
}

func (d *driver) update() {
	d.m.title = d.body()
	d.check(d.handle().Update(d.ctx(), func(m *engine.Metadata) error {
		m.Title = d.m.title
		m.Lines, m.ActiveBranch = nil, "nonsense" // is undone
		return nil
	}))
}

func (d *driver) fold() { d.check(d.handle().Fold(d.ctx())) }

func (d *driver) reopen() {
	d.check(d.c.Close())
	c, err := d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
	d.c = c
}

// lose deletes the caches, or damages them, and opens again: message files and metadata.json are the truth.
func (d *driver) lose() {
	d.check(d.c.Close())
	d.check(d.other.Close())
	folder := filepath.Join(d.dir, d.c.ID().String())
	journals, _ := filepath.Glob(filepath.Join(folder, "journal-*"))
	switch rapid.IntRange(0, 4).Draw(d.t, "what") {
	case 0:
		d.check(os.RemoveAll(filepath.Join(folder, "index.json")))
	case 1:
		d.check(os.RemoveAll(filepath.Join(folder, "index")))
	case 2:
		for _, j := range journals {
			d.check(os.RemoveAll(j))
		}
	case 3:
		for _, j := range append(journals, filepath.Join(folder, "index.json")) {
			d.check(os.RemoveAll(j))
		}
		d.check(os.RemoveAll(filepath.Join(folder, "index")))
	case 4:
		d.check(os.WriteFile(filepath.Join(folder, "index.json"), bytes.Repeat([]byte{0}, 100), 0o600))
	}
	var err error
	d.c, err = d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
	d.other, err = d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
}

// archive moves some messages to a pack: all, what one branch shows, or some of them by their age.
func (d *driver) archive() {
	var o engine.ArchiveOptions
	if rapid.Bool().Draw(d.t, "of one") {
		o.Branch = d.branch()
	}
	if rapid.Bool().Draw(d.t, "by age") {
		o.OlderThan = time.Duration(rapid.Int64Range(1, int64(time.Since(d.began))).Draw(d.t, "age"))
	}
	done, err := d.handle().Archive(d.ctx(), o)
	d.check(err)
	if done.Stayed > 0 {
		d.t.Fatalf("archived %+v: nothing was edited", done)
	}
}

func (d *driver) unarchive() {
	done, err := d.handle().Unarchive(d.ctx(), nil)
	d.check(err)
	if done.Stayed > 0 {
		d.t.Fatalf("unarchived %+v", done)
	}
	packs, err := filepath.Glob(filepath.Join(d.dir, d.c.ID().String(), "archive", "*"))
	d.check(err)
	if len(packs) > 0 && done.Messages > 0 {
		uses, err := d.c.Log.PackUses(d.ctx())
		d.check(err)
		for _, use := range uses {
			if use.Bytes > 0 {
				d.t.Fatalf("something is archived still: %+v", use)
			}
		}
	}
}

// compare reads everything in every way and holds it against the model.
func (d *driver) compare() {
	c := d.handle()
	infos, err := c.Branches(d.ctx())
	d.check(err)
	if len(infos) != len(d.m.branches) || c.Metadata().ActiveBranch != d.m.active || c.Metadata().Title != d.m.title {
		d.t.Fatalf("branches %v, active %q, title %q", infos, c.Metadata().ActiveBranch, c.Metadata().Title)
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
		entries, err := c.Log.Entries(info.Line, info.Base, info.Messages)
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
	if got := c.Summary(); got.Messages != int64(len(reachable)) || got.Problem != nil {
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

// operations of one property run; rapid does 100 runs.
const operations = 110

func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ctxdir-model-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		// The sync is left out for speed: nothing loses power here.
		s, err := kit.Init(dir, engine.WithDurability(engine.Relaxed),
			engine.WithFoldBytes(rapid.SampledFrom([]int64{-1, 2000, 100000}).Draw(t, "fold at")),
			engine.WithRetain(rapid.SampledFrom([]int{1, 3, 16}).Draw(t, "retain")),
			engine.WithTextThreshold(rapid.SampledFrom([]int64{-1, 0, 1 << 10}).Draw(t, "threshold")),
			engine.WithPool(rapid.SampledFrom([]int64{0, 5000, 1 << 20}).Draw(t, "pool")))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		d := &driver{t: t, dir: dir, began: time.Now(), store: s, lines: map[uuid.UUID]*modelLine{}, trash: map[uuid.UUID]modelTrash{}}
		d.begin()
		ops := map[string]func(){
			"append": d.append, "batch": d.batch, "replace": d.replace, "fork": d.fork, "rewind": d.rewind, "rename": d.rename,
			"remove": d.remove, "switch": d.switchTo, "update": d.update, "fold": d.fold, "reopen": d.reopen, "lose": d.lose,
			"collect": d.collect, "restore": d.restore, "archive": d.archive, "unarchive": d.unarchive, "rollback": d.rollback,
		}
		often := strings.Fields("append append append append batch batch replace replace fork fork rewind rename remove switch " +
			"update fold fold reopen lose collect restore archive archive unarchive rollback")
		for i := range operations {
			ops[rapid.SampledFrom(often).Draw(t, "operation")]()
			d.learn()
			if i%10 == 9 {
				d.compare()
			}
		}
		d.check(d.c.Close())
		d.check(d.other.Close())
	})
}
