package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// piece is a message or a payload, and what must be whole somewhere so that it can come back: a file, or the record of a
// log.
type piece struct {
	files  map[string][]byte
	record []byte
}

func newPiece(rt rapid.TB, logs, files []string, mark string) *piece {
	p := &piece{files: map[string][]byte{}}
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil {
			p.files[path] = b
		}
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		if at := bytes.Index(b, []byte(mark)); at >= 0 {
			from := bytes.LastIndex(b[:at], []byte(`{"chain"`))
			p.record = bytes.Clone(b[from : at+bytes.Index(b[at:], []byte("}\n"))+2])
		}
	}
	return p
}

// intact reports whether a whole copy is left.
func (p *piece) intact(logs []string) bool {
	for path, was := range p.files {
		if b, err := os.ReadFile(path); err == nil && bytes.Equal(b, was) {
			return true
		}
	}
	for _, path := range logs {
		if b, err := os.ReadFile(path); err == nil && p.record != nil && bytes.Contains(b, p.record) {
			return true
		}
	}
	return false
}

// copies are the messages of a context, and where they are.
type copies struct {
	tb     rapid.TB
	root   string
	dir    string // of the context
	bodies []string
	ids    []uuid.UUID
}

func (x *copies) check(err error) {
	x.tb.Helper()
	if err != nil {
		x.tb.Fatal(err)
	}
}

func (x *copies) glob(pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(x.dir, pattern))
	x.check(err)
	return paths
}

// What follows a message in a context.
const (
	thenSeal = iota
	thenRotate
	thenNothing
)

// newCopies makes a context with messages of some words, and does after each what then says. The store is closed.
func newCopies(tb rapid.TB, root string, words, then []int) *copies {
	ctx := context.Background()
	x := &copies{tb: tb, root: root}
	s, err := kit.Init(root, kit.Manual(100, engine.InOrder())...)
	x.check(err)
	defer func() { x.check(s.Close()) }()
	c, err := s.Create(ctx, engine.Metadata{})
	x.check(err)
	x.dir = filepath.Join(root, c.ID().String())
	for i := range words {
		text := fmt.Sprintf("message %d %s", i, strings.Repeat("long ", words[i]))
		x.bodies = append(x.bodies, text)
		at, err := c.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"text":%q}`, text)})
		x.check(err)
		x.ids = append(x.ids, at.ID)
		switch then[i] {
		case thenSeal:
			x.check(c.Seal(ctx))
		case thenRotate:
			x.check(c.Exclusively(ctx, c.Index.Rotate))
		}
	}
	x.check(c.Close())
	return x
}

// comeBack repairs the context after some damage. Each message of which a file, a record or a segment is whole then, and its
// payload too, comes back, on one branch or another.
func (x *copies) comeBack(damage func()) {
	x.tb.Helper()
	ctx := context.Background()
	segments := map[int][]string{}
	for i, id := range x.ids {
		for _, path := range x.glob("segments/*.zst") {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"id":"`+id.String())) {
				segments[i] = append(segments[i], path)
			}
		}
	}
	var messages, payloads []*piece
	for i, id := range x.ids {
		files := append(segments[i], x.glob("messages/*/"+id.String()+".json")...)
		messages = append(messages, newPiece(x.tb, x.glob("log-*"), files, `"id":"`+id.String()))
		sum := blob.SumOf([]byte(x.bodies[i]))
		blobs := []string{filepath.Join(x.root, filepath.FromSlash(blob.Path(sum)))}
		payloads = append(payloads, newPiece(x.tb, x.glob("log-*"), blobs, `{"blob":"`+sum.String()))
	}
	damage()
	want := map[uuid.UUID]string{}
	for i, id := range x.ids {
		if messages[i].intact(x.glob("log-*")) && (len(x.bodies[i]) < 100 || payloads[i].intact(x.glob("log-*"))) {
			want[id] = x.bodies[i]
		}
	}
	s, err := kit.Open(x.root, kit.Manual(100, engine.InOrder())...)
	x.check(err)
	defer s.Close()
	for _, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
		x.check(err)
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if x.check(err); f.Repairable {
			x.tb.Fatalf("after a repair: %+v", f)
		}
	}
	c, err := s.Context(ctx, uuid.MustParse(filepath.Base(x.dir)))
	x.check(err)
	defer c.Close()
	for _, b := range c.Metadata().Branches {
		open, err := c.Branch(b.Name)
		x.check(err)
		for m, err := range open.Messages(ctx) {
			x.check(err)
			if m.Unavailable == nil && kit.BodyOf(m) == fmt.Sprintf(`{"text":%q}`, want[m.ID]) {
				delete(want, m.ID)
			}
		}
	}
	if len(want) > 0 {
		x.tb.Fatalf("of %d messages, %d are lost of which a copy was whole: %v", len(x.ids), len(want), want)
	}
}

