package reference

import (
	"context"
	"encoding/json"
	"path"
	"strings"
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

// places makes paths relative to the root of a workspace.
type places []string

// newPlaces returns the places for a message: the given folders, and the one that the message names.
func newPlaces(body json.RawMessage, folders []string) (p places) {
	for _, folder := range append(folders[:len(folders):len(folders)], workingFolder(body)) {
		if folder = slashed(folder); isAbsolute(folder) && path.Clean(folder) != "/" {
			p = append(p, path.Clean(folder))
		}
	}
	return p
}

// file returns a path relative to the root, "" if it is outside.
func (p places) file(name string) string {
	name = slashed(name)
	if isAbsolute(name) {
		name = p.below(path.Clean(name))
	} else if strings.HasPrefix(name, "~") {
		return ""
	}
	if name = path.Clean(name); !validFile(name) || strings.Contains(name, ":/") {
		return ""
	}
	return name
}

func (p places) below(name string) string {
	for _, folder := range p {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
			return rest
		}
	}
	return ""
}

// slashed is a path with slashes, if it is one of Windows.
func slashed(name string) string {
	if len(name) > 2 && name[1] == ':' || !strings.Contains(name, "/") {
		return strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

func isAbsolute(name string) bool {
	return strings.HasPrefix(name, "/") || len(name) > 2 && name[1] == ':' && name[2] == '/'
}
