package engine

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
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
)

// patient is a context that is damaged and mended.
type patient struct {
	t       *testing.T
	store   *Store
	id      uuid.UUID
	dir     string // of the context
	outside string // a file that nothing may touch
	want    map[string][]body
	main    []string // the message files of branch main, in order
	blobs   []string // files of blobs

	nameless bool // the ids of lost messages may not be known
}

type body struct {
	id   uuid.UUID
	text string
}

// newPatient makes a context of a branch with 40 messages, one with 10 of its own behind 20 of those, and an empty one. With
// second, journals hold the messages too; without, message files are the only copy.
func newPatient(t *testing.T, second bool) *patient {
	ctx := context.Background()
	root := t.TempDir()
	p := &patient{t: t, outside: filepath.Join(root, "outside")}
	write(t, p.outside, []byte("outside"))
	p.store = must[*Store](t)(Init(filepath.Join(root, "store"), WithFoldBytes(-1), WithTextThreshold(200), withoutPause()))
	c := must[*Context](t)(p.store.Create(ctx, Metadata{Title: "a title"}))
	p.id, p.dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	say := func(b *Branch, from, n int) {
		for i := range n {
			text := fmt.Sprintf(`{"role":"user","content":"message %d of %s"}`, from+i, b.Name())
			if i == 3 {
				text = fmt.Sprintf(`{"role":"tool","content":"%s of %s"}`, strings.Repeat("long ", 100), b.Name())
			}
			must[Appended](t)(b.Append(ctx, Draft{Body: []byte(text)}))
		}
	}
	say(c.Active(), 0, 40)
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 20))
	say(alt, 20, 10)
	must[*Branch](t)(c.NewBranch(ctx, "empty"))
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if !second {
		if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
			t.Fatal(err)
		}
	}
	p.want = p.read(c)
	for _, b := range p.want["main"] {
		p.main = append(p.main, filepath.Join(p.dir, "messages", "branch-main", b.id.String()+".json"))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p.blobs = blobFiles(t, p.store.Path())
	return p
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns what each branch shows; "" stands for what cannot be had.
func (p *patient) read(c *Context) map[string][]body {
	p.t.Helper()
	ctx := context.Background()
	all := map[string][]body{}
	for _, info := range must[[]BranchInfo](p.t)(c.Branches(ctx)) {
		b := must[*Branch](p.t)(c.Branch(info.Name))
		all[info.Name] = []body{}
		for i, m := range must[[]*Message](p.t)(b.Load(ctx)) {
			if m.Position != int64(i) {
				p.t.Fatalf("branch %s: message %s at %d, wanted %d", info.Name, m.ID, m.Position, i)
			}
			text, err := m.Body(ctx)
			if m.Unavailable != nil || err != nil {
				text = nil
			}
			all[info.Name] = append(all[info.Name], body{m.ID, string(text)})
		}
	}
	return all
}

// change rewrites a file.
func (p *patient) change(path string, f func(b []byte) []byte) {
	p.t.Helper()
	write(p.t, path, f(must[[]byte](p.t)(os.ReadFile(path))))
}

func (p *patient) remove(paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *patient) glob(pattern string) []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.dir, pattern))
	if err != nil || len(found) == 0 {
		p.t.Fatalf("nothing like %s: %v", pattern, err)
	}
	return found
}

// keepTime does something to a file and gives it back the time it had.
func (p *patient) keepTime(path string, f func()) {
	p.t.Helper()
	info := must[os.FileInfo](p.t)(os.Lstat(path))
	f()
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) check(readData bool) (found []Finding) {
	p.t.Helper()
	for f, err := range p.store.Check(context.Background(), nil, CheckOptions{ReadData: readData}) {
		if err != nil {
			p.t.Fatalf("check: %v", err)
		}
		found = append(found, f)
	}
	return found
}

func (p *patient) repair(o CheckOptions) (done []Repaired) {
	p.t.Helper()
	for r, err := range p.store.Repair(context.Background(), nil, o) {
		if err != nil {
			p.t.Fatalf("repair: %v", err)
		}
		done = append(done, r)
	}
	return done
}

