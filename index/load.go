package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

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
	s = &state{context: dir.Context, segments: newSegments(), lenient: lenient, lossBudget: maxLost}
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
	preferOwn(opened, dir.Context)
	if err := s.openSegments(dir, was, tipsOf(opened)); err != nil {
		return s, err
	}
	if err := s.begin(opened); err != nil {
		return s, err
	}
	if err := s.readLogs(opened); err != nil {
		return s, err
	}
	if err := s.checkNext(names, opened); err != nil {
		return s, err
	}
	return s, s.loseMissing()
}

// checkNext looks for the log that continues the newest one: it was there before the end record that names it.
func (s *state) checkNext(names []string, opened []*openLog) error {
	if len(s.logs) == 0 {
		return nil // readLogs said so
	}
	next := s.newest().Next()
	isNext := func(o *openLog) bool { return o.Name() == next }
	bad := slices.ContainsFunc(s.problems, func(p Problem) bool { return p.File == next }) || slices.ContainsFunc(opened, isNext)
	if s.lenient && next != "" && slices.Contains(names, next) && bad { // it must not be begun once more
		s.broken = true
		return nil
	}
	if next == "" || slices.Contains(names, next) {
		return nil
	}
	if !s.lenient {
		return fmt.Errorf("%w: %s is missing", ErrGap, next)
	}
	s.broken, s.headless = true, true
	s.problem(Problem{File: next, From: s.at.Seq + 1, Detail: "the log is missing"})
	return nil
}

// preferOwn puts logs of a context before others with their number: those of another one may have come in with a copy. If
// the whole folder was copied, all of them are.
func preferOwn(logs []*openLog, context uuid.UUID) {
	slices.SortStableFunc(logs, func(a, b *openLog) int {
		foreign := func(o *openLog) int {
			if of, _ := o.Of(); of != context {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Number(), b.Number()), cmp.Compare(foreign(a), foreign(b)))
	})
}

