package trash_test

import (
	"context"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRestoreWholeBranch: a branch that was removed comes back with all that it had. A rewind leaves the state with the
// branch. Until then, no collection removes the payload of its system prompt.
func TestRestoreWholeBranch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	prompt := `"` + strings.Repeat("Be kind. ", 300) + `"`
	for _, how := range []string{"removed", "rewound"} {
		s, _ := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 2)
		b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "notes", ctxfolder.Member{Key: "kind", Value: []byte(`"notes"`)}))
		kit.Fill(t, b, 2)
		kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error {
			m.Branches[1].SystemPrompt = []byte(prompt)
			m.Branches[1].Extra.Set(ctxfolder.BranchState, []byte(`{"step":7}`))
			m.Branches[1].Extra.Set("at", []byte(`"noon"`)) // as a member of the removed line is called
			return nil
		}))
		name, state := "notes", `{"step":7}`
		if how == "removed" {
			kit.Check(t, c.Remove(ctx, "notes"))
		} else {
			kit.Check(t, b.Rewind(ctx, 1))
			kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error {
				m.Branches[1].SystemPrompt = nil
				return nil
			}))
			name, state = "notes-2", ""
		}
		kit.Check(t, c.Seal(ctx), c.Close())
		if moved := kit.Sweep(t, s, 0); len(moved) > 0 {
			t.Errorf("%s: a sweep removed %v", how, moved)
		}
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, kit.TrashOf(t, s, "line")[0].Item))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		m := c.Current()
		got, ok := m.Branch(name)
		if !ok || r.Branch != name || got.Extra.Text("kind") != "notes" || string(got.Extra.Get("at")) != `"noon"` {
			t.Fatalf("%s: %q came back as %+v", how, r.Branch, got)
		}
		if string(got.Extra.Get(ctxfolder.BranchState)) != state || len(m.Removed) > 0 {
			t.Errorf("%s: state %s, removed lines %v", how, got.Extra.Get(ctxfolder.BranchState), m.Removed)
		}
		text, err := c.SystemPrompt(ctx, name)
		if err != nil || string(text) != prompt {
			t.Errorf("%s: system prompt %.20s, %v", how, text, err)
		}
		kit.Check(t, c.Close())
	}
}