// heal checks, plans, repairs and checks again. It returns what was found, and how many messages cannot be had.
func (p *patient) heal(o CheckOptions) (found []Finding, lost int) {
	p.t.Helper()
	ctx := context.Background()
	found = p.check(true)
	before := tree(p.t, p.store.Path())
	o.DryRun = true
	planned := p.repair(o)
	if after := tree(p.t, p.store.Path()); before != after {
		p.t.Errorf("check or dry run changed something")
	}
	replaced := map[string][]byte{}
	for _, f := range found {
		path := filepath.Join(p.store.Path(), filepath.FromSlash(f.Path))
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() &&
			(f.Kind == integrity.KindDamaged || f.Kind == integrity.KindMetadata || f.Kind == integrity.KindStructure) {
			replaced[path] = must[[]byte](p.t)(os.ReadFile(path))
		}
	}
	o.DryRun = false
	done := p.repair(o)
	for path, raw := range replaced {
		if !p.inTrash(raw) {
			p.t.Errorf("no copy of %s in trash", path)
		}
	}
	if len(planned) != len(done) {
		p.t.Errorf("%d planned, %d done: %v, %v", len(planned), len(done), planned, done)
	}
	for _, f := range p.check(true) {
		if f.Repairable || f.Severity == SeverityError && f.Kind != integrity.KindPayload && f.Kind != integrity.KindBlob {
			p.t.Errorf("after repair: %+v", f)
		}
	}
	if again := p.repair(o); len(again) > 0 {
		p.t.Errorf("a second repair did %+v", again)
	}
	c, err := p.store.Context(ctx, p.id)
	if err != nil {
		p.t.Fatalf("after repair: %v", err)
	}
	defer c.Close()
	got := p.read(c)
	for name, want := range p.want {
		if len(got[name]) != len(want) {
			p.t.Errorf("branch %s has %d messages, wanted %d", name, len(got[name]), len(want))
			continue
		}
		for i, w := range want {
			switch g := got[name][i]; {
			case g.id != w.id && (g.id != uuid.Nil || !p.nameless):
				p.t.Errorf("branch %s, position %d: %s, wanted %s", name, i, g.id, w.id)
			case g.text == "":
				lost++
			case g.text != w.text:
				p.t.Errorf("branch %s, position %d: %.80s, wanted %.80s", name, i, g.text, w.text)
			}
		}
	}
	if b, _ := os.ReadFile(p.outside); string(b) != "outside" {
		p.t.Error("a file outside the store was written")
	}
	must[Appended](p.t)(c.Active().Append(ctx, Draft{Body: json.RawMessage(`{"after":1}`)}))
	return found, lost
}

