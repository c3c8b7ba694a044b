package index

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Problems returns why the history is not whole, as far as it was read; nil if nothing is known.
func (ix *Index) Problems() (all []Problem, err error) {
	err = ix.view(func(s *state) {
		all = append(all, s.problems...)
		for _, o := range s.segments.all {
			if err := o.failure(); err != nil {
				all = append(all, Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
			}
		}
	})
	return all, err
}

// Examine is [Index.Problems] after a look at every file. With data it reads every byte of the segments, too, and returns
// which of those that can be used have a damaged part. Logs are read as a whole at any time.
func (ix *Index) Examine(ctx context.Context, data bool) (all, parts []Problem, err error) {
	segs, err := ix.held()
	if err != nil {
		return nil, nil, err
	}
	defer segs.release()
	for _, o := range segs.all {
		need := o.need
		if data {
			need = o.needWhole
		}
		err := need()
		if cerr := ctx.Err(); cerr != nil {
			return nil, nil, cerr
		}
		if err == nil || o.failure() != nil || errors.Is(err, fs.ErrNotExist) { // another segment may have taken its place
			continue
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, nil, err
		}
		parts = append(parts, Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
	}
	if all, err = ix.Problems(); err != nil {
		return nil, nil, err
	}
	missing, err := ix.missingNext()
	return slices.Concat(all, missing), parts, err
}

// missingNext finds that the log is gone which continues the newest one.
func (ix *Index) missingNext() (found []Problem, err error) {
	err = ix.viewLogs(func(s *state) {
		if len(s.logs) == 0 || s.newest().Next() == "" {
			return
		}
		next := s.newest().Next()
		if _, err := ix.dir.Logs.Lstat(next); errors.Is(err, fs.ErrNotExist) && s.newest().IsThere() {
			found = append(found, Problem{From: s.at.Seq + 1, Detail: "the newest log, " + next + ", is missing"})
		}
	})
	return found, err
}

// Unlinked returns the paths, in the folder of the context, of the logs and segments that belong to a divergent history. It
// leaves out files that were replaced, and that only a crash kept from being removed; see [Index.Tidy].
func (ix *Index) Unlinked() (unlinked []string, err error) {
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
		if o.is == besideUnlinked {
			unlinked = append(unlinked, o.name)
		}
	}
	names, err := ix.otherSegments(all)
	for _, n := range names {
		if !slices.ContainsFunc(all.all, func(o *openSegment) bool { in, err := o.contains(n); return in || err != nil }) {
			unlinked = append(unlinked, ctxfolder.Segments+"/"+n.File())
		}
	}
	return unlinked, err
}
