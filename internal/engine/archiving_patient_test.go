package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// packPart is a part of a pack's file, found without package archive.
type packPart struct {
	kind     string // "head", "messages", "rows", "payloads", "directory", "ids", "payload table", "footer"
	from, to int
	ids      []uuid.UUID // of a message frame
	refers   []string    // to payloads, for each of these
	payloads []string    // of a payload group
}

// packParts takes a pack apart. Its tables have one page each.
func packParts(t *testing.T, b []byte) (parts []packPart) {
	t.Helper()
	z := must[*zstd.Decoder](t)(zstd.NewReader(nil))
	defer z.Close()
	magic := []byte("\x50\x2a\x4d\x18")
	for at := 0; at < len(b); {
		if !bytes.HasPrefix(b[at:], magic) { // the rows follow
			end := at + bytes.Index(b[at:], magic)
			for !bytes.HasPrefix(b[end+8:], []byte("ctxrows1")) {
				end += 4 + bytes.Index(b[end+4:], magic)
			}
			p := packPart{kind: "messages", from: at, to: end}
			for line := range bytes.Lines(must[[]byte](t)(z.DecodeAll(b[at:end], nil))) {
				env := must[message.Envelope](t)(message.Parse(bytes.TrimSpace(line)))
				p.ids = append(p.ids, env.ID)
				var of string
				if refs := must[[]blob.Ref](t)(blob.Refs(env.Body)); len(refs) > 0 {
					of = refs[0].Sum.String()
				}
				p.refers = append(p.refers, of)
			}
			parts, at = append(parts, p), end
			continue
		}
		end := at + 8 + int(binary.LittleEndian.Uint32(b[at+4:]))
		kind := map[string]string{"ctxpack1": "head", "ctxrows1": "rows", "ctxload1": "payloads", "ctxtabl1": "tables"}[string(b[at+8:at+16])]
		if kind != "tables" {
			p := packPart{kind: kind, from: at, to: end}
			if kind == "payloads" {
				for i := range int(binary.LittleEndian.Uint32(b[at+16:])) {
					p.payloads = append(p.payloads, hex.EncodeToString(b[at+20+36*i:][:32]))
				}
			}
			parts, at = append(parts, p), end
			continue
		}
		count := func(n int) int { return int(binary.LittleEndian.Uint64(b[len(b)-64+8*n:])) }
		at += 16
		for i, table := range []struct {
			kind string
			size int
		}{{"directory", 48*count(1) + 8}, {"ids", 16 + 5*count(0) + 8}, {"payload table", 48*count(2) + 8}, {"footer", 64}} {
			parts = append(parts, packPart{kind: table.kind, from: at, to: at + table.size})
			if at += table.size; i == 3 && at != len(b) {
				t.Fatalf("the tables end at %d of %d", at, len(b))
			}
		}
	}
	return parts
}

// archivedKinds are the contexts that TestDamageArchived damages.
var archivedKinds = []string{"all", "half", "two packs"}

var archivedTemplates struct {
	sync.Mutex
	of map[string]*patient
}

// newArchived makes a patient whose messages are in packs: all of them; all but the newest, which are in files and a journal, and one that
// was replaced; or in two packs.
func newArchived(t *testing.T, kind string) *patient {
	t.Helper()
	archivedTemplates.Lock()
	defer archivedTemplates.Unlock()
	if archivedTemplates.of == nil {
		archivedTemplates.of = map[string]*patient{}
	}
	from := archivedTemplates.of[kind]
	if from == nil {
		from = makeArchived(t, kind)
		archivedTemplates.of[kind] = from
	}
	root := t.TempDir()
	copyTimes(t, from.store.Path(), filepath.Join(root, "store"))
	p := &patient{t: t, id: from.id, outside: filepath.Join(root, "outside"), want: map[string][]body{}}
	write(t, p.outside, []byte("outside"))
	p.store = must[*Store](t)(Open(filepath.Join(root, "store"), WithFoldBytes(-1), WithTextThreshold(200), withoutPause()))
	t.Cleanup(func() { _ = p.store.Close() })
	p.dir = filepath.Join(root, "store", p.id.String())
	for name, bodies := range from.want {
		p.want[name] = slices.Clone(bodies)
	}
	for _, b := range p.want["main"] {
		p.main = append(p.main, filepath.Join(p.dir, "messages", "branch-main", b.id.String()+".json"))
	}
	p.blobs = blobFiles(t, p.store.Path())
	return p
}