// begin takes the state at the end of the segments: from the log that continues them, or else from the newest one.
func (s *state) begin(logs []*openLog) error {
	last := s.segments.last()
	for _, o := range logs {
		if s.continues(o) && o.State() != nil {
			err := s.restore(o.State(), o.From())
			if err == nil || !s.lenient || !errors.Is(err, ErrDamaged) {
				return err
			}
			s.problem(Problem{File: o.Name(), From: o.From().Seq + 1, To: o.From().Seq, Detail: err.Error()})
		}
	}
	if last == nil {
		if err := s.restore(nil, journal.Position{}); err != nil || !s.lenient {
			return err
		}
	}
	for i := len(s.segments.all) - 1; i >= 0; i-- {
		o := s.segments.all[i]
		b, err := o.state()
		if err == nil {
			err = s.restore(b, o.To())
		}
		if err == nil {
			return s.fromSegments(s.segments.all[i+1:])
		}
		if !s.lenient || !errors.Is(err, ErrDamaged) {
			return err
		}
		s.problem(Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
	}
	if err := s.restore(nil, journal.Position{}); err != nil {
		return err
	}
	return s.fromSegments(s.segments.all)
}

// fromSegments takes from segments whose state is lost what is left of it.
func (s *state) fromSegments(all []*openSegment) error {
	for _, o := range all {
		err := o.need()
		if err == nil {
			err = s.fromSegment(o.Segment)
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return nil
}

// fromSegment takes from a segment how long the lines are, and the metadata.
func (s *state) fromSegment(o *archive.Segment) error {
	spans, err := o.Spans()
	if err != nil {
		return err
	}
	for _, span := range spans {
		ln := s.line(span.Line, span.From)
		end := max(ln.End(), span.To)
		ln.Base = min(ln.Base, span.From)
		ln.Count = end - ln.Base
		if ln.IsAbove(span.Greatest) {
			ln.Greatest = span.Greatest
		}
		ln.Referring++ // it is not known
	}
	for other, err := range o.Others(0) {
		if err != nil {
			return err
		}
		switch kind := journal.Kind(other.Kind); kind {
		case journal.Metadata, journal.Change:
			_ = s.metadata.take(kind, other.Body) // a change of what is lost says nothing
		}
	}
	s.at = o.To()
	return nil
}

// continues reports whether a log goes on where the segments end.
func (s *state) continues(o *openLog) bool {
	last := s.segments.last()
	if last == nil {
		return o.From() == journal.Position{}
	}
	return o.From().Seq == last.name.To && uint32(o.From().Chain>>32) == last.name.Chain
}

// readLogs reads the logs that continue the segments, and each other. With lenient, records may be missing before one.
func (s *state) readLogs(logs []*openLog) error {
	for _, o := range logs {
		if o.From() != s.at {
			if o.IsTorn() {
				continue // it has not begun
			}
			if !s.lenient && len(s.logs) > 0 && s.newest().Next() == o.Name() {
				return damaged("the beginning of %s", o.Name())
			}
			if !s.misses(o, logs) {
				continue
			}
			if !s.lenient {
				return damaged("records before %s", o.Name())
			}
			if err := s.jump(o); err != nil {
				return err
			}
		}
		if err := s.add(o); err != nil {
			return err
		}
	}
	if len(s.logs) == 0 {
		if !s.lenient {
			return fmt.Errorf("%w: no log continues record %d", ErrGap, s.at.Seq)
		}
		s.broken, s.headless = true, true
		s.problem(Problem{From: s.at.Seq + 1, Detail: "the newest log is missing"})
	}
	return nil
}

// misses reports whether records are missing before a log, which does not go on where the last one ends. Strictly, only the
// torn end of that shows it: another history may have the log.
func (s *state) misses(o *openLog, logs []*openLog) bool {
	if o.From().Seq <= s.at.Seq || len(s.segments.all) > 0 && o.From().Seq < s.segments.last().name.To {
		return false // sealed already, or of another history
	}
	if slices.ContainsFunc(logs, func(x *openLog) bool { return x.From() == s.at && !slices.Contains(s.logs, x) }) {
		return false // nothing is missing
	}
	if len(s.logs) > 0 && s.newest().Next() == "" && (s.torn || s.broken) {
		return true
	}
	return s.lenient && (len(s.logs) == 0 || s.newest().Next() != "")
}

// add reads a log, which goes on where the last one ends. The newest one may be torn: a crash tore its first commit.
func (s *state) add(o *openLog) error {
	if n := len(s.logs); n > 0 && s.newest().IsTorn() {
		if err := s.misbegun(s.newest()); err != nil {
			return err
		}
	}
	if o.IsTorn() {
		all, err := s.save()
		if err == nil {
			o.before, err = all.encode()
		}
		if err != nil {
			return err
		}
	}
	if len(s.logs) > 0 {
		if err := s.asLongAs(o); err != nil {
			return err
		}
	}
	o.hold()
	s.logs = append(s.logs, o)
	err := s.readLog(o)
	if err == nil && o.State() == nil && !o.IsTorn() {
		s.broken = true
		err = s.misbegun(o)
	}
	return err
}

// misbegun is for a log without a begin record.
func (s *state) misbegun(o *openLog) error {
	if !s.lenient {
		return damaged("the begin record of %s", o.Name())
	}
	s.problem(Problem{File: o.Name(), From: o.From().Seq + 1, To: o.From().Seq, Detail: "the begin record is damaged"})
	return nil
}

func (s *state) openSegments(dir Folder, was *state, logs tips) error {
	names, missing, err := listSegments(dir.Segments, logs)
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
		s.gaps = true
	}
	var after *archive.Name
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
func (s *state) segment(name archive.Name) *openSegment {
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
	tail, err := o.Read(func(rec journal.Record) error {
		if failed != nil {
			return failed
		}
		r := record{Record: rec, log: o}
		err := r.parse()
		if err == nil {
			err = s.take(&r)
		}
		if err != nil && errors.Is(err, ErrDamaged) {
			s.at = r.Position()
			return lost(1, err)
		}
		return err
	}, func(n uint64) {
		if err := lost(n, damaged("%d records of %s", n, o.Name())); failed == nil {
			failed = err
		}
	})
	if failed == nil && s.lenient && errors.Is(err, ErrDamaged) {
		err = lost(0, err)
	}
	s.torn = tail == journal.Torn
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
