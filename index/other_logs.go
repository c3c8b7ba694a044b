package index

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/internal/journal"
)

// besideLog is a log that the history does not read.
type besideLog struct {
	name     string
	is       int
	from, to uint64 // the places between which it goes, if it is whole
}

const (
	besideUnlinked = iota // it belongs to a divergent history
	besideBlank           // it has not begun
	besideSealed          // a crash left it beside the segments that have its records: both its ends are ends of segments
	besideSuspect         // it may be sealed: the segments there are damaged, and do not tell where they end
)

// besides returns the logs that the history does not read.
func (ix *Index) besides(all *segments) (logs []besideLog, err error) {
	names, err := ix.otherLogs()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	ends, broken, err := all.ends()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		o, err := ix.beside(name, ends)
		if err != nil {
			return nil, err
		}
		if o.is == besideUnlinked && slices.ContainsFunc(broken, o.isIn) {
			o.is = besideSuspect
		}
		logs = append(logs, o)
	}
	return logs, nil
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

// logsBefore returns those that are older than a log of the history, such as one whose first record is damaged.
func (ix *Index) logsBefore(o *openLog) (names []string, err error) {
	newer, _ := journal.ParseName(o.Name())
	all, err := ix.otherLogs()
	for _, name := range all {
		if n, ok := journal.ParseName(name); ok && n < newer {
			names = append(names, name)
		}
	}
	return names, err
}

// ends returns the places at which segments begin or end, or did before they were merged, and the segments that do not tell
// theirs.
func (x *segments) ends() (ends map[journal.Position]bool, broken []*openSegment, err error) {
	ends = map[journal.Position]bool{}
	for _, o := range x.all {
		var joints []journal.Position
		err := o.need()
		if err == nil {
			joints, err = o.Joints()
		}
		switch {
		case errors.Is(err, ErrDamaged):
			broken = append(broken, o)
		case err == nil:
			for _, at := range append(joints, o.From(), o.To()) {
				ends[at] = true
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, nil, err
		}
	}
	return ends, broken, nil
}

// beside looks at a log. It is sealed if it is whole and goes from one of some places to another one.
func (ix *Index) beside(name string, ends map[journal.Position]bool) (o besideLog, err error) {
	o.name = name
	l, err := journal.Open(ix.dir.Logs, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // or it is gone
		o.is = besideBlank
		return o, nil
	case errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrVersion):
		return o, nil
	case err != nil:
		return o, err
	}
	defer func() { _ = l.Close() }() // it was only read
	whole := true
	_, err = l.Read(func(journal.Record) error { return nil }, func(uint64) { whole = false })
	if errors.Is(err, journal.ErrDamaged) {
		return o, nil
	}
	if whole = whole && l.Next() != ""; whole {
		o.from, o.to = l.From().Seq, l.At().Seq
	}
	switch {
	case whole && ends[l.From()] && ends[l.At()]:
		o.is = besideSealed
	case l.IsTorn():
		o.is = besideBlank
	}
	return o, err
}

// isIn reports whether a segment has, by its name, records with the numbers of those of a log that is whole.
func (o *besideLog) isIn(seg *openSegment) bool {
	return o.to > o.from && o.from < seg.name.To && o.to >= seg.name.From
}

// sealedLogs returns the names of the logs that segments have, whole.
func (ix *Index) sealedLogs(all *segments) (sealed []string, err error) {
	logs, err := ix.besides(all)
	if err != nil {
		return nil, err
	}
	for _, o := range logs {
		if o.is != besideSealed {
			continue
		}
		for _, seg := range all.all {
			if err == nil && o.isIn(seg) {
				err = seg.needWhole()
			}
		}
		if err == nil {
			sealed = append(sealed, o.name)
		} else if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
	}
	return sealed, nil
}

// copyIn returns a message from a log that the history does not read, or nil.
func (ix *Index) copyIn(name string, e *Entry) (b []byte) {
	l, err := journal.Open(ix.dir.Logs, name)
	if err != nil {
		return nil
	}
	defer func() { _ = l.Close() }()               // it was only read
	_, _ = l.Read(func(rec journal.Record) error { // as far as it is whole
		if rec.Len == e.Size && rec.Sum == e.Sum && b == nil {
			b, _ = l.ReadBody(rec.Off)
		}
		return nil
	}, func(uint64) {})
	return b
}