// inTrash reports whether a file with this content is in the trash of the context.
func (p *patient) inTrash(raw []byte) (found bool) {
	p.t.Helper()
	err := filepath.Walk(filepath.Join(p.dir, "trash"), func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Equal(b, raw)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// flipped returns bytes with one bit changed in the middle.
func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 0x55
	return b
}

// TestDamage damages a context in each way of the table in docs/RELIABILITY.md. lost is how many of the 70 messages that branches
// show may be gone when message files are the only copy, and lost2 when journals still hold them.
func TestDamage(t *testing.T) {
	const (
		shared = 2  // a message before the fork is shown by two branches
		all    = 70 // that branches show
	)
	none := map[string]int{}
	for _, d := range []struct {
		name        string
		do          func(p *patient)
		kind        integrity.Kind // that check tells, "" for nothing it must tell
		lost, lost2 int
		branches    map[string]int // lengths that differ
	}{
		{"message file missing", func(p *patient) { p.remove(p.main[5]) }, integrity.KindMissing, shared, 0, none},
		{"message file empty", func(p *patient) { write(p.t, p.main[5], nil) }, integrity.KindDamaged, shared, 0, none},
		{"message file truncated", func(p *patient) {
			p.change(p.main[5], func(b []byte) []byte { return b[:30] })
		}, integrity.KindDamaged, shared, 0, none},
		{"message file NUL-filled", func(p *patient) {
			p.change(p.main[30], func(b []byte) []byte { return make([]byte, len(b)) })
		}, integrity.KindDamaged, 1, 0, none},
		{"bit flipped, time kept", func(p *patient) {
			p.keepTime(p.main[5], func() { p.change(p.main[5], flipped) })
		}, integrity.KindDamaged, shared, 0, none},
		{"three in a row NUL-filled", func(p *patient) {
			for _, path := range p.main[30:33] {
				p.change(path, func(b []byte) []byte { return make([]byte, len(b)) })
			}
		}, integrity.KindDamaged, 3, 0, none},
		{"valid JSON with another id", func(p *patient) {
			p.change(p.main[30], func(b []byte) []byte { return bytes.Replace(b, []byte(`"id":"0`), []byte(`"id":"1`), 1) })
		}, integrity.KindDamaged, 1, 0, none},
		{"in the wrong branch folder", func(p *patient) { p.move(p.main[30], "messages/branch-alt") }, integrity.KindMisplaced, 0, 0, none},
		{"in messages itself", func(p *patient) { p.move(p.main[30], "messages") }, integrity.KindMisplaced, 0, 0, none},
		{"two files with one id", func(p *patient) {
			write(p.t, filepath.Join(p.dir, "messages", "branch-alt", filepath.Base(p.main[30])), must[[]byte](p.t)(os.ReadFile(p.main[30])))
		}, integrity.KindDuplicate, 0, 0, none},
		{"replaced by a folder", func(p *patient) {
			p.remove(p.main[30])
			p.mkdir(p.main[30])
		}, integrity.KindDamaged, 1, 0, none},
		{"replaced by a link that leads out", func(p *patient) {
			p.remove(p.main[30])
			p.link(p.outside, p.main[30])
		}, integrity.KindDamaged, 1, 0, none},
		{"branch folder and index renamed away", func(p *patient) {
			p.remove(append(p.glob("index/*.rows"), p.glob("index.json")...)...)
			if err := os.Rename(filepath.Join(p.dir, "messages", "branch-alt"), filepath.Join(p.dir, "messages", "branch-q")); err != nil {
				p.t.Fatal(err)
			}
		}, integrity.KindIndex, 0, 0, none},
		{"extra unindexed file", func(p *patient) { p.foreign("branch-main", 40) }, integrity.KindForeign, 0, 0, none},
		{"branch folder missing", func(p *patient) {
			p.remove(filepath.Join(p.dir, "messages", "branch-alt"))
		}, integrity.KindMissing, 10, 0, none},
		{"branch folder is a link that leads out", func(p *patient) {
			p.remove(filepath.Join(p.dir, "messages", "branch-alt"))
			p.link(filepath.Dir(p.outside), filepath.Join(p.dir, "messages", "branch-alt"))
		}, "", 10, 0, none},

		{"branch folder is a link to itself, index.json missing", func(p *patient) {
			p.remove(append(p.glob("index.json"), filepath.Join(p.dir, "messages", "branch-alt"))...)
			p.link("branch-alt", filepath.Join(p.dir, "messages", "branch-alt"))
		}, integrity.KindFolder, 10, 0, none},

		{"two files under each other's names", func(p *patient) {
			a, b := must[[]byte](p.t)(os.ReadFile(p.main[30])), must[[]byte](p.t)(os.ReadFile(p.main[31]))
			write(p.t, p.main[30], b)
			write(p.t, p.main[31], a)
		}, integrity.KindDamaged, 0, 0, none},
		{"message file of 65 MiB", func(p *patient) {
			if err := os.Truncate(p.main[30], 65<<20); err != nil {
				p.t.Fatal(err)
			}
		}, integrity.KindDamaged, 1, 0, none},
		{"messages is a file", func(p *patient) {
			p.remove(filepath.Join(p.dir, "messages"))
			write(p.t, filepath.Join(p.dir, "messages"), nil)
		}, integrity.KindFolder, all, 0, none},
		{"messages is a link that leads out", func(p *patient) {
			p.remove(filepath.Join(p.dir, "messages"))
			p.link(filepath.Dir(p.outside), filepath.Join(p.dir, "messages"))
		}, integrity.KindFolder, all, 0, none},

		{"index.json missing", func(p *patient) { p.remove(p.glob("index.json")...) }, integrity.KindIndex, 0, 0, none},
		{"index.json empty", func(p *patient) { write(p.t, p.glob("index.json")[0], nil) }, integrity.KindIndex, 0, 0, none},
		{"index.json truncated", func(p *patient) {
			p.change(p.glob("index.json")[0], func(b []byte) []byte { return b[:len(b)/2] })
		}, integrity.KindIndex, 0, 0, none},
		{"index.json that leads out", func(p *patient) {
			p.change(p.glob("index.json")[0], func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("branch-main"), []byte("../../outside")) })
		}, integrity.KindIndex, 0, 0, none},
		{"index.json of another context", func(p *patient) {
			p.change(p.glob("index.json")[0], func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte(p.id.String()), []byte(uuid.NewString()))
			})
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a count that cannot be", func(p *patient) {
			p.resum(regexp.MustCompile(`"count":\d+`), `"count":4611686018427387904`)
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a count of rows that are not there", func(p *patient) {
			p.resum(regexp.MustCompile(`"count":\d+`), `"count":99999999999999`)
		}, integrity.KindIndex, 0, 0, none},
		{"index.json with a number that cannot be", func(p *patient) {
			p.resum(regexp.MustCompile(`"seq": \d+`), `"seq": 9223372036854775807`)
		}, integrity.KindIndex, 0, 0, none},
		{"row file missing", func(p *patient) { p.remove(p.glob("index/*.rows")...) }, integrity.KindIndex, 0, 0, none},
		{"row file torn", func(p *patient) {
			p.change(p.glob("index/*.rows")[0], func(b []byte) []byte { return b[:len(b)-100] })
		}, integrity.KindIndex, 0, 0, none},
		{"row damaged", func(p *patient) {
			p.change(p.glob("index/*.rows")[0], flipped)
		}, integrity.KindIndex, 0, 0, none},
		{"rows swapped", func(p *patient) {
			p.change(p.glob("index/*.rows")[0], func(b []byte) []byte {
				return slices.Concat(b[256:512], b[:256], b[512:])
			})
		}, integrity.KindIndex, 0, 0, none},
		{"index and rows missing", func(p *patient) {
			p.remove(append(p.glob("index/*.rows"), p.glob("index.json")...)...)
		}, integrity.KindIndex, 0, 0, none},

		{"journals missing", func(p *patient) { p.remove(p.glob("journal-*.jsonl")...) }, integrity.KindIndex, 0, 0, none},
		{"journals and index missing", func(p *patient) {
			p.remove(slices.Concat(p.glob("journal-*.jsonl"), p.glob("index.json"), p.glob("index/*.rows"))...)
		}, integrity.KindIndex, 0, 0, none},
		{"journals with NUL tails", func(p *patient) {
			for _, j := range p.glob("journal-*.jsonl") {
				p.change(j, func(b []byte) []byte { return append(b, make([]byte, 512)...) })
			}
		}, "", 0, 0, none},
		{"journals damaged in the middle", func(p *patient) {
			for _, j := range p.glob("journal-*.jsonl") {
				p.change(j, func(b []byte) []byte { return flipped(bytes.TrimRight(b, "\n")) })
			}
		}, "", 0, 0, none},
		{"journals of another generation", func(p *patient) {
			for _, j := range p.glob("journal-*.jsonl") {
				p.change(j, func(b []byte) []byte { return bytes.Replace(b, []byte(`"generation":`), []byte(`"generation":9`), 1) })
			}
		}, integrity.KindIndex, 0, 0, none},

		{"metadata.json missing", func(p *patient) { p.remove(p.glob("metadata.json")...) }, integrity.KindMetadata, 0, 0, none},
		{"metadata.json truncated", func(p *patient) {
			p.change(p.glob("metadata.json")[0], func(b []byte) []byte { return b[:20] })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with an unknown branch", func(p *patient) {
			p.change(p.glob("metadata.json")[0], func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"active_branch": "main"`), []byte(`"active_branch": "other"`), 1)
			})
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json without branches", func(p *patient) {
			p.metadata(func(m map[string]any) { m["branches"] = []any{} })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with a rename that contradicts it", func(p *patient) {
			p.metadata(func(m map[string]any) { m["renaming"] = map[string]string{"from": "branch-alt", "to": "branch-alt"} })
		}, integrity.KindMetadata, 0, 0, none},
		{"metadata.json with a base beyond its parent", func(p *patient) {
			p.change(p.glob("metadata.json")[0], func(b []byte) []byte { return bytes.Replace(b, []byte(`"base": 20`), []byte(`"base": 500`), 1) })
		}, integrity.KindStructure, 0, 0, none},
		{"metadata.json with a parent that a line does not go on from", func(p *patient) {
			p.metadata(func(m map[string]any) {
				lines := m["lines"].([]any)
				lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
			})
		}, integrity.KindStructure, 0, 0, none},
		{"metadata.json with a wrong parent, journals and index missing", func(p *patient) {
			p.metadata(func(m map[string]any) {
				lines := m["lines"].([]any)
				lines[1].(map[string]any)["parent"] = lines[2].(map[string]any)["id"]
			})
			p.remove(slices.Concat(p.glob("journal-*.jsonl"), p.glob("index.json"), p.glob("index/*.rows"))...)
		}, integrity.KindStructure, 0, 0, none},
		{"metadata.json with a cycle of bases", func(p *patient) { p.cycle() }, integrity.KindMetadata, 0, 0, none},
		{"metadata.json, journals and index missing", func(p *patient) {
			p.remove(slices.Concat(p.glob("metadata.json"), p.glob("journal-*.jsonl"), p.glob("index.json"), p.glob("index/*.rows"))...)
		}, integrity.KindMetadata, 0, 0, map[string]int{"empty": -1}},

		{"blob missing", func(p *patient) { p.remove(p.blobs[0]) }, "", 2, 0, none},
		{"blob damaged", func(p *patient) {
			p.change(p.blobs[0], func(b []byte) []byte { return slices.Concat(b[:len(b)*3/4], flipped(b[len(b)*3/4:])) })
		}, integrity.KindBlob, 2, 0, none},
		{"blob of the wrong size", func(p *patient) {
			p.change(p.blobs[0], func(b []byte) []byte { return b[:len(b)/2] })
		}, integrity.KindBlob, 2, 0, none},
		{"folder of blobs replaced by a link that leads out", func(p *patient) {
			folder := filepath.Dir(filepath.Dir(p.blobs[0]))
			if err := os.RemoveAll(folder); err != nil {
				p.t.Fatal(err)
			}
			p.link(p.t.TempDir(), folder)
		}, integrity.KindFolder, 2, 0, none},
		{"blobs replaced by a file", func(p *patient) {
			folder := filepath.Join(p.store.Path(), "blobs")
			if err := os.RemoveAll(folder); err != nil {
				p.t.Fatal(err)
			}
			write(p.t, folder, []byte("no folder"))
		}, integrity.KindFolder, 4, 0, none},
		{"lock replaced by a folder", func(p *patient) {
			path := filepath.Join(p.store.Path(), "locks", p.id.String())
			p.remove(path)
			p.mkdir(path)
			p.remove(p.main[5])
		}, integrity.KindLock, shared, 0, none},
		{"lock replaced by a link that leads out", func(p *patient) {
			path := filepath.Join(p.store.Path(), "locks", p.id.String()+".fold")
			p.remove(path)
			p.link(p.outside, path)
			p.remove(p.main[5])
		}, integrity.KindLock, shared, 0, none},
		{"erasing.json damaged", func(p *patient) {
			write(p.t, filepath.Join(p.dir, "erasing.json"), []byte(`{"ctxdir":"erasing/1","messages":[],"blobs":["../../outside"]}`))
		}, integrity.KindErasing, 0, 0, none},
		{"erasing.json replaced by a link that leads out", func(p *patient) {
			p.link(p.outside, filepath.Join(p.dir, "erasing.json"))
		}, integrity.KindErasing, 0, 0, none},
		{"left-over temporary file", func(p *patient) {
			path := filepath.Join(p.dir, "messages", "branch-main", ".left")
			write(p.t, path, []byte("x"))
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
				p.t.Fatal(err)
			}
		}, integrity.KindTemporary, 0, 0, none},
		{"left-over staging folder", func(p *patient) { p.mkdir(filepath.Join(p.store.Path(), "staging", uuid.NewString())) }, "", 0, 0, none},
	} {
		for _, second := range []bool{false, true} {
			name, lost := d.name, d.lost
			if second {
				name, lost = d.name+", journals there", d.lost2
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPatient(t, second)
				for branch, n := range d.branches {
					if n < 0 {
						delete(p.want, branch)
					}
				}
				d.do(p)
				found, gone := p.heal(CheckOptions{})
				if d.kind != "" && !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == d.kind }) {
					t.Errorf("check did not tell of %s: %+v", d.kind, found)
				}
				if gone > lost {
					t.Errorf("%d messages are gone, at most %d had to be", gone, lost)
				}
			})
		}
	}
}

func (p *patient) move(path, to string) {
	p.t.Helper()
	if err := os.Rename(path, filepath.Join(p.dir, filepath.FromSlash(to), filepath.Base(path))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) mkdir(path string) {
	p.t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) link(to, path string) {
	p.t.Helper()
	if err := os.Symlink(to, path); err != nil {
		p.t.Skipf("no symbolic links here: %v", err)
	}
}

// foreign drops a valid message into a folder, as of main's line at a position.
func (p *patient) foreign(folder string, position int) uuid.UUID {
	p.t.Helper()
	raw := must[[]byte](p.t)(os.ReadFile(p.main[30]))
	id := uuid.New()
	raw = bytes.Replace(raw, []byte(`"id":"`+p.want["main"][30].id.String()), []byte(`"id":"`+id.String()), 1)
	raw = bytes.Replace(raw, []byte(`"position":30`), fmt.Appendf(nil, `"position":%d`, position), 1)
	raw = bytes.Replace(raw, []byte(`"prev":"`+p.want["main"][29].id.String()), []byte(`"prev":"`+p.want["main"][position-1].id.String()), 1)
	write(p.t, filepath.Join(p.dir, "messages", folder, id.String()+".json"), raw)
	return id
}

// metadata changes metadata.json.
func (p *patient) metadata(f func(m map[string]any)) {
	p.t.Helper()
	var m map[string]any
	path := p.glob("metadata.json")[0]
	if err := json.Unmarshal(must[[]byte](p.t)(os.ReadFile(path)), &m); err != nil {
		p.t.Fatal(err)
	}
	f(m)
	write(p.t, path, must[[]byte](p.t)(json.Marshal(m)))
}

// cycle makes two lines of metadata.json each other's parents.
func (p *patient) cycle() {
	p.t.Helper()
	p.metadata(func(m map[string]any) {
		lines := m["lines"].([]any)
		a, b := lines[0].(map[string]any), lines[1].(map[string]any)
		a["parent"], a["base"], b["parent"], b["base"] = b["id"], 20, a["id"], 20
	})
}

// resum puts a text in the place of the first match in index.json, and makes the check at its end right.
func (p *patient) resum(match *regexp.Regexp, text string) {
	p.t.Helper()
	p.change(p.glob("index.json")[0], func(b []byte) []byte {
		at := match.FindIndex(b)
		if at == nil {
			p.t.Fatalf("no %v in %s", match, b)
		}
		b = slices.Concat(b[:at[0]], []byte(text), b[at[1]:])
		end := bytes.LastIndex(b, []byte(`"check"`))
		return fmt.Appendf(b[:end:end], "\"check\": \"%016x\"\n}\n", xxhash.Sum64(b[:end]))
	})
}
