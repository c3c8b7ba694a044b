package erase_test

import (
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseMomentsOnLines: moments are erased on whatever line they are, also if only a fork shows it.
func TestEraseMomentsOnLines(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *engine.Context, notes *engine.Branch) error{
		"rewound": func(_ *engine.Context, notes *engine.Branch) error { return notes.Rewind(t.Context(), 0) },
		"removed": func(c *engine.Context, _ *engine.Branch) error { return c.Remove(t.Context(), "notes") },
		"forked": func(c *engine.Context, notes *engine.Branch) error {
			_, err := notes.Fork(t.Context(), "copy", 1)
			if err == nil {
				err = c.Remove(t.Context(), "notes")
			}
			return err
		},
		"fork removed": func(c *engine.Context, notes *engine.Branch) error {
			_, err := notes.Fork(t.Context(), "copy", 1)
			for _, name := range []string{"notes", "copy"} {
				if err == nil {
					err = c.Remove(t.Context(), name)
				}
			}
			return err
		},
		"without name": func(c *engine.Context, _ *engine.Branch) error {
			if err := c.Remove(t.Context(), "notes"); err != nil {
				return err
			}
			m := c.Current().Clone()
			for i, r := range m.Removed {
				m.Removed[i] = ctxfolder.Removed{Branch: ctxfolder.Branch{Line: r.Line}, At: r.At, Why: "unnamed"}
			}
			return c.Exclusively(t.Context(), func() error { return c.ReplaceMetadata(m) })
		},
	} {
		disk := crashfs.New()
		s, _ := newMomentStore(t, disk)
		c := openMain(t, s)
		kit.Check(t, change(c, kit.Must[*engine.Branch](t)(c.Branch("notes"))))
		if name == "forked" || name == "fork removed" { // then only the fork shows the line
			for x, err := range trash.List(t.Context(), s, c.ID()) {
				kit.Check(t, err)
				if x.Name == "notes" {
					for _, err := range trash.Purge(t.Context(), s, []uuid.UUID{x.Item}, 0, false) {
						kit.Check(t, err)
					}
				}
			}
		}
		kit.Check(t, c.Close())
		if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true}); err != nil {
			t.Fatal(name, err)
		}
		if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
			t.Errorf("%s: the canary is in %v, %v", name, found, err)
		}
	}
}
