package erase_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// states are the states in which the files of a message can be. Each begins with a message in an open log.
var states = map[string]func(w *world){
	"in a log":           func(*world) {},
	"sealed":             func(w *world) { w.seal() },
	"in two open logs":   func(w *world) { w.rotate(); w.replace(string(kit.Secret(w.size))) },
	"replaced in a log":  func(w *world) { w.replace(string(kit.Secret(w.size + 1))); w.replace(`{"n":1}`) },
	"replaced, sealed":   func(w *world) { w.replace(string(kit.Secret(w.size + 1))); w.seal() },
	"replaced once more": func(w *world) { w.seal(); w.replace(`{"n":1}`) },
	"in several segments": func(w *world) {
		for n := range 3 {
			w.seal()
			w.replace(string(kit.Secret(w.size + n)))
			w.fill(1)
		}
		w.seal()
		w.replace(`{"n":1}`)
		w.seal()
		if n := len(w.glob("segments/*")); n < 4 {
			w.t.Fatalf("%d segments", n)
		}
	},
	"merged": func(w *world) {
		for range 12 {
			w.seal()
			w.fill(1)
		}
		w.seal()
		if n := len(w.glob("segments/*")); n > 7 {
			w.t.Fatalf("%d segments", n)
		}
	},
	"archived":                func(w *world) { w.archive() },
	"archived, replaced":      func(w *world) { w.archive(); w.replace(`{"n":1}`) },
	"archived, sealed again":  func(w *world) { w.archive(); w.replace(string(kit.Secret(w.size + 1))); w.seal() },
	"edited by hand":          func(w *world) { w.seal(); w.edit() },
	"edited in a log":         func(w *world) { w.edit() },
	"edited beside a segment": func(w *world) { b := w.read(w.view()); w.archive(); w.write(w.view(), b); w.edit() },
	"edited, replaced":        func(w *world) { w.seal(); w.edit(); w.replace(`{"n":1}`) },
	"a torn log": func(w *world) {
		log := w.glob("log-*")[0]
		b := w.read(log)
		end := bytes.LastIndexByte(bytes.TrimRight(b, "\n"), '}') + 2
		record := b[bytes.Index(b, []byte(`{"ctxdir":"message/1","id":"`+w.id.String()))-158:]
		copy(b[end:], record[:min(len(record), 400)])
		w.write(log, b)
	},
	"temporary files": func(w *world) {
		w.seal()
		for _, name := range []string{
			"log-00000000-9.jsonl.1.tmp", "metadata.json.tmp", "metadata.json123456", "index.json.tmp", "segments/.segment.zst.77.tmp",
			"messages/branch-main/." + w.id.String() + ".json.1.tmp",
		} {
			if !strings.Contains(name, "/") {
				name = "." + name
			}
			w.write(name, []byte("torn "+kit.Canary))
		}
	},
	"a segment that was merged is left": func(w *world) {
		w.seal()
		first := w.glob("segments/*")[0]
		b := w.read(first)
		for range 8 {
			w.fill(1)
			w.seal()
		}
		w.write(first, b)
	},
	"a log that was sealed is left": func(w *world) {
		log := w.glob("log-*")[0]
		kit.Check(w.t, w.c.Exclusively(w.t.Context(), w.c.Index.Rotate))
		b := w.read(log)
		w.seal()
		w.write(log, b)
	},
	"damaged in the trash": func(w *world) {
		item := "trash/" + uuid.NewString() + "/"
		first := w.glob("log-*")[0] // without the id, nothing but the text says whose a record is
		w.write(item+first, bytes.ReplaceAll(w.read(first), []byte(w.id.String()), []byte(strings.ToUpper(uuid.NewString()))))
		w.write("trash/"+uuid.NewString()+".json", []byte("\x00\x00 torn "+strings.Repeat(kit.Canary+" ", 5)))
		w.seal()
		for i, segment := range w.glob("segments/*") {
			b := w.read(segment)
			w.write(item+filepath.Base(segment), b)
			b[len(b)-1-i] ^= 1
			w.write("trash/"+uuid.NewString()+"/"+filepath.Base(segment), b)
		}
		log := w.glob("log-*")[0]
		w.fill(1)
		w.write(item+filepath.Base(log), append([]byte("kept\n"), w.record()...))
	},
	"a copy in the store's trash": func(w *world) { w.copyToTrash() },
	"a sealed copy in the store's trash": func(w *world) {
		w.seal()
		w.copyToTrash()
		w.archive()
	},
	"on a removed branch": func(w *world) {
		gone := kit.Must[*engine.Branch](w.t)(w.c.Active().Fork(w.t.Context(), "gone", 2))
		kit.Append(w.t, gone, engine.Draft{ID: w.id, Body: kit.Secret(w.size + 2)})
		kit.Check(w.t, w.c.Remove(w.t.Context(), "gone"))
	},
}

