package migrate

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/go-json-experiment/json/jsontext"
)

// branches yields the branches with their lists.
func (r *legacyWriter) branches(ctx context.Context) iter.Seq2[legacy.ListedBranch, error] {
	return func(yield func(legacy.ListedBranch, error) bool) {
		for i := range r.m.Branches {
			b := &r.m.Branches[i]
			if !r.isBranch(b, r.of[i]) {
				continue
			}
			l, err := r.branch(ctx, b, r.of[i])
			if err == nil {
				err = ctx.Err()
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func (r *legacyWriter) branch(ctx context.Context, b *ctxfolder.Branch, of *BranchOrigin) (legacy.ListedBranch, error) {
	l := legacy.ListedBranch{Name: of.Key(r.m, b), List: r.list(ctx, b, of)}
	if of.members == nil {
		for _, name := range []string{"name", legacy.NameList, "system_prompt"} {
			of.members = append(of.members, legacy.Member{Name: legacy.Quote(name)})
		}
		of.members = append(of.members, legacy.Member{Name: legacy.Quote("user_prompt"), Value: jsontext.Value("null")})
	}
	prompt, err := r.c.SystemPrompt(ctx, b.Name)
	if err != nil {
		return l, err
	}
	for _, m := range of.members {
		switch name, _ := legacy.Text(m.Name); {
		case m.Value != nil:
		case name == "name":
			m.Value = l.Name
		case name == "system_prompt":
			m.Value = promptValue(b, of, jsontext.Value(prompt))
		}
		l.Members = append(l.Members, m)
	}
	if l.Members.Last(legacy.NameList) < 0 && r.length(b) > 0 {
		l.Members = append(l.Members, legacy.Member{Name: legacy.Quote(legacy.NameList)})
	}
	return l, nil
}

// promptValue returns the system prompt in the form of a branch of a legacy context.
func promptValue(b *ctxfolder.Branch, of *BranchOrigin, prompt jsontext.Value) jsontext.Value {
	switch {
	case of.promptOf != nil:
		return of.promptOf.Object(func(string) jsontext.Value { return prompt })
	case prompt == nil || prompt.Kind() == 'n':
		return jsontext.Value("null")
	case b.Extra.Get(legacyMember) != nil:
		return prompt // it was a text there too
	}
	return legacy.Members{
		{Name: legacy.Quote("id"), Value: quoteID(b.Line)}, {Name: legacy.Quote("content"), Value: prompt},
	}.Object(nil)
}

// list yields the keys of the messages that a branch shows, and in their places the keys whose messages never existed.
func (r *legacyWriter) list(ctx context.Context, b *ctxfolder.Branch, of *BranchOrigin) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		missing := of.missing
		put := func(before int64) bool { // yields the missing keys before that position
			for len(missing) > 0 && int64(missing[0].At) <= before {
				if !yield(missing[0].ID, nil) {
					return false
				}
				missing = missing[1:]
			}
			return true
		}
		end := r.length(b)
		segments, err := branch.Segments(r.m, b.Line, 0, end)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, seg := range segments {
			for e, err := range r.c.Index.All(ctx, seg.Line, seg.From, seg.To) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !put(e.Position) || !yield(r.key(seg.Line, e.Position, e.ID), nil) {
					return
				}
			}
		}
		put(end)
	}
}
