package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// lateEdits is a context whose metadata.json people hold in editors and save late, beside commits, seals, archiving and
// power cuts, and the model of its metadata.
type lateEdits struct {
	t    *testing.T
	rand *rand.Rand
	disk *crashfs.FS
	s    *engine.Store
	c    *engine.Context
	log  []string

	committed map[string]string  // the values of members, by path; a missing member has none
	saved     map[string]*string // the edits in metadata.json that no writer has committed yet; nil for a removed member
	foreign   bool               // a person saved metadata.json since the last writer
	editors   []editor
}

// editor is what a person has open: a metadata.json as it was once.
type editor struct {
	revision int64
	text     []byte
}

var editedPaths = []string{
	"title", "state", "labels.a", "labels.b", "config.model_id", "config.x", "mine", "yours", "main.state", "main.more",
	"alt.state", "alt.more",
}

// member returns the object that holds the member of a path, its key, and a function that stores the object again.
func (l *lateEdits) member(m *engine.Object, path string) (in engine.Object, key string, store func(engine.Object)) {
	l.t.Helper()
	group, key, nested := strings.Cut(path, ".")
	switch {
	case !nested:
		return *m, path, func(o engine.Object) { *m = o }
	case group == "labels", group == "config":
		if raw := m.Get(group); raw != nil {
			kit.Check(l.t, in.UnmarshalJSON(raw))
		}
		return in, key, func(o engine.Object) { m.Set(group, kit.Must[[]byte](l.t)(o.MarshalJSON())) }
	}
	var branches []engine.Object
	kit.Check(l.t, json.Unmarshal(m.Get("branches"), &branches))
	i := slices.IndexFunc(branches, func(b engine.Object) bool { return b.Text("name") == group })
	return branches[i], key, func(o engine.Object) {
		branches[i] = o
		m.Set("branches", kit.Must[[]byte](l.t)(json.Marshal(branches)))
	}
}

// set sets the member of a path; nil removes it.
func (l *lateEdits) set(m *engine.Object, path string, value *string) {
	o, key, store := l.member(m, path)
	if value == nil {
		o.Set(key, nil)
	} else {
		o.SetText(key, *value)
	}
	store(o)
}

// shown returns the values that the context shows.
func (l *lateEdits) shown() map[string]string {
	var m engine.Object
	kit.Check(l.t, m.UnmarshalJSON(kit.Must[[]byte](l.t)(l.c.Metadata().MarshalJSON())))
	values := map[string]string{}
	for _, path := range editedPaths {
		o, key, _ := l.member(&m, path)
		if o.Get(key) != nil && (path != "title" || o.Text(key) != "") {
			values[path] = o.Text(key)
		}
	}
	return values
}

// wanted returns the values that the model shows.
func (l *lateEdits) wanted() map[string]string {
	values := maps.Clone(l.committed)
	for path, value := range l.saved {
		if delete(values, path); value != nil {
			values[path] = *value
		}
	}
	return values
}

// wrote notes that a writer committed the edits.
func (l *lateEdits) wrote() { l.committed, l.saved, l.foreign = l.wanted(), nil, false }

func (l *lateEdits) file() string { return l.c.ID().String() + "/metadata.json" }

func (l *lateEdits) open() {
	l.t.Helper()
	l.s = kit.Must[*engine.Store](l.t)(kit.OpenCrash(l.disk, engine.InOrder()))
	l.c = kit.Must[*engine.Context](l.t)(l.s.Context(l.t.Context(), kit.TestID(60000)))
}

func (l *lateEdits) close() { kit.Check(l.t, l.c.Close(), l.s.Close()) }

// value is a random value.
func (l *lateEdits) value() string { return fmt.Sprintf("é%d", l.rand.IntN(5)) }

// commit changes some members, as an agent does.
func (l *lateEdits) commit() {
	change := map[string]*string{}
	for range 1 + l.rand.IntN(3) {
		path := editedPaths[l.rand.IntN(len(editedPaths))]
		change[path] = nil
		if l.rand.IntN(4) > 0 {
			value := l.value()
			change[path] = &value
		}
	}
	kit.Check(l.t, l.c.Update(l.t.Context(), func(m *engine.Metadata) error {
		var o engine.Object
		if err := o.UnmarshalJSON(kit.Must[[]byte](l.t)(m.MarshalJSON())); err != nil {
			return err
		}
		for path, value := range change {
			l.set(&o, path, value)
		}
		changed, err := ctxfolder.ParseMetadata(kit.Must[[]byte](l.t)(o.MarshalJSON()))
		if err == nil {
			*m = *changed
		}
		return err
	}))
	l.wrote()
	for path, value := range change {
		if delete(l.committed, path); value != nil {
			l.committed[path] = *value
		}
	}
}

