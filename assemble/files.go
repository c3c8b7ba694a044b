package assemble

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// maxUses bounds the mentions of files that the ledger looks at.
const maxUses = 3000

// ledgerFile is a file of the ledger.
type ledgerFile struct {
	path string
	last search.PathUse
	uses int
}

// addFiles adds the ledger: the paths of the files that messages name, the last ones first. Those that the newest
// messages show are not in it. So it changes as seldom as the beginning of the newest messages does, and comes before
// them.
func (b *builder) addFiles() error {
	uses, err := b.x.Paths(b.ctx, b.r.Context, b.r.Branch, maxUses)
	if err != nil {
		return err
	}
	root := strings.TrimSuffix(b.c.Metadata().Labels["project"], "/") + "/"
	at := map[string]int{}
	var files []ledgerFile
	before := slices.IndexFunc(b.items, func(it Item) bool { return it.Kind == Newest })
	if before < 0 {
		before = len(b.items)
	}
	newest := slices.Clone(b.items[before:])
	texts := make(map[uuid.UUID]string, len(newest))
	for i := range newest {
		texts[newest[i].ID] = newest[i].Text
	}
	for _, u := range uses {
		path := strings.TrimPrefix(u.Path, root)
		if strings.Contains(texts[u.ID], path) {
			continue
		}
		i, ok := at[path]
		if !ok {
			i = len(files)
			at[path] = i
			files = append(files, ledgerFile{path: path, last: u})
		}
		files[i].uses++
	}
	room := b.budget(b.r.Weights.Files)
	b.items = b.items[:before]
	for i := range files {
		f := &files[i]
		it := Item{
			Kind: File, Strategy: Ledger, Context: b.r.Context, Title: b.title, Branch: b.branchOf(f.last.Branches), Position: f.last.Position,
			ID: f.last.ID, At: f.last.At, Text: f.path, Why: fmt.Sprintf("named %s", times(f.uses)),
		}
		if room < 0 {
			b.leaveOut(&it, "over the budget")
		} else if !b.take(&it, &room) {
			room = -1
		}
	}
	b.items = append(b.items, newest...)
	return nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// branchOf chooses the branch by which a message is named: that of the request, if it shows the message.
func (b *builder) branchOf(branches []string) string {
	if len(branches) == 0 || slices.Contains(branches, b.branch.Name()) {
		return b.branch.Name()
	}
	return branches[0]
}

// queryTerms returns the terms of the query.
func (b *builder) queryTerms() []string {
	if b.terms == nil {
		b.terms = append([]string{}, b.cutter.Query(b.r.Query)...)
	}
	return b.terms
}

// preferred chooses a branch that shows a message: the active one, if it does.
func preferred(c *ctxdir.Context, branches []string) string {
	if active := c.Active().Name(); slices.Contains(branches, active) {
		return active
	}
	return branches[0]
}
