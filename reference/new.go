package reference

import "context"

// New returns a reference to the lines a to b of a file, as they are now below the root of a workspace; 0 and 0 stand for
// the whole file. The file is a path relative to the root, or an absolute one below it. New fails with [ErrInvalid] if
// the file has no such lines.
func New(ctx context.Context, root, file string, a, b int64) (Ref, error) {
	r := Ref{File: file, Lines: Lines{a, b}}
	return r, r.Validate()
}