// TestWholeCopiesComeBack damages one or two files of a context.
func TestWholeCopiesComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp("", "ctxdir-copies-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		var words, then []int
		for range rapid.IntRange(2, 8).Draw(rt, "messages") {
			words = append(words, rapid.SampledFrom([]int{1, 60}).Draw(rt, "words"))
			then = append(then, rapid.IntRange(0, 5).Draw(rt, "then"))
		}
		x := newCopies(rt, root, words, then)
		if rapid.Bool().Draw(rt, "no blobs") {
			x.check(os.RemoveAll(filepath.Join(root, "blobs")))
		}
		x.comeBack(func() {
			files := append(append(x.glob("log-*"), x.glob("segments/*.zst")...), x.glob("messages/*/*.json")...)
			for range rapid.IntRange(1, 2).Draw(rt, "damages") {
				damageAnywhere(rt, rapid.SampledFrom(files).Draw(rt, "file"))
			}
		})
	})
}

// TestBlankSectorsComeBack leaves one sector of a log blank, as a crash may, where there was none.
func TestBlankSectorsComeBack(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]int{
		"two in the last log": {1, 60, 1, 60, 60, 1}, "one": {1, 60, 1, 60, 60}, "a short one": {1, 60, 1, 60, 1},
	} {
		for number := range 3 {
			for n := 0; ; n++ {
				root := t.TempDir()
				x := newCopies(t, root, words, []int{thenNothing, thenRotate, thenNothing, thenRotate, thenNothing, thenNothing})
				x.check(os.RemoveAll(filepath.Join(root, "blobs")))
				path := x.glob(fmt.Sprintf("log-*-%d.jsonl", number+1))[0]
				raw, err := os.ReadFile(path)
				x.check(err)
				if n*512 >= len(bytes.TrimRight(raw, "\n")) {
					break
				}
				copy(raw[n*512:], bytes.Repeat([]byte("\n"), 512))
				t.Run(fmt.Sprintf("%s/log %d/sector %d", name, number+1, n), func(t *testing.T) {
					x.tb = t
					x.comeBack(func() { x.check(os.WriteFile(path, raw, 0o600)) })
				})
			}
		}
	}
}

// TestLostPlaceOfALog damages the first record of a log and the state before it, so that nothing tells where the log belongs.
func TestLostPlaceOfALog(t *testing.T) {
	t.Parallel()
	x := newCopies(t, t.TempDir(), []int{60, 60, 1, 1}, []int{thenSeal, thenSeal, thenNothing, thenRotate})
	x.check(os.RemoveAll(filepath.Join(x.root, "blobs")))
	segments, logs := x.glob("segments/*.zst"), x.glob("log-*-3.jsonl")
	if len(segments) != 2 || len(logs) != 1 {
		t.Fatalf("segments %v, logs %v", segments, logs)
	}
	x.comeBack(func() {
		raw, err := os.ReadFile(segments[1])
		x.check(err)
		raw[bytes.LastIndex(raw, []byte("ctxstat1"))+16] ^= 0x80
		x.check(os.WriteFile(segments[1], raw, 0o600))
		raw, err = os.ReadFile(logs[0])
		x.check(err)
		at := bytes.IndexByte(raw, '\n') / 512 * 512
		copy(raw[at:at+512], bytes.Repeat([]byte("\n"), 512))
		x.check(os.WriteFile(logs[0], raw, 0o600))
	})
}

// damageAnywhere damages a file, which keeps its time.
func damageAnywhere(rt *rapid.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 {
		return // it is gone already
	}
	info, err := os.Stat(path)
	if err != nil {
		rt.Fatal(err)
	}
	used := max(len(bytes.TrimRight(raw, "\n")), 1)
	at := rapid.IntRange(0, used-1).Draw(rt, "at")
	switch rapid.IntRange(0, 5).Draw(rt, "damage") {
	case 0:
		_ = os.Remove(path)
		return
	case 1, 2:
		raw[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(rt, "bit"))
	case 3:
		clear(raw[at:min(at+16, used)])
	case 4:
		at = at / 512 * 512
		copy(raw[at:], bytes.Repeat([]byte("\n"), min(512, used-at)))
	case 5:
		raw = raw[:at]
	}
	if os.WriteFile(path, raw, 0o600) != nil || os.Chtimes(path, info.ModTime(), info.ModTime()) != nil {
		rt.Fatal("the file cannot be written")
	}
}
