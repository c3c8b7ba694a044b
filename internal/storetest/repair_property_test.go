package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/blob"
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

func newPiece(rt *rapid.T, logs, files []string, mark string) *piece {
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

// TestWholeCopiesComeBack damages one or two files of a context. Each message of which a file, a record or a segment is
// whole, and its payload too, comes back with a repair, on one branch or another.
func TestWholeCopiesComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		root, err := os.MkdirTemp("", "ctxdir-copies-")
		check := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		check(err)
		defer os.RemoveAll(root)
		s, err := kit.Init(root, kit.Manual(100, engine.InOrder())...)
		check(err)
		defer s.Close()
		c, err := s.Create(ctx, engine.Metadata{})
		check(err)
		dir := filepath.Join(root, c.ID().String())
		glob := func(pattern string) []string {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			check(err)
			return paths
		}
		bodies, ids, segments := []string{}, []uuid.UUID{}, map[int][]string{}
		for i := range rapid.IntRange(2, 8).Draw(rt, "messages") {
			text := fmt.Sprintf("message %d %s", i, strings.Repeat("long ", rapid.SampledFrom([]int{1, 60}).Draw(rt, "words")))
			bodies = append(bodies, text)
			at, err := c.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"text":%q}`, text)})
			check(err)
			ids = append(ids, at.ID)
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				check(c.Seal(ctx))
			case 1:
				check(c.Exclusively(ctx, c.Index.Rotate))
			}
		}
		check(c.Close())
		if rapid.Bool().Draw(rt, "no blobs") {
			check(os.RemoveAll(filepath.Join(root, "blobs")))
		}
		for i, id := range ids {
			for _, path := range glob("segments/*.zst") {
				if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"id":"`+id.String())) {
					segments[i] = append(segments[i], path)
				}
			}
		}
		var messages, payloads []*piece
		for i, id := range ids {
			files := append(segments[i], glob("messages/*/"+id.String()+".json")...)
			messages = append(messages, newPiece(rt, glob("log-*"), files, `"id":"`+id.String()))
			sum := blob.SumOf([]byte(bodies[i]))
			blobs := []string{filepath.Join(root, filepath.FromSlash(blob.Path(sum)))}
			payloads = append(payloads, newPiece(rt, glob("log-*"), blobs, `{"blob":"`+sum.String()))
		}
		files := append(append(glob("log-*"), glob("segments/*.zst")...), glob("messages/*/*.json")...)
		for range rapid.IntRange(1, 2).Draw(rt, "damages") {
			damageAnywhere(rt, rapid.SampledFrom(files).Draw(rt, "file"))
		}
		want := map[uuid.UUID]string{}
		for i, id := range ids {
			if messages[i].intact(glob("log-*")) && (len(bodies[i]) < 100 || payloads[i].intact(glob("log-*"))) {
				want[id] = bodies[i]
			}
		}
		for _, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
			check(err)
		}
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			if check(err); f.Repairable {
				rt.Fatalf("after a repair: %+v", f)
			}
		}
		c, err = s.Context(ctx, c.ID())
		check(err)
		defer c.Close()
		for _, b := range c.Metadata().Branches {
			open, err := c.Branch(b.Name)
			check(err)
			for m, err := range open.Messages(ctx) {
				check(err)
				if m.Unavailable == nil && kit.BodyOf(m) == fmt.Sprintf(`{"text":%q}`, want[m.ID]) {
					delete(want, m.ID)
				}
			}
		}
		if len(want) > 0 {
			rt.Fatalf("of %d messages, %d are lost of which a copy was whole: %v", len(ids), len(want), want)
		}
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
