package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// lostLine is a context whose index and journals are lost, and message files of it.
type lostLine struct {
	t   *testing.T
	s   *engine.Store
	c   *engine.Context
	dir string

	saved string // a copy of the context as it was before
}

func newGone(t *testing.T) *lostLine {
	t.Helper()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1), engine.WithoutPause())
	return &lostLine{t: t, s: c.Store, c: c, dir: dir, saved: t.TempDir()}
}

func (g *lostLine) branch(name string) *engine.Branch {
	return kit.Must[*engine.Branch](g.t)(g.c.Branch(name))
}

func (g *lostLine) say(name string, n int) (ids []uuid.UUID) {
	g.t.Helper()
	for i := range n {
		a := kit.Append(g.t, g.branch(name), engine.Draft{Body: fmt.Appendf(nil, `{"text":"%s %d"}`, name, i)})
		ids = append(ids, a.ID)
	}
	return ids
}

func (g *lostLine) fork(name, from string, at int64) {
	g.t.Helper()
	kit.Must[*engine.Branch](g.t)(g.branch(from).Fork(context.Background(), name, at))
}

// lose removes the index, the journals and the files of messages, and opens the context again.
func (g *lostLine) lose(ids ...uuid.UUID) {
	g.t.Helper()
	id := g.c.ID()
	kit.Check(g.t, g.c.Fold(context.Background()))
	kit.Check(g.t, g.c.Close())
	kit.Check(g.t, os.CopyFS(g.saved, os.DirFS(g.dir)))
	paths := []string{filepath.Join(g.dir, "index"), filepath.Join(g.dir, "index.json")}
	patterns := []string{"journal-*"}
	for _, id := range ids {
		patterns = append(patterns, "messages/*/"+id.String()+".json")
	}
	for _, pattern := range patterns {
		found := kit.Must[[]string](g.t)(filepath.Glob(filepath.Join(g.dir, filepath.FromSlash(pattern))))
		if len(found) == 0 {
			g.t.Fatalf("there is no %s", pattern)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		kit.Check(g.t, os.RemoveAll(path))
	}
	g.c = kit.Must[*engine.Context](g.t)(g.s.Context(context.Background(), id))
	g.t.Cleanup(func() { _ = g.c.Close() })
}

// wipe lays newlines over the journal's records from that of a message on, and removes its file.
func (g *lostLine) wipe(id uuid.UUID) {
	g.t.Helper()
	kit.Check(g.t, g.c.Close())
	journal := filepath.Join(g.dir, "journal-1.jsonl")
	b := kit.Must[[]byte](g.t)(os.ReadFile(journal))
	from := bytes.LastIndex(b[:bytes.Index(b, []byte(`"id":"`+id.String()))], []byte(`{"chain"`))
	kit.Check(g.t, os.WriteFile(journal, append(b[:from:from], bytes.Repeat([]byte("\n"), len(b)-from)...), 0o600))
	kit.Check(g.t, os.Remove(filepath.Join(g.dir, "messages", "branch-main", id.String()+".json")))
	g.c = kit.Must[*engine.Context](g.t)(g.s.Context(context.Background(), g.c.ID()))
	g.t.Cleanup(func() { _ = g.c.Close() })
}

// shows compares what a branch shows; "" stands for a message that is lost.
func (g *lostLine) shows(name string, want ...string) {
	g.t.Helper()
	var got []string
	for i, m := range kit.Load(g.t, g.branch(name)) {
		if m.Position != int64(i) {
			g.t.Fatalf("branch %s: position %d comes after %d messages", name, m.Position, i)
		}
		text := ""
		if m.Unavailable == nil {
			text = kit.BodyOf(m)[len(`{"text":"`):]
			text = text[:len(text)-len(`"}`)]
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		g.t.Errorf("branch %s shows %q, wanted %q", name, got, want)
	}
}

// problems fails unless a check tells of so many lost messages, and of nothing else than them and the index.
func (g *lostLine) tells(lost int) {
	g.t.Helper()
	for f, err := range g.s.Check(context.Background(), nil, engine.CheckOptions{ReadData: true}) {
		kit.Check(g.t, err)
		switch f.Kind {
		case integrity.KindLost:
			lost--
		case integrity.KindIndex:
		default:
			g.t.Errorf("a check found %+v", f)
		}
	}
	if lost != 0 {
		g.t.Errorf("a check tells of %d lost messages too few", lost)
	}
}

func (g *lostLine) repair() {
	g.t.Helper()
	for _, err := range g.s.Repair(context.Background(), nil, engine.CheckOptions{}) {
		kit.Check(g.t, err)
	}
}

// TestLostPositions: a message that is lost with everything that told of it, but for a line that begins behind it,
// keeps its position: for readers, for the next message, and after a repair.
func TestLostPositions(t *testing.T) {
	ctx := context.Background()
	for _, d := range []struct {
		name string
		do   func(g *lostLine)
		lost int
		show map[string][]string // before "next" is appended to main
	}{
		{"at the end of a line, with a fork behind it", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.say("alt", 2)
			g.lose(m[2])
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}, "alt": {"main 0", "main 1", "", "alt 0", "alt 1"}}},
		{"with an empty fork behind it", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.lose(m[1:]...)
		}, 2, map[string][]string{"main": {"main 0", "", ""}, "alt": {"main 0", "", ""}}},
		{"all messages of a line", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.say("alt", 1)
			g.lose(m...)
		}, 3, map[string][]string{"main": {"", "", ""}, "alt": {"", "", "", "alt 0"}}},
		{"a fork of a fork", func(g *lostLine) {
			g.say("main", 2)
			g.fork("alt", "main", 2)
			a := g.say("alt", 2)
			g.fork("deep", "alt", 4)
			g.say("deep", 1)
			g.lose(a...)
		}, 2, map[string][]string{
			"main": {"main 0", "main 1"},
			"alt":  {"main 0", "main 1", "", ""},
			"deep": {"main 0", "main 1", "", "", "deep 0"},
		}},
		{"a rewind behind it", func(g *lostLine) {
			m := g.say("main", 4)
			kit.Check(g.t, g.branch("main").Rewind(ctx, 3))
			g.lose(m[2:]...)
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}}},
		{"a removed branch behind it", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.say("alt", 1)
			kit.Check(g.t, g.c.Remove(ctx, "alt"))
			g.lose(m[2])
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}}},
		{"a collected branch behind it", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.say("alt", 1)
			kit.Check(g.t, g.c.Remove(ctx, "alt"))
			for _, err := range trash.Collect(ctx, g.s, trash.CollectOptions{Grace: trash.DefaultGrace}) {
				kit.Check(g.t, err)
			}
			g.lose(m[2])
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}}},
		{"the rest of the line is archived", func(g *lostLine) {
			g.say("main", 2)
			kit.Must[engine.ArchiveResult](g.t)(g.c.Archive(ctx, engine.ArchiveOptions{}))
			m := g.say("main", 1)
			g.fork("alt", "main", 3)
			g.say("alt", 1)
			g.lose(m...)
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}, "alt": {"main 0", "main 1", "", "alt 0"}}},
		{"the end of the journal blank, the index whole", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.wipe(m[2])
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}, "alt": {"main 0", "main 1", ""}}},
		{"the end of the journal blank, index.json missing", func(g *lostLine) {
			m := g.say("main", 3)
			g.fork("alt", "main", 3)
			g.wipe(m[2])
			kit.Check(g.t, os.Remove(filepath.Join(g.dir, "index.json")))
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}, "alt": {"main 0", "main 1", ""}}},
		{"the last row damaged", func(g *lostLine) {
			m := g.say("main", 3)
			g.lose(m[2])
			rows := kit.Must[[]string](g.t)(filepath.Glob(filepath.Join(g.saved, "index", "*.rows")))[0]
			b := kit.Must[[]byte](g.t)(os.ReadFile(rows))
			b[len(b)-100] ^= 1
			kit.Check(g.t, os.Mkdir(filepath.Join(g.dir, "index"), 0o700))
			kit.Check(g.t, os.WriteFile(filepath.Join(g.dir, "index", filepath.Base(rows)), b, 0o600), g.c.Close())
			g.c = kit.Must[*engine.Context](g.t)(g.s.Context(ctx, g.c.ID()))
		}, 1, map[string][]string{"main": {"main 0", "main 1", ""}}},
	} {
		t.Run(d.name, func(t *testing.T) {
			g := newGone(t)
			d.do(g)
			for name, want := range d.show {
				g.shows(name, want...)
			}
			g.tells(d.lost)
			n := kit.Must[int64](t)(g.branch("main").Len(ctx))
			a := kit.Append(t, g.branch("main"), engine.Draft{Body: []byte(`{"text":"next"}`)})
			if a.Position != n || n != int64(len(d.show["main"])) {
				t.Errorf("the next message has position %d, of %d", a.Position, len(d.show["main"]))
			}
			for range 2 {
				for name, want := range d.show {
					if name == "main" {
						want = append(slices.Clone(want), "next")
					}
					g.shows(name, want...)
				}
				g.tells(d.lost)
				g.repair()
				kit.Check(t, g.c.Refresh(ctx))
			}
		})
	}
}
