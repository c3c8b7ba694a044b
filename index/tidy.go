package index

import (
	"errors"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Tidy removes the logs and segments that a crash left beside what took their place, and logs that it left blank. It
// returns the paths, in the folder of the context, of those that belong to a divergent history. It fails
// with [ErrDamaged] if a log may be the only whole copy of what a damaged segment has: a repair has to come first. The caller
// holds the lock of the context and the one for sealing, and has called Prepare.
func (ix *Index) Tidy() (unlinked []string, err error) {
	if err := ix.clear(); err != nil {
		return nil, err
	}
	all, err := ix.held()
	if err != nil {
		return nil, err
	}
	defer all.release()
	logs, err := ix.besides(all)
	if err != nil {
		return nil, err
	}
	for _, o := range logs {
		switch o.is {
		case besideBlank: // it was made for an end that was never written
			if err := ix.dir.Logs.Remove(o.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		case besideUnlinked:
			unlinked = append(unlinked, o.name)
		default: // clear left it
			return nil, damaged("%s may be the only intact copy of a segment's records", o.name)
		}
	}
	names, err := ix.otherSegments(all)
	for _, n := range names {
		unlinked = append(unlinked, ctxfolder.Segments+"/"+n.File())
	}
	return unlinked, err
}
