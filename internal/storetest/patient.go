package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Patient is a context that is damaged and mended.
type Patient struct {
	T       *testing.T
	Store   *engine.Store
	ID      uuid.UUID
	Dir     string // of the context
	Outside string // a file that nothing may touch
	Want    map[string][]Body
	Main    []string // the message files of branch main, in order
	Blobs   []string // files of blobs

	nameless bool // the ids of lost messages may not be known
}

// Body is a message that a branch has to show.
type Body struct {
	ID   uuid.UUID
	Text string
}

// NewPatient makes a context of a branch with 40 messages, one with 10 of its own behind 20 of those, and an empty one.
// With second, journals hold the messages too; without, message files are the only copy.
func NewPatient(t *testing.T, second bool) *Patient {
	ctx := context.Background()
	root := t.TempDir()
	p := &Patient{T: t, Outside: filepath.Join(root, "outside")}
	Write(t, p.Outside, []byte("outside"))
	p.Store = Must[*engine.Store](t)(Init(filepath.Join(root, "store"), Manual(200)...))
	c := Must[*engine.Context](t)(p.Store.Create(ctx, engine.Metadata{Title: "a title"}))
	p.ID, p.Dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	say := func(b *engine.Branch, from, n int) {
		for i := range n {
			text := fmt.Sprintf(`{"role":"user","content":"message %d of %s"}`, from+i, b.Name())
			if i == 3 {
				text = fmt.Sprintf(`{"role":"tool","content":"%s of %s"}`, strings.Repeat("long ", 100), b.Name())
			}
			Append(t, b, engine.Draft{Body: []byte(text)})
		}
	}
	say(c.Active(), 0, 40)
	alt := Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 20))
	say(alt, 20, 10)
	Must[*engine.Branch](t)(c.NewBranch(ctx, "empty"))
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if !second {
		if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
			t.Fatal(err)
		}
	}
	p.Want = p.Read(c)
	for _, b := range p.Want["main"] {
		p.Main = append(p.Main, filepath.Join(p.Dir, "messages", "branch-main", b.ID.String()+".json"))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p.Blobs = BlobFiles(t, p.Store.Path())
	return p
}

// Write writes a file.
func Write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read returns the messages of each branch; "" is the text of an unavailable one.
func (p *Patient) Read(c *engine.Context) map[string][]Body {
	p.T.Helper()
	ctx := context.Background()
	all := map[string][]Body{}
	for _, info := range Must[[]engine.BranchInfo](p.T)(c.Branches(ctx)) {
		b := Must[*engine.Branch](p.T)(c.Branch(info.Name))
		all[info.Name] = []Body{}
		for i, m := range Load(p.T, b) {
			if m.Position != int64(i) {
				p.T.Fatalf("branch %s: message %s at %d, wanted %d", info.Name, m.ID, m.Position, i)
			}
			text, err := m.Body(ctx)
			if m.Unavailable != nil || err != nil {
				text = nil
			}
			all[info.Name] = append(all[info.Name], Body{m.ID, string(text)})
		}
	}
	return all
}

// Change rewrites a file.
func (p *Patient) Change(path string, f func(b []byte) []byte) {
	p.T.Helper()
	Write(p.T, path, f(Must[[]byte](p.T)(os.ReadFile(path))))
}

// Remove removes files or folders.
func (p *Patient) Remove(paths ...string) {
	p.T.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			p.T.Fatal(err)
		}
	}
}

// Glob returns the files of the context that match a pattern.
func (p *Patient) Glob(pattern string) []string {
	p.T.Helper()
	found, err := filepath.Glob(filepath.Join(p.Dir, pattern))
	if err != nil || len(found) == 0 {
		p.T.Fatalf("nothing like %s: %v", pattern, err)
	}
	return found
}

// KeepTime runs f and then resets the time of the file.
func (p *Patient) KeepTime(path string, f func()) {
	p.T.Helper()
	info := Must[os.FileInfo](p.T)(os.Lstat(path))
	f()
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		p.T.Fatal(err)
	}
}

// Check returns the findings of a check of the store.
func (p *Patient) Check(readData bool) (found []engine.Finding) {
	p.T.Helper()
	for f, err := range p.Store.Check(context.Background(), nil, engine.CheckOptions{ReadData: readData}) {
		if err != nil {
			p.T.Fatalf("check: %v", err)
		}
		found = append(found, f)
	}
	return found
}

// Repair repairs the store, and returns what was mended.
func (p *Patient) Repair(o engine.CheckOptions) (done []engine.Repaired) {
	p.T.Helper()
	for r, err := range p.Store.Repair(context.Background(), nil, o) {
		if err != nil {
			p.T.Fatalf("repair: %v", err)
		}
		done = append(done, r)
	}
	return done
}

