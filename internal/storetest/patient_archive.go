package storetest

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

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// packPart is a part of a pack's file, found without package archive.
type packPart struct {
	kind     string // "head", "messages", "rows", "payloads", "directory", "ids", "payload table", "footer"
	From, to int
	IDs      []uuid.UUID // of a message frame
	refers   []string    // to payloads, for each of these
	payloads []string    // of a payload group
}

// packParts takes a pack apart. Its tables have one page each.
func packParts(t *testing.T, b []byte) (parts []packPart) {
	t.Helper()
	z := Must[*zstd.Decoder](t)(zstd.NewReader(nil))
	defer z.Close()
	magic := []byte("\x50\x2a\x4d\x18")
	for at := 0; at < len(b); {
		if !bytes.HasPrefix(b[at:], magic) { // the rows follow
			end := at + bytes.Index(b[at:], magic)
			for !bytes.HasPrefix(b[end+8:], []byte("ctxrows1")) {
				end += 4 + bytes.Index(b[end+4:], magic)
			}
			p := packPart{kind: "messages", From: at, to: end}
			for line := range bytes.Lines(Must[[]byte](t)(z.DecodeAll(b[at:end], nil))) {
				env := Must[message.Envelope](t)(message.Parse(bytes.TrimSpace(line)))
				p.IDs = append(p.IDs, env.ID)
				var of string
				if refs := Must[[]blob.Ref](t)(blob.Refs(env.Body)); len(refs) > 0 {
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
			p := packPart{kind: kind, From: at, to: end}
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
			parts = append(parts, packPart{kind: table.kind, From: at, to: at + table.size})
			if at += table.size; i == 3 && at != len(b) {
				t.Fatalf("the tables end at %d of %d", at, len(b))
			}
		}
	}
	return parts
}

var archivedTemplates struct {
	sync.Mutex
	of map[string]*Patient
}

// NewArchivedPatient makes a patient whose messages are in packs: all of them; all but the newest, which are in files
// and a journal, and one that was replaced; or in two packs.
func NewArchivedPatient(t *testing.T, kind string) *Patient {
	t.Helper()
	archivedTemplates.Lock()
	defer archivedTemplates.Unlock()
	if archivedTemplates.of == nil {
		archivedTemplates.of = map[string]*Patient{}
	}
	from := archivedTemplates.of[kind]
	if from == nil {
		from = makeArchived(t, kind)
		archivedTemplates.of[kind] = from
	}
	root := t.TempDir()
	copyTimes(t, from.Store.Path(), filepath.Join(root, "store"))
	p := &Patient{T: t, ID: from.ID, Outside: filepath.Join(root, "outside"), Want: map[string][]Body{}}
	Write(t, p.Outside, []byte("outside"))
	p.Store = Must[*engine.Store](t)(Open(filepath.Join(root, "store"), Manual(200)...))
	t.Cleanup(func() { _ = p.Store.Close() })
	p.Dir = filepath.Join(root, "store", p.ID.String())
	for name, bodies := range from.Want {
		p.Want[name] = slices.Clone(bodies)
	}
	for _, b := range p.Want["main"] {
		p.Main = append(p.Main, filepath.Join(p.Dir, "messages", "branch-main", b.ID.String()+".json"))
	}
	p.Blobs = BlobFiles(t, p.Store.Path())
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

func makeArchived(t *testing.T, kind string) *Patient {
	t.Helper()
	ctx := context.Background()
	root, err := os.MkdirTemp("", "ctxdir-archived-")
	Check(t, err)
	t.Cleanup(func() { // each patient is a copy; the last of them is made before the parent test ends
		archivedTemplates.Lock()
		defer archivedTemplates.Unlock()
		delete(archivedTemplates.of, kind)
		_ = os.RemoveAll(root)
	})
	p := &Patient{T: t}
	p.Store = Must[*engine.Store](t)(Init(filepath.Join(root, "store"), Manual(200)...))
	c := Must[*engine.Context](t)(p.Store.Create(ctx, engine.Metadata{Title: "a title"}))
	p.ID, p.Dir = c.ID(), filepath.Join(root, "store", c.ID().String())
	numbers := strings.Repeat("1234567,", 8<<10) + "0" // 64 KiB that is no text: it stays, and several frames are filled
	say := func(b *engine.Branch, from, n int) {
		for i := range n {
			text := fmt.Sprintf(`{"role":"user","content":"message %d of %s","numbers":[%d,%s]}`, from+i, b.Name(), i, numbers)
			if i%8 == 3 {
				text = fmt.Sprintf(`{"role":"tool","content":"%s of %s, %d"}`, strings.Repeat("long ", 100), b.Name(), i)
			}
			Append(t, b, engine.Draft{Body: []byte(text)})
		}
	}
	say(c.Active(), 0, 40)
	alt := Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 20))
	say(alt, 20, 10)
	Must[*engine.Branch](t)(c.NewBranch(ctx, "empty"))
	if done := Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{})); done.Messages != 50 {
		t.Fatalf("%+v", done)
	}
	switch kind {
	case "half":
		say(c.Active(), 40, 6)
		replaced := Must[[]*engine.Message](t)(c.Active().Range(ctx, 27, 28))[0].ID
		Check(t, c.Active().Replace(ctx, replaced, engine.Draft{Body: []byte(`{"another":"version"}`)}))
		Check(t, c.Fold(ctx))
	case "two packs":
		say(c.Active(), 40, 6)
		if done := Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{Branch: "main"})); done.Messages != 6 {
			t.Fatalf("%+v", done)
		}
	}
	p.Want = p.Read(c)
	Check(t, c.Close())
	return p
}

