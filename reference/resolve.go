package reference

import "context"

// Resolve looks for the lines of references below the root of a workspace. It returns a resolution for each reference,
// in order. It works without git and without a repository, but finds more with them. Git has five seconds; a note says
// if they did not suffice. Resolve fails only if the root cannot be read or ctx ends.
func Resolve(ctx context.Context, root string, refs []Ref) ([]Resolution, error) {
	t, err := openTree(root)
	if err != nil {
		return nil, err
	}
	defer t.close()
	s := search{ctx: ctx, tree: t, budget: work, all: make([]Resolution, len(refs))}
	defer s.close()
	for i := range refs {
		s.all[i] = Resolution{Ref: refs[i], Status: NotFound, File: refs[i].File, Lines: refs[i].Lines, gone: true}
	}
	for _, i := range s.byFile() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.lookInPlace(&s.all[i])
	}
	s.lookElsewhere()
	for _, i := range s.byFile() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.lookBack(&s.all[i])
	}
	return s.all, ctx.Err()
}
