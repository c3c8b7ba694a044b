package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

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
// part of the history, and a new listing has what took its place. What stays missing is damage, and the rest counts.
func load(dir Folder, was *state) (s *state, err error) {
	listing := "none"
	for look := 1; ; look++ {
		s, err = loadOnce(dir, was, false)
		changed := s.listing != listing
		listing = s.listing
		switch {
		case err == nil:
			return s, nil
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrGap) && (!changed || look == looks):
			return loadOnce(dir, was, true)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrGap) || look == looks:
			return nil, err
		}
	}
}

func loadOnce(dir Folder, was *state, lenient bool) (s *state, err error) {
	s = &state{context: dir.Context, segments: newSegments(), lenient: lenient}
	var opened []*openLog
	defer func() {
		for _, o := range opened {
			o.release()
		}
		if err != nil {
			s.close()
		}
	}()
	names, err := listLogs(dir.Logs) // first: what is sealed meanwhile is in a segment
	if err != nil {
		return s, err
	}
	s.listing = strings.Join(names, " ")
	if err := s.openSegments(dir, was); err != nil {
		return s, err
	}
	for _, name := range names {
		o, err := openLogIn(dir, name)
		switch {
		case errors.Is(err, journal.ErrBlank): // it begins with its first commit
		case lenient && errors.Is(err, journal.ErrDamaged):
			s.problem(Problem{File: name, Detail: err.Error()})
		case err != nil:
			return s, err
		default:
			opened = append(opened, o)
		}
	}
	if err := s.begin(opened); err != nil {
		return s, err
	}
	return s, s.readLogs(opened)
}

// begin takes the state at the end of the segments: from the log that continues them, or else from the newest one.
func (s *state) begin(logs []*openLog) error {
	last := s.segments.last()
	for _, o := range logs {
		if s.continues(o) && o.State() != nil {
			return s.restore(o.State(), o.From())
		}
	}
	if last == nil {
		if err := s.restore(nil, journal.Spot{}); err != nil || !s.lenient {
			return err
		}
	}
	for i := len(s.segments.all) - 1; i >= 0; i-- {
		o := s.segments.all[i]
		b, err := o.state()
		if err == nil {
			err = s.restore(b, o.To())
		}
		if err == nil || !s.lenient || !errors.Is(err, ErrDamaged) {
			return err
		}
		s.problem(Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
	}
	return s.restore(nil, journal.Spot{})
}

// continues reports whether a log goes on where the segments end.
func (s *state) continues(o *openLog) bool {
	last := s.segments.last()
	if last == nil {
		return o.From() == journal.Spot{}
	}
	return o.From().Seq == last.name.To && uint32(o.From().Chain>>32) == last.name.Chain
}

// readLogs reads the logs that continue the segments, and each other. With lenient, records may be missing before one.
func (s *state) readLogs(logs []*openLog) error {
	for _, o := range logs {
		if o.From() != s.at {
			if !s.lenient || o.From().Seq <= s.at.Seq || len(s.segments.all) > 0 && o.From().Seq <= s.segments.last().name.To {
				continue // sealed already, or of another history
			}
			if err := s.jump(o); err != nil {
				return err
			}
		}
		o.hold()
		s.logs = append(s.logs, o)
		if err := s.readLog(o); err != nil {
			return err
		}
		if o.State() == nil {
			if !s.lenient {
				return damaged("the begin record of %s", o.Name())
			}
			s.broken = true
			s.problem(Problem{File: o.Name(), From: o.From().Seq + 1, To: o.From().Seq, Detail: "the begin record is damaged"})
		}
	}
	if len(s.logs) == 0 {
		if !s.lenient {
			return fmt.Errorf("%w: no log continues record %d", ErrGap, s.at.Seq)
		}
		s.broken = true
		s.problem(Problem{From: s.at.Seq + 1, Detail: "the newest log is missing"})
	}
	return nil
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
// the largest that ends where the next one begins, in its newest edition. The others are contained in these. missing are
// the numbers of records that none has, from … to each.
func listSegments(dir vfs.FS) (names []segment.Name, missing [][2]uint64, err error) {
	var all []segment.Name
	for e, err := range dir.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if n, ok := segment.ParseName(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b segment.Name) int {
		return cmp.Or(-cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), -cmp.Compare(a.Edition, b.Edition))
	})
	for i, n := range all {
		if i > 0 {
			want := names[len(names)-1].From - 1
			if n.To > want {
				continue
			}
			if n.To < want {
				missing = append(missing, [2]uint64{n.To + 1, want})
			}
		}
		names = append(names, n)
	}
	slices.Reverse(names)
	if len(names) > 0 && names[0].From != 1 {
		missing = append(missing, [2]uint64{1, names[0].From - 1})
	}
	return names, missing, nil
}

func (s *state) openSegments(dir Folder, was *state) error {
	names, missing, err := listSegments(dir.Segments)
	if err != nil {
		return err
	}
	for i := range names {
		s.listing += " " + names[i].File()
	}
	for _, m := range missing {
		if !s.lenient {
			return fmt.Errorf("%w: %d to %d", ErrGap, m[0], m[1])
		}
		s.problem(Problem{From: m[0], To: m[1], Detail: "a segment is missing"})
	}
	var after *segment.Name
	for i := range names {
		o := was.segment(names[i])
		if o == nil {
			o = newOpenSegment(dir, names[i], after)
		}
		s.segments.all = append(s.segments.all, o)
		if after = &names[i]; i+1 < len(names) && names[i+1].From != after.To+1 {
			after = nil
		}
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

func openLogIn(dir Folder, name string) (*openLog, error) {
	l, err := journal.Open(dir.Logs, name)
	if err != nil {
		return nil, err
	}
	return newOpenLog(l), nil
}

// readLog applies the records of a log after the last known one.
func (s *state) readLog(o *openLog) error {
	lost := func(n uint64, err error) error {
		if !s.lenient {
			return err
		}
		s.problem(Problem{File: o.Name(), From: o.At().Seq + 1, To: o.At().Seq + n, Detail: err.Error()})
		s.gaps, s.broken = true, true
		return nil
	}
	s.broken = false
	var failed error
	tail, err := o.Read(nil, func(rec journal.Record) error {
		if failed != nil {
			return failed
		}
		r := record{Record: rec, log: o}
		err := r.parse()
		if err == nil {
			err = s.take(&r)
		}
		if err != nil && errors.Is(err, ErrDamaged) {
			s.at = r.Spot()
			return lost(1, err)
		}
		return err
	}, func(n uint64) {
		if err := lost(n, damaged("%d records of %s", n, o.Name())); failed == nil {
			failed = err
		}
	})
	if err == nil && tail == journal.Damaged {
		err = lost(0, damaged("the last record of %s", o.Name()))
	}
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
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
