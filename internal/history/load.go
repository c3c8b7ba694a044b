package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/segment"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folder is where the files of a history are.
type Folder struct {
	Store, Context uuid.UUID
	Logs           vfs.FS // the folder of the context
	Segments       vfs.FS // the one of its segments
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// looks is how often a folder is read whose files others seal and merge meanwhile.
const looks = 8

// load reads the history. It keeps the open files of the state before, which may be nil.
//
// Others may seal a log, or merge segments, between the listing and the opening of a file. Then a name is missing, or a
// part of the history, and a new listing has what took its place.
func load(dir Folder, was *state) (s *state, err error) {
	for range looks {
		if s, err = loadOnce(dir, was); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrGap) {
			break
		}
	}
	return s, err
}

func loadOnce(dir Folder, was *state) (s *state, err error) {
	s = &state{context: dir.Context, segments: newSegments()}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	logs, err := listLogs(dir.Logs) // first: what is sealed meanwhile is in a segment
	if err != nil {
		return s, err
	}
	if err := s.openSegments(dir, was); err != nil {
		return s, err
	}
	if last := s.segments.last(); last != nil {
		err := last.need()
		var b []byte
		if err == nil {
			b, err = last.State()
		}
		if err == nil {
			err = s.restore(b, last.To())
		}
		if err != nil {
			return s, err
		}
	}
	return s, s.openLogs(dir, logs)
}

// listLogs returns the names of the logs in the folder of a context, in order of their numbers.
func listLogs(dir vfs.FS) (names []string, err error) {
	for e, err := range dir.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if _, ok := journal.ParseName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		na, _ := journal.ParseName(a)
		nb, _ := journal.ParseName(b)
		return cmp.Or(cmp.Compare(na, nb), cmp.Compare(a, b))
	})
	return names, nil
}

// listSegments returns the names of the segments that make up the history, in order: back from the newest one, always
// the largest that ends where the next one begins, in its newest edition. The others are contained in these.
func listSegments(dir vfs.FS) (names []segment.Name, err error) {
	var all []segment.Name
	for e, err := range dir.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n, ok := segment.ParseName(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b segment.Name) int {
		return cmp.Or(-cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), -cmp.Compare(a.Edition, b.Edition))
	})
	for want := uint64(0); len(all) > 0; all = all[1:] {
		if n := all[0]; len(names) == 0 || n.To == want {
			names, want = append(names, n), n.From-1
		} else if n.To < want {
			return nil, fmt.Errorf("%w: %d to %d", ErrGap, n.To+1, want)
		}
	}
	slices.Reverse(names)
	if len(names) > 0 && names[0].From != 1 {
		return nil, fmt.Errorf("%w: before %d", ErrGap, names[0].From)
	}
	return names, nil
}

func (s *state) openSegments(dir Folder, was *state) error {
	names, err := listSegments(dir.Segments)
	if err != nil {
		return err
	}
	var after *segment.Name
	for i, name := range names {
		o := was.segment(name)
		if o == nil {
			o = newOpenSegment(dir, name, after)
		}
		s.segments.all = append(s.segments.all, o)
		after = &names[i]
	}
	return nil
}

// segment returns an open segment, for one more user, or nil.
func (s *state) segment(name segment.Name) *openSegment {
	if s != nil {
		for _, o := range s.segments.all {
			if o.name == name && o.hold() {
				return o
			}
		}
	}
	return nil
}

// openLogs opens the logs that continue the segments, and reads their records.
func (s *state) openLogs(dir Folder, names []string) error {
	for _, name := range names {
		o, err := openLogIn(dir, name)
		if errors.Is(err, journal.ErrBlank) {
			continue
		}
		if err != nil {
			return err
		}
		if o.From() != s.at {
			o.release() // sealed already, or of another history
			continue
		}
		if s.segments.last() == nil && len(s.logs) == 0 {
			if err := s.restore(o.State(), o.From()); err != nil {
				o.release()
				return err
			}
		}
		s.logs = append(s.logs, o)
		if err := s.readLog(o); err != nil {
			return err
		}
	}
	if len(s.logs) == 0 {
		return fmt.Errorf("%w: no log continues record %d", ErrGap, s.at.Seq)
	}
	return nil
}

func openLogIn(dir Folder, name string) (*openLog, error) {
	l, err := journal.Open(dir.Logs, name)
	if err != nil {
		return nil, err
	}
	return newOpenLog(l), nil
}

// readLog applies the records of a log after the last known one.
func (s *state) readLog(o *openLog) error {
	var lost uint64
	tail, err := o.Read(nil, func(rec journal.Record) error {
		r := record{Record: rec, log: o}
		if lost > 0 {
			return r.damaged(fmt.Errorf("%d records before it are missing", lost))
		}
		if err := r.parse(); err != nil {
			return err
		}
		return s.take(&r)
	}, func(n uint64) { lost += n })
	if err != nil {
		return err
	}
	if tail == journal.Damaged {
		return damaged("the last record of %s", o.Name())
	}
	s.at = o.At() // past the end record, too
	return nil
}

// close ends the state's use of its files.
func (s *state) close() {
	s.segments.release()
	for _, o := range s.logs {
		o.release()
	}
}