// TestErase: wherever a message lies, after an erase no byte of it is left, nor of what repeats it, and everything else is
// as it was. Nothing brings it back, not even its file.
func TestErase(t *testing.T) {
	t.Parallel()
	for name, change := range states {
		for _, size := range []int{20, 3000, 200_000} {
			if size != 3000 && !slices.Contains([]string{"in a log", "sealed", "archived", "edited by hand", "a copy in the store's trash"}, name) {
				continue
			}
			t.Run(fmt.Sprint(name, ", ", size), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, size)
				change(w)
				w.c.PutBlobs() // or the blob comes while trees are compared
				kit.Check(t, w.c.Flush(t.Context()), w.c.Refresh(t.Context()))
				if len(inside(t, w.dir, kit.Canary)) < 2 {
					t.Fatal("the canary is not there")
				}
				want := w.bodies()
				plan := w.plan()
				done := w.erase(erase.Options{Shared: true})
				for _, x := range plan {
					if !contains(done, x.Path) && !strings.HasSuffix(name, "is left") { // that goes before the search
						t.Errorf("planned and not done: %+v", x)
					}
				}
				if !contains(done, w.c.ID().String()+"/metadata.json") {
					t.Errorf("the title: %+v", done)
				}
				w.isErased("a handle that was open", want)
				if again := w.erase(erase.Options{Shared: true}); again[0].Reason != "already erased" {
					t.Errorf("a second time: %+v", again)
				}
				for p, b := range w.views {
					w.write(p, b)
				}
				kit.Check(t, os.RemoveAll(filepath.Join(w.folder, "index.json")), os.RemoveAll(filepath.Join(w.dir, "derived")))
				w.reopen()
				w.shows("the files are back", want)
				w.repair(want)
			})
		}
	}
}

// repair fails the test unless a check finds the files of erased messages, and a repair removes them.
func (w *world) repair(want map[string]string) {
	w.t.Helper()
	found := map[uuid.UUID]bool{}
	for f, err := range checking.Check(w.t.Context(), w.c.Store, nil, checking.Options{ReadData: true}) {
		if kit.Check(w.t, err); f.Kind == integrity.KindErased {
			found[f.ID] = true
		}
	}
	if len(found) != 2 || !found[w.id] || !found[kit.TestID(8)] {
		w.t.Errorf("a check found %v", found)
	}
	kit.Finish(w.t, checking.Repair(w.t.Context(), w.c.Store, nil, checking.Options{}))
	w.isErased("repaired", want)
}

func contains(done []erase.Removal, path string) bool {
	return slices.ContainsFunc(done, func(x erase.Removal) bool { return x.Path == path })
}

// world is a context with a message to erase, 7, which a fork shows, and from which the title, 8 and the moment 10 were
// made.
type world struct {
	t           *testing.T
	c           *engine.Context
	id          uuid.UUID
	size        int
	dir, folder string // of the store, and of the context
	views       map[string][]byte
}