// copyTimes copies a folder, times included.
func copyTimes(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		at := filepath.Join(to, rel)
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(at, 0o700))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(at, b, 0o600), os.Chtimes(at, info.ModTime(), info.ModTime()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func makeArchived(t *testing.T, kind string) *patient {
	t.Helper()
	ctx := context.Background()
	root, err := os.MkdirTemp("", "ctxdir-archived-")
	check(t, err)
	t.Cleanup(func() { // each patient is a copy; the last of them is made before the parent test ends
		archivedTemplates.Lock()
		defer archivedTemplates.Unlock()
		delete(archivedTemplates.of, kind)
		_ = os.RemoveAll(root)
	})
	p := &patient{t: t}
	p.store = must[*Store](t)(Init(filepath.Join(root, "store"), WithFoldBytes(-1), WithTextThreshold(200), withoutPause()))
	c := must[*Context](t)(p.store.Create(ctx, Metadata{Title: "a title"}))
	p.id, p.dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	numbers := strings.Repeat("1234567,", 8<<10) + "0" // 64 KiB that is no text: it stays, and several frames are filled
	say := func(b *Branch, from, n int) {
		for i := range n {
			text := fmt.Sprintf(`{"role":"user","content":"message %d of %s","numbers":[%d,%s]}`, from+i, b.Name(), i, numbers)
			if i%8 == 3 {
				text = fmt.Sprintf(`{"role":"tool","content":"%s of %s, %d"}`, strings.Repeat("long ", 100), b.Name(), i)
			}
			must[Appended](t)(b.Append(ctx, Draft{Body: []byte(text)}))
		}
	}
	say(c.Active(), 0, 40)
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 20))
	say(alt, 20, 10)
	must[*Branch](t)(c.NewBranch(ctx, "empty"))
	if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{})); done.Messages != 50 {
		t.Fatalf("%+v", done)
	}
	switch kind {
	case "half":
		say(c.Active(), 40, 6)
		check(t, c.Active().Replace(ctx, must[[]*Message](t)(c.Active().Range(ctx, 27, 28))[0].ID, Draft{Body: []byte(`{"another":"version"}`)}))
		check(t, c.Fold(ctx))
	case "two packs":
		say(c.Active(), 40, 6)
		if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{Branch: "main"})); done.Messages != 6 {
			t.Fatalf("%+v", done)
		}
	}
	p.want = p.read(c)
	check(t, c.Close())
	return p
}

// packs returns the packs, the oldest first.
func (p *patient) packs() []string { return p.glob("archive/*.zst") }

// part returns the n-th part of a kind of the oldest pack.
func (p *patient) part(kind string, n int) packPart {
	p.t.Helper()
	for _, part := range packParts(p.t, must[[]byte](p.t)(os.ReadFile(p.packs()[0]))) {
		if part.kind == kind {
			if n--; n < 0 {
				return part
			}
		}
	}
	p.t.Fatalf("no %s", kind)
	return packPart{}
}

// flip changes a bit in the middle of parts of the oldest pack.
func (p *patient) flip(parts ...packPart) {
	p.t.Helper()
	p.change(p.packs()[0], func(b []byte) []byte {
		for _, part := range parts {
			b[(part.from+part.to)/2] ^= 4
		}
		return b
	})
}

// flipBefore changes a bit shortly before the end of a part.
func (p *patient) flipBefore(part packPart) {
	p.t.Helper()
	p.change(p.packs()[0], func(b []byte) []byte { b[part.to-6] ^= 4; return b })
}

