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
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestLostPositions: a message that is lost with everything that told of it, but for a line that begins behind it, keeps
// its position: for readers, for the next message, and after a repair.
func TestLostPositions(t *testing.T) {
	ctx := context.Background()
	remove := func(pattern string) func(p *kit.Patient) {
		return func(p *kit.Patient) { p.Remove(p.Glob(pattern)...) }
	}
	for name, damage := range map[string]struct {
		sealed bool // before the fork
		do     func(p *kit.Patient)
	}{
		"the segment": {true, remove("segments/1-*.zst")},
		"the record": {false, func(p *kit.Patient) {
			changeLog(p, func(b []byte) []byte { return bytes.Replace(b, []byte(`"main 2"`), []byte(`"main 3"`), 1) })
		}},
		"the log": {false, remove("log-*.jsonl")},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := kit.NewContext(t, kit.Manual(-1)...)
			p := &kit.Patient{T: t, Store: c.Store, ID: c.ID(), Dir: dir}
			say := func(b *engine.Branch, n int) (last string) {
				for i := range n {
					at := kit.Append(t, b, engine.Draft{Body: fmt.Appendf(nil, `{"text":"%s %d"}`, b.Name(), i)})
					last = filepath.Join(dir, "messages", "branch-"+b.Name(), at.ID.String()+".json")
				}
				return last
			}
			last := say(c.Active(), 3)
			if damage.sealed {
				kit.Check(t, c.Seal(ctx))
			}
			say(kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 3)), 1)
			kit.Check(t, c.Close(), os.Remove(last))
			damage.do(p)
			want := map[string][]string{"main": {"main 0", "main 1", ""}, "alt": {"main 0", "main 1", "", "alt 0"}}
			if name == "the log" { // else a writer begins anew
				p.Repair(checking.Options{})
			}
			for round := range 3 {
				p.In(func(c *engine.Context) {
					for branch, want := range want {
						showsTexts(t, c, branch, want, round > 0)
					}
					if round > 0 {
						return
					}
					at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"next"}`)})
					if want["main"] = append(want["main"], "next"); at.Position != 3 {
						t.Errorf("the next message has position %d", at.Position)
					}
				})
				p.Repair(checking.Options{})
			}
			found := p.Check(true)
			if len(found) != 1 || found[0].Kind != integrity.KindLost {
				t.Errorf("a check finds %+v", found)
			}
		})
	}
}

// showsTexts compares the texts that a branch shows; "" stands for a message that is lost. Before a repair, more may be.
func showsTexts(t *testing.T, c *engine.Context, name string, want []string, repaired bool) {
	t.Helper()
	var got []string
	for i, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(name))) {
		if m.Position != int64(i) {
			t.Fatalf("branch %s: position %d comes after %d messages", name, m.Position, i)
		}
		text := ""
		if m.Unavailable == nil {
			text = kit.BodyOf(m)[len(`{"text":"`):]
			text = text[:len(text)-len(`"}`)]
		}
		got = append(got, text)
	}
	for i := range min(len(got), len(want)) {
		if !repaired && got[i] == "" {
			got[i] = want[i]
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("branch %s shows %q, wanted %q", name, got, want)
	}
}
