package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Patient is a context that is damaged and repaired.
type Patient struct {
	T       *testing.T
	Store   *engine.Store
	ID      uuid.UUID
	Dir     string // of the context
	Outside string // a file that nothing may touch
	Want    map[string][]Body
	Main    []string // the message files of branch main, in order
	Blobs   []string // files of blobs
}

// Body is a message that a branch has to show.
type Body struct {
	ID   uuid.UUID
	Text string
}

// NewPatient makes a context of a branch with 40 messages, one with 10 of its own behind 20 of those, and an empty one.
// With log, a log has them; without, they are sealed.
func NewPatient(t *testing.T, log bool) *Patient {
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
	if !log {
		Check(t, c.Seal(ctx))
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
func (p *Patient) Check(readData bool) (found []integrity.Finding) {
	p.T.Helper()
	for f, err := range checking.Check(context.Background(), p.Store, nil, checking.Options{ReadData: readData}) {
		if err != nil {
			p.T.Fatalf("check: %v", err)
		}
		found = append(found, f)
	}
	return found
}

// Repair repairs the store, and returns what was repaired.
func (p *Patient) Repair(o checking.Options) (done []integrity.Repaired) {
	p.T.Helper()
	for r, err := range checking.Repair(context.Background(), p.Store, nil, o) {
		if err != nil {
			p.T.Fatalf("repair: %v", err)
		}
		done = append(done, r)
	}
	return done
}

// Heal checks, plans, repairs and checks again. It returns the findings and the number of unavailable
// messages.
func (p *Patient) Heal(o checking.Options) (found []integrity.Finding, lost int) {
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
		taken := strings.HasSuffix(f.Detail, "is missing from logs and segments") && !strings.Contains(f.Detail, ";") // what the file says counts
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && !taken &&
			(f.Kind == integrity.KindDamaged || f.Kind == integrity.KindMetadata) {
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
	if (len(planned) == 0) != (len(done) == 0) { // one repair may hide, or mend, what another one is about
		p.T.Errorf("%d planned, %d done: %v, %v", len(planned), len(done), planned, done)
	}
	for _, f := range p.Check(true) {
		if f.Repairable || f.Severity == integrity.SeverityError && f.Kind != integrity.KindPayload && f.Kind != integrity.KindBlob {
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
			case g.ID != w.ID:
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
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
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