// inPack returns the ids of all messages that the oldest pack has.
func (p *patient) inPack() (ids []uuid.UUID) {
	p.t.Helper()
	for _, part := range packParts(p.t, must[[]byte](p.t)(os.ReadFile(p.packs()[0]))) {
		ids = append(ids, part.ids...)
	}
	return ids
}

// ill returns the messages that cannot be had as they were, with the error for each, and those that have no id any more.
func (p *patient) ill() (gone map[uuid.UUID]error, nameless int) {
	p.t.Helper()
	ctx := context.Background()
	c := must[*Context](p.t)(p.store.Context(ctx, p.id))
	defer c.Close()
	gone = map[uuid.UUID]error{}
	for _, name := range slices.Sorted(maps.Keys(p.want)) {
		b, err := c.Branch(name)
		if err != nil {
			p.t.Errorf("branch %s: %v", name, err)
			continue
		}
		ms := must[[]*Message](p.t)(b.Load(ctx))
		if len(ms) != len(p.want[name]) {
			p.t.Errorf("branch %s has %d messages, wanted %d", name, len(ms), len(p.want[name]))
			continue
		}
		for i, w := range p.want[name] {
			m := ms[i]
			text, err := m.Body(ctx)
			switch err = errors.Join(m.Unavailable, err); {
			case m.ID == uuid.Nil:
				nameless++
			case m.ID != w.id:
				p.t.Errorf("branch %s, position %d: %s, wanted %s", name, i, m.ID, w.id)
			}
			if err != nil {
				gone[w.id] = err
			} else if string(text) != w.text {
				p.t.Errorf("branch %s, position %d: %.80s, wanted %.80s", name, i, text, w.text)
			}
		}
	}
	return gone, nameless
}

func (p *patient) removeRows() {
	p.t.Helper()
	rows, err := filepath.Glob(filepath.Join(p.dir, "index", "*.rows"))
	check(p.t, err)
	p.remove(rows...)
}

// referring returns the messages of the oldest pack that have one of some payloads.
//
// A newer message, which is not in that pack, has the payload of the one at 3 too.
func (p *patient) referring(payloads []string) (ids []uuid.UUID) {
	p.t.Helper()
	for _, part := range packParts(p.t, must[[]byte](p.t)(os.ReadFile(p.packs()[0]))) {
		for i, id := range part.ids {
			if slices.Contains(payloads, part.refers[i]) && (len(p.want["main"]) == 40 || id != p.want["main"][3].id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// takeOut writes the file of an archived message, changed.
func (p *patient) takeOut(path string, change func([]byte) []byte) {
	p.t.Helper()
	z := must[*zstd.Decoder](p.t)(zstd.NewReader(nil))
	defer z.Close()
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	for line := range bytes.Lines(must[[]byte](p.t)(z.DecodeAll(must[[]byte](p.t)(os.ReadFile(p.packs()[0])), nil))) {
		if bytes.Contains(line, []byte(`"id":"`+name)) {
			p.mkdir(filepath.Dir(path))
			write(p.t, path, change(bytes.Clone(line)))
			return
		}
	}
	p.t.Fatalf("no message %s", name)
}

// say changes what a message is wanted to be, in every branch.
func (p *patient) say(position int, old, text string) {
	for _, bodies := range p.want {
		if position < len(bodies) {
			bodies[position].text = strings.Replace(bodies[position].text, old, text, 1)
		}
	}
}

// otherPackVersion makes of a pack one of another version, by its footer, or by its head where that is damaged.
func otherPackVersion(b []byte, where string) []byte {
	foot := b[len(b)-64:]
	if where == "head" {
		b[15], foot[0] = '2', foot[0]^1
		return b
	}
	foot[55] = '2'
	binary.LittleEndian.PutUint64(foot[56:], xxhash.Sum64(foot[:56]))
	return b
}
