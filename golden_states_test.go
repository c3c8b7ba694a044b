package ctxdir_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// States of metadata and of the trash.
func init() {
	goldenStates["labels"] = func(g *golden) {
		c := must(g.s.Create(g.Context(), ctxdir.Metadata{
			Title: "labels", Kind: "agent", ExternalID: "session/7", Labels: map[string]string{"team": "a", "später": "❤"},
		}))
		g.fill(c, "main", 3)
		g.do(c.Update(g.Context(), func(m *ctxdir.Metadata) error { delete(m.Labels, "team"); m.Labels["new"] = ""; return nil }))
	}
	goldenStates["groups"] = func(g *golden) {
		c := g.new("groups")
		commit := func() {
			must(c.Commit(g.Context(), func(tx *ctxdir.Tx) error {
				for _, branch := range []string{"main", "main"} {
					g.do(tx.Append(branch, ctxdir.Draft{Body: said("tool", "of a group "+strings.Repeat("with a payload ", 1500))}))
				}
				return tx.Update(func(m *ctxdir.Metadata) error { m.State = json.RawMessage(`{"step":2}`); return nil })
			}))
		}
		g.fill(c, "main", 2)
		commit()
		g.do(c.Admin().Seal(g.Context()))
		commit()
	}
	// Changes of the metadata follow the last copy.
	goldenStates["changes"] = func(g *golden) {
		c := g.new("changes")
		g.fill(c, "main", 4)
		for i := range 40 {
			must(c.Active().Fork(g.Context(), fmt.Sprint("fork ", i), int64(i%5)))
			switch {
			case i == 20:
				g.do(c.Admin().Seal(g.Context()))
			case i%7 == 3:
				must(must(c.Branch(fmt.Sprint("fork ", i))).Rename(g.Context(), fmt.Sprint("renamed ", i)))
			case i%7 == 5:
				g.do(must(c.Branch(fmt.Sprint("fork ", i))).Remove(g.Context()))
			case i%7 == 6:
				g.fill(c, fmt.Sprint("fork ", i), 1)
			}
		}
		g.do(c.Update(g.Context(), func(m *ctxdir.Metadata) error { m.Labels = map[string]string{"team": "a"}; m.State = nil; return nil }))
	}
	// A process that was killed leaves commits without their message files.
	goldenStates["files-behind"] = func(g *golden) {
		c := g.new("files behind")
		g.fill(c, "main", 3)
		g.do(c.Admin().Seal(g.Context()))
		g.fill(c, "main", 4)
		g.do(c.Flush(g.Context()))
		for _, m := range must(c.Active().Last(g.Context(), 3)) {
			g.do(os.Remove(g.file(c, m)))
		}
	}
	goldenStates["metadata-behind"] = func(g *golden) {
		c := g.new("metadata behind")
		g.fill(c, "main", 2)
		g.do(c.Flush(g.Context()))
		old := must(os.ReadFile(g.metadata(c)))
		must(c.Active().Fork(g.Context(), "alt", 1))
		g.fill(c, "alt", 2)
		g.do(c.Flush(g.Context()))
		g.do(os.WriteFile(g.metadata(c), old, 0o600))
	}
	goldenStates["metadata-edited"] = func(g *golden) {
		c := g.new("metadata")
		g.fill(c, "main", 2)
		must(c.Active().Fork(g.Context(), "alt", 1))
		g.do(c.Flush(g.Context()))
		g.editMetadata(c, `"metadata"`, `"metadata edited"`)
		g.editMetadata(c, `"name": "alt"`, `"name": "renamed by hand"`)
	}
	goldenStates["removed-lines"] = func(g *golden) {
		c := g.new("removed lines")
		g.fill(c, "main", 8)
		for _, name := range []string{"gone", "restored"} {
			must(c.Active().Fork(g.Context(), name, 3))
			g.fill(c, name, 2)
			g.do(must(c.Branch(name)).Remove(g.Context()))
		}
		g.do(c.Active().Rewind(g.Context(), 5))
		g.fill(c, "main", 1)
		for item, err := range g.s.Trash(g.Context(), c.ID()) {
			if g.do(err); item.Name == "restored" {
				must(g.s.Restore(g.Context(), item.ID))
			}
		}
	}
	goldenStates["trash"] = func(g *golden) {
		c := g.new("trash")
		g.fill(c, "main", 4)
		for i, m := range must(c.Active().Range(g.Context(), 0, 2)) {
			g.do(c.Active().Replace(g.Context(), m.ID, ctxdir.Draft{Body: said("user", []string{"one", "two"}[i])}))
		}
		for range 2 {
			gone := g.new("a removed context")
			g.fill(gone, "main", 2)
			g.do(gone.Close())
			must(g.s.Remove(g.Context(), gone.ID()))
		}
	}
}

func (g *golden) metadata(c *ctxdir.Context) string {
	return filepath.Join(g.dir, c.ID().String(), "metadata.json")
}

func (g *golden) editMetadata(c *ctxdir.Context, old, now string) {
	g.Helper()
	b := must(os.ReadFile(g.metadata(c)))
	if bytes.Count(b, []byte(old)) != 1 {
		g.Fatalf("metadata.json has not one %s: %s", old, b)
	}
	g.do(os.WriteFile(g.metadata(c), bytes.Replace(b, []byte(old), []byte(now), 1), 0o600))
}

// everyOperation does each kind of operation on a context.
func everyOperation(g *golden, c *ctxdir.Context) {
	ctx := g.Context()
	b := c.Active()
	var first uuid.UUID
	must(c.Commit(ctx, func(tx *ctxdir.Tx) error {
		return tx.Update(func(m *ctxdir.Metadata) error { m.Labels = map[string]string{"all": "operations"}; return nil })
	}))
	for range 3 {
		at := must(b.Append(ctx, ctxdir.Draft{Body: said("tool", strings.Repeat("a new payload ", 1500))}))
		first = at.ID
	}
	n := must(b.Len(ctx))
	g.do(b.Replace(ctx, first, ctxdir.Draft{Body: said("user", "replaced")}))
	must(b.Fork(ctx, "a fork", n-1))
	g.fill(c, "a fork", 2)
	must(must(c.Branch("a fork")).Rename(ctx, "a fork: renamed"))
	g.do(c.Switch(ctx, "a fork: renamed"))
	g.do(c.Active().Rewind(ctx, n-2))
	g.do(c.Switch(ctx, b.Name()))
	g.do(must(c.Branch("a fork: renamed")).Remove(ctx))
	for item, err := range g.s.Trash(ctx, c.ID()) {
		if g.do(err); item.Name == "a fork: renamed" && item.Kind == "line" {
			restored := must(g.s.Restore(ctx, item.ID))
			g.do(c.Refresh(ctx))
			g.fill(c, restored.Name, 1)
			break
		}
	}
	g.do(c.Admin().Seal(ctx))
	g.archive(c, ctxdir.ArchiveOptions{KeepLast: 2})
	g.fill(c, b.Name(), 1)
	must(c.Admin().Externalise(ctx, 64, false))
	must(c.Admin().Unarchive(ctx, nil))
	must(g.s.Erase(ctx, c.ID(), []uuid.UUID{first}, ctxdir.EraseOptions{Shared: true}))
	must(g.s.Collect(ctx, ctxdir.CollectOptions{Contexts: []uuid.UUID{c.ID()}, Grace: time.Nanosecond}))
	g.fill(c, b.Name(), 1)
	if after := must(b.Len(ctx)); after != n+2 {
		g.Errorf("%s: %d messages, wanted %d", c.Metadata().Title, after, n+2)
	}
}
