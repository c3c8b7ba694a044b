package index

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// Tidy removes the logs and segments that a crash left beside what took their place, and logs that it left blank. It
// returns the paths, in the folder of the context, of those that are no part of the history: another one has them. The
// caller holds the lock of the context and the one for sealing, and has called Prepare.
func (ix *Index) Tidy() (strays []string, err error) {
	if err := ix.clear(); err != nil {
		return nil, err
	}
	logs, err := ix.otherLogs()
	if err != nil {
		return nil, err
	}
	for _, name := range logs {
		l, err := journal.Open(ix.dir.Logs, name)
		switch {
		case err == nil:
			err = l.Close()
		case errors.Is(err, journal.ErrBlank): // it was made for an end that was never written
			if err := ix.dir.Logs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrVersion):
			err = nil
		}
		if err != nil {
			return nil, err
		}
		strays = append(strays, name)
	}
	all, err := ix.held()
	if err != nil {
		return nil, err
	}
	defer all.release()
	for e, err := range ix.dir.Segments.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		n, ok := archive.ParseName(e.Name())
		if ok && !slices.ContainsFunc(all.all, func(o *openSegment) bool { return o.name == n }) {
			strays = append(strays, ctxfolder.Segments+"/"+e.Name())
		}
	}
	return strays, nil
}

// otherLogs returns the names of the logs that the history does not read.
func (ix *Index) otherLogs() (names []string, err error) {
	if names, err = listLogs(ix.dir.Logs); err != nil {
		return nil, err
	}
	err = ix.viewLogs(func(s *state) {
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(s.logs, func(o *openLog) bool { return o.Name() == name || o.Next() == name })
		})
	})
	return names, err
}

// sealedLogs returns the names of the logs that a crash left beside the segments that have their records: both their ends are
// ends of segments.
func (ix *Index) sealedLogs(all *segments) (sealed []string, err error) {
	names, err := ix.otherLogs()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	ends := map[journal.Spot]bool{}
	for _, o := range all.all {
		if err := o.need(); err != nil {
			return nil, err
		}
		joints, err := o.Joints()
		if err != nil {
			return nil, err
		}
		for _, at := range append(joints, o.From(), o.To()) {
			ends[at] = true
		}
	}
	for _, name := range names {
		is, err := ix.isBetween(name, ends)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if is {
			sealed = append(sealed, name)
		}
	}
	return sealed, nil
}

// isBetween reports whether a log is whole and goes from one of some places to another one.
func (ix *Index) isBetween(name string, ends map[journal.Spot]bool) (bool, error) {
	l, err := journal.Open(ix.dir.Logs, name)
	if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrVersion) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = l.Close() }() // it was only read
	whole := true
	_, err = l.Read(func(journal.Record) error { return nil }, func(uint64) { whole = false })
	if errors.Is(err, journal.ErrDamaged) {
		return false, nil
	}
	return whole && l.Next() != "" && ends[l.From()] && ends[l.At()], err
}
