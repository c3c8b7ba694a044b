package branch

import (
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Many adds branches to metadata without branches and lines. It does what [New] does, in constant time per branch.
type Many struct {
	m     *ctxfolder.Metadata
	taken map[string]bool // names, folded as a file system that confuses some of them sees them
}

// AddMany returns a Many for the metadata.
func AddMany(m *ctxfolder.Metadata) *Many { return &Many{m, map[string]bool{}} }

// Free reports whether a branch can be added under a name.
func (a *Many) Free(name string) bool {
	_, err := Folder(name)
	return err == nil && !a.taken[fold(name)]
}

// Add adds a branch with an empty line. The name must be free.
func (a *Many) Add(name string, id uuid.UUID) (*ctxfolder.Branch, error) {
	folder, err := Folder(name)
	if err != nil {
		return nil, err
	}
	a.taken[fold(name)] = true
	a.m.Lines = append(a.m.Lines, ctxfolder.Line{ID: id, Folder: folder})
	a.m.Branches = append(a.m.Branches, ctxfolder.Branch{Name: name, Line: id})
	return &a.m.Branches[len(a.m.Branches)-1], nil
}