func newWorld(t *testing.T, size int) *world {
	t.Helper()
	ctx := t.Context()
	s, dir := kit.NewStore(t, kit.Manual(1<<10)...)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	w := &world{t: t, c: c, id: kit.TestID(7), size: size, dir: dir, folder: filepath.Join(dir, c.ID().String()), views: map[string][]byte{}}
	w.fill(3)
	kit.Append(t, c.Active(), engine.Draft{ID: w.id, Body: kit.Secret(size)})
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(8), Body: kit.Secret(size), CopyOf: []uuid.UUID{w.id}})
	keep := fmt.Appendf(nil, `{"parentUuid":"%s","content":"%s"}`, w.id, strings.Repeat("kept ", 1000))
	at := kit.Append(t, c.Active(), engine.Draft{Body: keep})
	kit.Append(t, c.Active(), engine.Draft{Body: keep})
	kit.Check(t, c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"final":1}`)}))
	title := "About " + kit.Canary
	for n := range 3 { // a person changed it in between
		kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error {
			if m.Title = title; n == 1 {
				m.Title = "chosen"
			}
			if n == 0 {
				m.Extra.Set(origin.Key, fmt.Appendf(nil, `{"format":"codex","title":%q,"title_from":%q}`, title, w.id))
			}
			return nil
		}))
	}
	kit.Append(t, kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 5)), engine.Draft{Body: []byte(`{"alt":1}`)})
	kind := ctxfolder.Member{Key: ctxfolder.BranchKind, Value: []byte(`"moments"`)}
	kit.Append(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "notes", kind)), momentOf(10, 7, "noted: "+kit.Canary))
	for _, p := range w.glob("messages/branch-main/*.json") {
		w.views[p] = w.read(p)
	}
	w.write("../derived/cache", []byte(kit.Canary))
	t.Cleanup(func() { _ = w.c.Close() })
	return w
}

func (w *world) seal()        { w.t.Helper(); kit.Check(w.t, w.c.Seal(w.t.Context())) }
func (w *world) fill(n int)   { w.t.Helper(); kit.Fill(w.t, w.c.Active(), n) }
func (w *world) view() string { return "messages/branch-main/" + w.id.String() + ".json" }

func (w *world) rotate() {
	w.t.Helper()
	kit.Check(w.t, w.c.Exclusively(w.t.Context(), w.c.Index.Rotate))
}

func (w *world) replace(body string) {
	w.t.Helper()
	kit.Check(w.t, w.c.Active().Replace(w.t.Context(), w.id, engine.Draft{Body: []byte(body)}, engine.Shared()))
}

func (w *world) archive() {
	w.t.Helper()
	if done := kit.Must[archiving.Result](w.t)(kit.Archive(w.t.Context(), w.c, archiving.Options{})); done.Messages == 0 {
		w.t.Fatalf("%+v", done)
	}
}

// edit edits the file of the message by hand, and leaves what editors leave.
func (w *world) edit() {
	w.t.Helper()
	b := bytes.Replace(w.read(w.view()), []byte(`"message":{`), []byte(`"message": {"edited": "`+kit.Canary+`", `), 1)
	for _, p := range []string{w.view(), w.view() + "~", "messages/branch-main/." + w.id.String() + ".json.swp"} {
		w.write(p, b)
	}
	kit.Check(w.t, w.c.Refresh(w.t.Context()))
}

// record returns a record of a log with the message.
func (w *world) record() []byte {
	w.t.Helper()
	return []byte(`{"chain":"","body":{"ctxdir":"message/1","id":"` + w.id.String() + `","message":"` + kit.Canary + `"}}` + "\n")
}

func (w *world) copyToTrash() {
	w.t.Helper()
	item := filepath.Join(w.dir, "trash", uuid.NewString(), w.c.ID().String())
	kit.Check(w.t, os.CopyFS(item, os.DirFS(w.folder)))
}

func (w *world) glob(pattern string) (paths []string) {
	w.t.Helper()
	for _, p := range kit.Must[[]string](w.t)(filepath.Glob(filepath.Join(w.folder, pattern))) {
		paths = append(paths, strings.TrimPrefix(p, w.folder+"/"))
	}
	return paths
}

func (w *world) read(p string) []byte {
	w.t.Helper()
	return kit.Must[[]byte](w.t)(os.ReadFile(filepath.Join(w.folder, p)))
}

func (w *world) write(p string, b []byte) {
	w.t.Helper()
	path := filepath.Join(w.folder, p)
	kit.Check(w.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
}

func (w *world) reopen() {
	w.t.Helper()
	kit.Check(w.t, w.c.Close())
	w.c = kit.Must[*engine.Context](w.t)(w.c.Store.Context(w.t.Context(), w.c.ID()))
}

// plan is a dry run.
func (w *world) plan() []erase.Removal {
	w.t.Helper()
	before := kit.Tree(w.t, w.dir)
	plan := w.erase(erase.Options{Shared: true, DryRun: true})
	if kit.Tree(w.t, w.dir) != before {
		w.t.Fatal("a dry run changed something")
	}
	return plan
}

func (w *world) erase(o erase.Options) []erase.Removal {
	w.t.Helper()
	return kit.Must[[]erase.Removal](w.t)(kit.Erase(w.c.Store, w.c.ID(), w.id, o))
}

// bodies returns the body of each message of each branch.
func (w *world) bodies() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, info := range kit.Must[[]engine.BranchInfo](w.t)(w.c.Branches(w.t.Context())) {
		for _, m := range kit.Load(w.t, kit.Must[*engine.Branch](w.t)(w.c.Branch(info.Name))) {
			body := "erased"
			if !errors.Is(m.Unavailable, engine.ErrErased) {
				body = kit.BodyOf(m)
			}
			all[fmt.Sprint(info.Name, " ", m.Position, " ", m.ID)] = body
		}
	}
	return all
}

// shows fails the test unless every reader finds the message erased, with what repeats it, and everything else there.
func (w *world) shows(when string, want map[string]string) {
	w.t.Helper()
	kit.Check(w.t, w.c.Refresh(w.t.Context()))
	got := w.bodies()
	if len(got) != len(want) {
		w.t.Errorf("%s: %d messages, wanted %d", when, len(got), len(want))
	}
	for key, body := range want {
		if slices.ContainsFunc([]int{7, 8, 10}, func(n int) bool { return strings.HasSuffix(key, kit.TestID(n).String()) }) {
			body = "erased"
		}
		if got[key] != body {
			w.t.Errorf("%s: %s is %.60q, wanted %.60q", when, key, got[key], body)
		}
	}
	if title := w.c.Current().Title; title != "" {
		w.t.Errorf("%s: the title is %q", when, title)
	}
}

// isErased is shows for this handle and a new one, and fails the test if a byte of the message is left.
func (w *world) isErased(when string, want map[string]string) {
	w.t.Helper()
	if found := inside(w.t, w.dir, kit.Canary); len(found) > 0 {
		w.t.Errorf("%s: the canary is in %v", when, found)
	}
	if _, err := os.Lstat(filepath.Join(w.folder, ctxfolder.ErasingFile)); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("%s: the note: %v", when, err)
	}
	w.shows(when, want)
	other := *w
	other.c = kit.Must[*engine.Context](w.t)(w.c.Store.Context(w.t.Context(), w.c.ID()))
	other.shows("another handle", want)
	kit.Check(w.t, other.c.Close())
}
