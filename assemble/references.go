package assemble

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/reference"
)

const (
	maxReferences = 20   // that are resolved
	maxLines      = 1600 // bytes of the lines of one
)

// addReferences adds the lines of code to which the newest messages and the best passages refer, as they are now.
func (b *builder) addReferences() error {
	slices.SortStableFunc(b.references, func(x, y located) int { return cmp.Compare(y.from.Score, x.from.Score) })
	var refs []reference.Ref
	var from []Item
	seen := map[string]bool{}
	for _, l := range b.references {
		if !seen[l.ref.String()] && len(refs) < maxReferences {
			seen[l.ref.String()] = true
			refs, from = append(refs, l.ref), append(from, l.from)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	found, err := reference.Resolve(b.ctx, b.r.Root, refs)
	if err != nil {
		return err
	}
	room := b.budget(b.r.Weights.Code)
	for i := range found {
		r, it := &found[i], from[i]
		text := cmp.Or(r.Text, r.Fallback)
		if text == "" {
			continue
		}
		where := r.File
		if !r.Lines.IsZero() {
			where += ":" + r.Lines.String()
		}
		it.Kind, it.Strategy, it.Tokens, it.sections = Code, Resolve, 0, nil
		it.Text = fmt.Sprintf("%s (%s)\n%s", where, r.Status, shorten(text, maxLines))
		it.Why = fmt.Sprintf("message %d refers to it", it.Position)
		if r.Note != "" {
			it.Why += "; " + r.Note
		}
		b.take(&it, &room)
	}
	return nil
}
