package reference

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Of returns the references of a message: those stored with it, and then those that tool calls and their results imply.
// folders are the roots at which the workspace was when the message was made, such as the label "project" of an imported
// context: absolute paths below one of them, or below the folder that the message names as its own, become relative;
// other absolute paths are left out. The error says what could not be read; the rest is returned.
func Of(ctx context.Context, m *ctxdir.Message, folders ...string) ([]Ref, error) {
	refs, err := Stored(m)
	if m.Unavailable != nil {
		return refs, err
	}
	body, berr := m.Texts(ctx)
	if len(body) == 0 {
		body = m.Stored
	}
	if err == nil {
		err = berr
	}
	computed := inCalls(body, folders)
	for i := range computed {
		computed[i].Seen = seen(m)
	}
	return append(refs, computed...), err
}

// Stored returns the references that are stored with a message. The error says which ones are invalid; the rest is
// returned.
func Stored(m *ctxdir.Message) ([]Ref, error) {
	refs, err := Decode(m.References)
	for i := range refs {
		refs[i].Seen = seen(m)
	}
	return refs, err
}

func seen(m *ctxdir.Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt
	}
	return m.CreatedAt
}