// Heal checks, plans, repairs and checks again. It returns the findings and the number of unavailable
// messages.
func (p *Patient) Heal(o engine.CheckOptions) (found []engine.Finding, lost int) {
	p.T.Helper()
	ctx := context.Background()
	found = p.Check(true)
	before := Tree(p.T, p.Store.Path())
	o.DryRun = true
	planned := p.Repair(o)
	if after := Tree(p.T, p.Store.Path()); before != after {
		p.T.Errorf("check or dry run changed something")
	}
	replaced := map[string][]byte{}
	for _, f := range found {
		path := filepath.Join(p.Store.Path(), filepath.FromSlash(f.Path))
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() &&
			(f.Kind == integrity.KindDamaged || f.Kind == integrity.KindMetadata || f.Kind == integrity.KindStructure) {
			replaced[path] = Must[[]byte](p.T)(os.ReadFile(path))
		}
	}
	o.DryRun = false
	done := p.Repair(o)
	for path, raw := range replaced {
		if !p.InTrash(raw) {
			p.T.Errorf("no copy of %s in trash", path)
		}
	}
	if len(planned) != len(done) {
		p.T.Errorf("%d planned, %d done: %v, %v", len(planned), len(done), planned, done)
	}
	for _, f := range p.Check(true) {
		if f.Repairable || f.Severity == engine.SeverityError && f.Kind != integrity.KindPayload && f.Kind != integrity.KindBlob {
			p.T.Errorf("after repair: %+v", f)
		}
	}
	if again := p.Repair(o); len(again) > 0 {
		p.T.Errorf("a second repair did %+v", again)
	}
	c, err := p.Store.Context(ctx, p.ID)
	if err != nil {
		p.T.Fatalf("after repair: %v", err)
	}
	defer c.Close()
	got := p.Read(c)
	for name, want := range p.Want {
		if len(got[name]) != len(want) {
			p.T.Errorf("branch %s has %d messages, wanted %d", name, len(got[name]), len(want))
			continue
		}
		for i, w := range want {
			switch g := got[name][i]; {
			case g.ID != w.ID && (g.ID != uuid.Nil || !p.nameless):
				p.T.Errorf("branch %s, position %d: %s, wanted %s", name, i, g.ID, w.ID)
			case g.Text == "":
				lost++
			case g.Text != w.Text:
				p.T.Errorf("branch %s, position %d: %.80s, wanted %.80s", name, i, g.Text, w.Text)
			}
		}
	}
	if b, _ := os.ReadFile(p.Outside); string(b) != "outside" {
		p.T.Error("a file outside the store was written")
	}
	Append(p.T, c.Active(), engine.Draft{Body: json.RawMessage(`{"after":1}`)})
	return found, lost
}

// InTrash reports whether a file with this content is in the trash of the context.
func (p *Patient) InTrash(raw []byte) (found bool) {
	p.T.Helper()
	err := filepath.Walk(filepath.Join(p.Dir, "trash"), func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Equal(b, raw)
		return err
	})
	if err != nil {
		p.T.Fatal(err)
	}
	return found
}

// FlipBit returns bytes with one bit changed in the middle.
func FlipBit(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 0x55
	return b
}

// Move moves a file to a folder of the context.
func (p *Patient) Move(path, to string) {
	p.T.Helper()
	if err := os.Rename(path, filepath.Join(p.Dir, filepath.FromSlash(to), filepath.Base(path))); err != nil {
		p.T.Fatal(err)
	}
}

// Mkdir makes a folder.
func (p *Patient) Mkdir(path string) {
	p.T.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		p.T.Fatal(err)
	}
}

// Link makes a symbolic link, and skips the test where there are none.
func (p *Patient) Link(to, path string) {
	p.T.Helper()
	if err := os.Symlink(to, path); err != nil {
		p.T.Skipf("no symbolic links here: %v", err)
	}
}

// Foreign writes a valid message that was never committed into a folder. It claims a position of main's line.
func (p *Patient) Foreign(folder string, position int) uuid.UUID {
	p.T.Helper()
	raw := Must[[]byte](p.T)(os.ReadFile(p.Main[30]))
	id := uuid.New()
	raw = bytes.Replace(raw, []byte(`"id":"`+p.Want["main"][30].ID.String()), []byte(`"id":"`+id.String()), 1)
	raw = bytes.Replace(raw, []byte(`"position":30`), fmt.Appendf(nil, `"position":%d`, position), 1)
	raw = bytes.Replace(raw, []byte(`"prev":"`+p.Want["main"][29].ID.String()), []byte(`"prev":"`+p.Want["main"][position-1].ID.String()), 1)
	Write(p.T, filepath.Join(p.Dir, "messages", folder, id.String()+".json"), raw)
	return id
}

// Metadata changes metadata.json.
func (p *Patient) Metadata(f func(m map[string]any)) {
	p.T.Helper()
	var m map[string]any
	path := p.Glob("metadata.json")[0]
	if err := json.Unmarshal(Must[[]byte](p.T)(os.ReadFile(path)), &m); err != nil {
		p.T.Fatal(err)
	}
	f(m)
	Write(p.T, path, Must[[]byte](p.T)(json.Marshal(m)))
}

// Cycle makes two lines of metadata.json each other's parents.
func (p *Patient) Cycle() {
	p.T.Helper()
	p.Metadata(func(m map[string]any) {
		lines := m["lines"].([]any)
		a, b := lines[0].(map[string]any), lines[1].(map[string]any)
		a["parent"], a["base"], b["parent"], b["base"] = b["id"], 20, a["id"], 20
	})
}

// EditIndex puts a text in the place of the first match in index.json, and makes the check at its end right.
func (p *Patient) EditIndex(match *regexp.Regexp, text string) {
	p.T.Helper()
	p.Change(p.Glob("index.json")[0], func(b []byte) []byte {
		at := match.FindIndex(b)
		if at == nil {
			p.T.Fatalf("no %v in %s", match, b)
		}
		b = slices.Concat(b[:at[0]], []byte(text), b[at[1]:])
		end := bytes.LastIndex(b, []byte(`"check"`))
		return fmt.Appendf(b[:end:end], "\"check\": \"%016x\"\n}\n", xxhash.Sum64(b[:end]))
	})
}