// save saves what a person has open, durably, with some members changed. Some tools spell the file in their own way,
// and some drop the members that they do not know.
func (l *lateEdits) save() {
	if len(l.editors) == 0 {
		return
	}
	e := l.editors[l.rand.IntN(len(l.editors))]
	var m engine.Object
	kit.Check(l.t, m.UnmarshalJSON(e.text))
	changed := map[string]*string{}
	for _, i := range l.rand.Perm(len(editedPaths))[:1+l.rand.IntN(2)] {
		path, value := editedPaths[i], l.value()
		o, key, _ := l.member(&m, path)
		had := o.Get(key) != nil
		if had && o.Text(key) == value {
			continue
		}
		if changed[path] = &value; had && path != "title" && l.rand.IntN(4) == 0 {
			changed[path] = nil
		}
		l.set(&m, path, changed[path])
	}
	text := kit.Must[[]byte](l.t)(m.MarshalJSON())
	how := "as it is"
	switch l.rand.IntN(4) {
	case 0:
		how, text = "respelled", []byte(strings.ReplaceAll(string(text), "é", `\u00e9`))
	case 1:
		how = "without sums"
		m.Set("member_sums", nil)
		text = kit.Must[[]byte](l.t)(m.MarshalJSON())
		if committed := kit.Must[*engine.Metadata](l.t)(l.c.Index.Metadata()); e.revision != committed.Revision {
			changed = nil
		}
	}
	for path, now := range changed {
		if was, there := l.committed[path]; now != nil && there && was == *now || now == nil && !there {
			delete(changed, path) // an agent made the same change
		}
	}
	dir := kit.Must[vfs.FS](l.t)(l.disk.Sub(l.c.ID().String()))
	kit.Check(l.t, dir.Replace("metadata.json", text), dir.SyncDir("."), dir.Close())
	l.saved, l.foreign = changed, true
	l.log = append(l.log, fmt.Sprintf("  revision %d, %s: %v", e.revision, how, slices.Sorted(maps.Keys(changed))))
}

// step does something at random, and returns its name.
func (l *lateEdits) step() string {
	ctx := l.t.Context()
	switch n := l.rand.IntN(20); {
	case n < 5:
		l.commit()
		return "commit"
	case n < 9:
		text := kit.Must[[]byte](l.t)(vfs.ReadFile(l.disk, l.file(), 1<<20))
		if m, err := ctxfolder.ParseMetadata(text); err == nil && !l.foreign && len(m.Branches) == 2 {
			l.editors = append(l.editors, editor{m.Revision, text})
		}
		return "open in an editor"
	case n < 13:
		l.save()
		return "save"
	case n < 14:
		kit.Append(l.t, l.c.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"text":"%0300d"}`, 1)})
		l.wrote()
		return "append"
	case n < 16:
		kit.Check(l.t, l.c.Seal(ctx))
		l.wrote()
		return "seal"
	case n < 17:
		if done := kit.Must[archiving.Result](l.t)(kit.Archive(ctx, l.c, archiving.Options{})); done.Messages > 0 {
			l.wrote()
		}
		return "archive"
	case n < 18:
		l.close()
		l.open()
		return "open again"
	default:
		l.disk = l.disk.Crash(crashfs.Random(l.rand.Uint64()))
		l.open()
		return "cut the power"
	}
}

// TestLateEdits lets people save a metadata.json that they opened a while ago, beside an agent's commits and all that
// seals and removes logs. Each save changes the members that its person changed and no other; without a proof of what the
// person changed it changes nothing, and a check says so.
func TestLateEdits(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
		c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{ID: kit.TestID(60000), Title: "é0"}))
		kit.Fill(t, c.Active(), 3)
		kit.Must[*engine.Branch](t)(c.Active().Fork(t.Context(), "alt", 2))
		l := &lateEdits{t: t, rand: rand.New(rand.NewPCG(seed, 0)), disk: disk, s: s, c: c, committed: map[string]string{"title": "é0"}}
		for range 60 {
			l.log = append(l.log, l.step())
			kit.Check(t, l.c.Refresh(t.Context()))
			if got, want := l.shown(), l.wanted(); !maps.Equal(got, want) {
				t.Fatalf("seed %d: it shows %v, wanted %v, after\n%s", seed, got, want, strings.Join(l.log, "\n"))
			}
		}
		l.close()
	}
}

// TestEditsWithoutProof: a file that was edited, is older than the newest change and does not say what was edited
// changes nothing. A check says so, and the next writer puts the file into the trash.
func TestEditsWithoutProof(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000), Title: "old"}))
	dir := kit.Must[vfs.FS](t)(disk.Sub(c.ID().String()))
	var m engine.Object
	kit.Check(t, m.UnmarshalJSON(kit.Must[[]byte](t)(vfs.ReadFile(dir, "metadata.json", 1<<20))))
	kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error { m.State = []byte(`"new"`); return nil }))
	m.SetText("title", "typed")
	m.Set("member_sums", nil)
	edited := kit.Must[[]byte](t)(m.MarshalJSON())
	kit.Check(t, dir.Replace("metadata.json", edited), dir.SyncDir("."))
	var said []integrity.Finding
	for f, err := range checking.Check(ctx, s, []uuid.UUID{c.ID()}, checking.Options{}) {
		kit.Check(t, err)
		said = append(said, f)
	}
	if len(said) != 1 || said[0].Kind != "metadata" || !said[0].Repairable || !strings.Contains(said[0].Detail, "its edits are ignored") {
		t.Errorf("a check says %+v", said)
	}
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	if m := c.Metadata(); m.Title != "old" || string(m.State) != `"new"` {
		t.Errorf("title %q, state %s", m.Title, m.State)
	}
	var items []string
	for e, err := range dir.ReadDir("trash") {
		kit.Check(t, err)
		items = append(items, e.Name())
	}
	if len(items) != 1 {
		t.Fatalf("the trash has %v", items)
	}
	if b, err := vfs.ReadFile(dir, "trash/"+items[0]+"/metadata.json", 1<<20); err != nil || string(b) != string(edited) {
		t.Errorf("the trash has %s, %v", b, err)
	}
	kit.Check(t, dir.Close(), c.Close(), s.Close())
}