// Packs returns the packs, the oldest first.
func (p *Patient) Packs() []string { return p.Glob("archive/*.zst") }

// Part returns the n-th part of a kind of the oldest pack.
func (p *Patient) Part(kind string, n int) packPart {
	p.T.Helper()
	for _, part := range packParts(p.T, Must[[]byte](p.T)(os.ReadFile(p.Packs()[0]))) {
		if part.kind == kind {
			if n--; n < 0 {
				return part
			}
		}
	}
	p.T.Fatalf("no %s", kind)
	return packPart{}
}

// Flip changes some bits in the middle of parts of the oldest pack.
func (p *Patient) Flip(parts ...packPart) {
	p.T.Helper()
	p.Change(p.Packs()[0], func(b []byte) []byte {
		for _, part := range parts {
			for i := range 4 { // one bit of a compressed frame may mean nothing
				b[(part.From+part.to)/2+i] ^= 4
			}
		}
		return b
	})
}

// FlipBefore changes a bit shortly before the end of a part.
func (p *Patient) FlipBefore(part packPart) {
	p.T.Helper()
	p.Change(p.Packs()[0], func(b []byte) []byte { b[part.to-6] ^= 4; return b })
}

// packIDs returns the ids of all messages that the oldest pack has.
func (p *Patient) packIDs() (ids []uuid.UUID) {
	p.T.Helper()
	for _, part := range packParts(p.T, Must[[]byte](p.T)(os.ReadFile(p.Packs()[0]))) {
		ids = append(ids, part.IDs...)
	}
	return ids
}

// Unavailable returns the unavailable messages with their errors, and the number of those whose id is lost.
func (p *Patient) Unavailable() (gone map[uuid.UUID]error, nameless int) {
	p.T.Helper()
	ctx := context.Background()
	c := Must[*engine.Context](p.T)(p.Store.Context(ctx, p.ID))
	defer c.Close()
	gone = map[uuid.UUID]error{}
	for _, name := range slices.Sorted(maps.Keys(p.Want)) {
		b, err := c.Branch(name)
		if err != nil {
			p.T.Errorf("branch %s: %v", name, err)
			continue
		}
		ms := Load(p.T, b)
		if len(ms) != len(p.Want[name]) {
			p.T.Errorf("branch %s has %d messages, wanted %d", name, len(ms), len(p.Want[name]))
			continue
		}
		for i, w := range p.Want[name] {
			m := ms[i]
			text, err := m.Body(ctx)
			switch err = errors.Join(m.Unavailable, err); {
			case m.ID == uuid.Nil:
				nameless++
			case m.ID != w.ID:
				p.T.Errorf("branch %s, position %d: %s, wanted %s", name, i, m.ID, w.ID)
			}
			if err != nil {
				gone[w.ID] = err
			} else if string(text) != w.Text {
				p.T.Errorf("branch %s, position %d: %.80s, wanted %.80s", name, i, text, w.Text)
			}
		}
	}
	return gone, nameless
}

func (p *Patient) removeRows() {
	p.T.Helper()
	rows, err := filepath.Glob(filepath.Join(p.Dir, "index", "*.rows"))
	Check(p.T, err)
	p.Remove(rows...)
}

// messagesWith returns the messages of the oldest pack that have one of some payloads.
//
// A newer message, which is not in that pack, has the payload of the one at 3 too.
func (p *Patient) messagesWith(payloads []string) (ids []uuid.UUID) {
	p.T.Helper()
	for _, part := range packParts(p.T, Must[[]byte](p.T)(os.ReadFile(p.Packs()[0]))) {
		for i, id := range part.IDs {
			if slices.Contains(payloads, part.refers[i]) && (len(p.Want["main"]) == 40 || id != p.Want["main"][3].ID) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// takeOut writes the file of an archived message, changed.
func (p *Patient) takeOut(path string, change func([]byte) []byte) {
	p.T.Helper()
	z := Must[*zstd.Decoder](p.T)(zstd.NewReader(nil))
	defer z.Close()
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	for line := range bytes.Lines(Must[[]byte](p.T)(z.DecodeAll(Must[[]byte](p.T)(os.ReadFile(p.Packs()[0])), nil))) {
		if bytes.Contains(line, []byte(`"id":"`+name)) {
			p.Mkdir(filepath.Dir(path))
			Write(p.T, path, change(bytes.Clone(line)))
			return
		}
	}
	p.T.Fatalf("no message %s", name)
}

// setWant changes what a message is wanted to be, in every branch.
func (p *Patient) setWant(position int, old, text string) {
	for _, bodies := range p.Want {
		if position < len(bodies) {
			bodies[position].Text = strings.Replace(bodies[position].Text, old, text, 1)
		}
	}
}
