package integrity_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// TestErased: the file of an erased message goes for good, wherever it is. While the note of an interrupted erase names the
// message, the file is no error.
func TestErased(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPatient(t, state{true, false})
	kept, err := os.ReadFile(p.view(6))
	check(t, err)
	p.do(func(c *engine.Context) error {
		return c.Exclusively(ctx, func() error {
			item, err := c.Index.EraseItem(c.Metadata().Lines[0].ID, []int64{6})
			if err != nil {
				return err
			}
			return c.CommitDurably([]engine.Item{{Item: item}})
		})
	})
	for _, path := range []string{p.view(6), p.path("messages", "branch-alt", filepath.Base(p.view(6)))} {
		_ = os.Remove(p.view(6))
		check(t, os.WriteFile(path, kept, 0o600))
		p.only(p.check(), integrity.KindErased, bad, 1)
		p.only(p.checkNoted(p.ids["main"][7]), integrity.KindErased, bad, 1)
		p.only(p.checkNoted(p.ids["main"][6]), integrity.KindErased, info, 1)
		if done, left := p.repair(checking.Options{}); len(done) != 1 || left > 0 {
			t.Errorf("%+v", done)
		}
		p.only(p.check(), "", "", 0)
	}
	for _, path := range p.files("messages/*/*") {
		b, err := os.ReadFile(path)
		if check(t, err); strings.Contains(string(b), `"short 6"`) {
			t.Errorf("%s has the message", path)
		}
	}
}

// checkNoted checks beside the note of an interrupted erase of a message, and returns what it finds but for that.
func (p *patient) checkNoted(id uuid.UUID) []integrity.Finding {
	p.Helper()
	folder, err := vfs.OS(p.path())
	check(p.T, err)
	defer folder.Close()
	check(p.T, ctxfolder.WriteErasing(folder, ctxfolder.Erasing{Messages: []uuid.UUID{id}}))
	found := p.check()
	check(p.T, ctxfolder.RemoveErasing(folder))
	return slices.DeleteFunc(found, func(f integrity.Finding) bool { return f.Kind == integrity.KindErasing })
}
