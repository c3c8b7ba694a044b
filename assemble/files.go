package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
)

// maxUses bounds the mentions of files that the ledger looks at.
const maxUses = 3000

// ledgerFile is a file of the ledger.
type ledgerFile struct {
	path  string
	last  search.PathUse
	uses  int
	score float64
}

// addFiles adds the ledger: the paths of the files that messages name. Those with terms of the query come first, then
// those that were named last.
func (b *builder) addFiles() error {
	uses, err := b.x.Paths(b.ctx, b.r.Context, b.r.Branch, maxUses)
	if err != nil {
		return err
	}
	root := strings.TrimSuffix(b.c.Metadata().Labels["project"], "/") + "/"
	at := map[string]int{}
	var files []ledgerFile
	for _, u := range uses {
		path := strings.TrimPrefix(u.Path, root)
		i, ok := at[path]
		if !ok {
			i = len(files)
			at[path] = i
			files = append(files, ledgerFile{path: path, last: u})
		}
		files[i].uses++
	}
	wanted := map[string]bool{}
	for _, t := range b.queryTerms() {
		wanted[t] = true
	}
	for i := range files {
		found := map[string]bool{}
		b.cutter.Each(files[i].path, func(terms []string) {
			for _, t := range terms {
				if wanted[t] && !found[t] {
					found[t] = true
					files[i].score++
				}
			}
		})
	}
	slices.SortStableFunc(files, func(x, y ledgerFile) int { return cmp.Compare(y.score, x.score) })
	room := b.budget(b.r.Share.Files)
	for i := range files {
		f := &files[i]
		it := Item{
			Kind: File, Strategy: Ledger, Context: b.r.Context, Title: b.title, Branch: b.branchOf(f.last.Branches), Position: f.last.Position,
			ID: f.last.ID, At: f.last.At, Text: f.path, Score: f.score, Why: fmt.Sprintf("named %s", times(f.uses)),
		}
		if !b.take(&it, &room) {
			break
		}
	}
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
