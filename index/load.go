package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
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
	s = &state{context: dir.Context, segments: newSegments(), lenient: lenient, spare: maxLost}
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
	return s, s.loseParents()
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
		if err == nil {
			return s.fromSegments(s.segments.all[i+1:])
		}
		if !s.lenient || !errors.Is(err, ErrDamaged) {
			return err
		}
		s.problem(Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
	}
	if err := s.restore(nil, journal.Spot{}); err != nil {
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
		return o.From() == journal.Spot{}
	}
	return o.From().Seq == last.name.To && uint32(o.From().Chain>>32) == last.name.Chain
}

// readLogs reads the logs that continue the segments, and each other. With lenient, records may be missing before one.
func (s *state) readLogs(logs []*openLog) error {
	for _, o := range logs {
		if o.From() != s.at {
			if !s.lenient && len(s.logs) > 0 && s.newest().Next() == o.Name() {
				return damaged("the beginning of %s", o.Name())
			}
			if !s.lenient || o.From().Seq <= s.at.Seq || len(s.segments.all) > 0 && o.From().Seq < s.segments.last().name.To {
				continue // sealed already, or of another history
			}
			if len(s.logs) > 0 && !s.broken && s.newest().Next() == "" {
				continue // nothing follows a log that has not ended
			}
			if slices.ContainsFunc(logs, func(x *openLog) bool { return x.From() == s.at && !slices.Contains(s.logs, x) }) {
				continue // nothing is missing
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
		s.broken, s.headless = true, true
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

// tips says where logs go on.
type tips map[archive.Name]bool

func tipsOf(logs []*openLog) tips {
	t := tips{}
	for _, o := range logs {
		t[tip(archive.NameOf(journal.Spot{}, o.From()))] = true
	}
	return t
}

// tip is the end of a segment, as its name says it.
func tip(n archive.Name) archive.Name { return archive.Name{To: n.To, Chain: n.Chain} }

// listSegments returns the names of the segments that make up the history, in order: back from the newest one that a log
// continues, always the largest that ends where the next one begins, in its newest edition. The others are contained in
// these, or of another history. missing are the numbers of records that none has, from … to each.
func listSegments(dir vfs.FS, logs tips) (names []archive.Name, missing [][2]uint64, err error) {
	var all []archive.Name
	for e, err := range dir.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if n, ok := archive.ParseName(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b archive.Name) int {
		return cmp.Or(-cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), -cmp.Compare(a.Edition, b.Edition), cmp.Compare(a.Chain, b.Chain))
	})
	newest := max(slices.IndexFunc(all, func(n archive.Name) bool { return logs[tip(n)] }), 0)
	for i := newest; i < len(all); {
		names = append(names, all[i])
		want := all[i].From - 1
		for i++; i < len(all) && all[i].To > want; {
			i++
		}
		if i < len(all) && all[i].To < want {
			missing = append(missing, [2]uint64{all[i].To + 1, want})
		}
		if i < len(all) && all[i].To == want {
			same := slices.IndexFunc(all[i:], func(n archive.Name) bool { return n.To < want })
			if same < 0 {
				same = len(all) - i
			}
			i += before(dir, names[len(names)-1], all[i:i+same])
		}
	}
	slices.Reverse(names)
	if len(names) > 0 && names[0].From != 1 {
		missing = append(missing, [2]uint64{1, names[0].From - 1})
	}
	return names, missing, nil
}

// before returns which of several segments a later one continues: the first, if that cannot be read.
func before(dir vfs.FS, next archive.Name, all []archive.Name) int {
	if !slices.ContainsFunc(all, func(n archive.Name) bool { return n.Chain != all[0].Chain }) {
		return 0
	}
	s, err := archive.Open(dir, next.File())
	if err != nil {
		return 0
	}
	defer s.Close()
	return max(slices.IndexFunc(all, func(n archive.Name) bool { return n.Chain == uint32(s.From().Chain>>32) }), 0)
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
			s.at = r.Spot()
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
	s.torn = s.torn || tail == journal.Torn
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

// FolderOf returns where the files of a context are, in its folder.
func FolderOf(store, context uuid.UUID, folder vfs.FS) Folder {
	return Folder{Store: store, Context: context, Logs: folder, Segments: vfs.Below(folder, ctxfolder.Segments)}
}

// IsNeeded reports whether a file in the folder of a context belongs to it: it is neither trash nor temporary. path is
// relative to that folder.
func IsNeeded(path string) bool {
	dir, name, inside := strings.Cut(path, "/")
	if !inside {
		_, log := journal.ParseName(path)
		return log || path == ctxfolder.MetadataFile || path == ctxfolder.IndexFile
	}
	return dir != ctxfolder.Trash && !strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], ".")
}

// StoreOf returns the id of the store that the newest log in the folder of a context names; [uuid.Nil] if none does. The
// error wraps [ctxfolder.ErrVersion] if a file has another version.
func StoreOf(folder vfs.FS) (uuid.UUID, error) {
	dir := &ctxfolder.Dir{FS: folder}
	if _, _, err := dir.ReadMetadata(); errors.Is(err, ctxfolder.ErrVersion) {
		return uuid.Nil, err
	}
	names, err := listLogs(folder)
	if err != nil {
		return uuid.Nil, err
	}
	for _, name := range slices.Backward(names) {
		l, err := journal.Open(folder, name)
		if errors.Is(err, journal.ErrVersion) {
			return uuid.Nil, fmt.Errorf("%w: %w", ctxfolder.ErrVersion, err)
		}
		if err != nil {
			continue
		}
		_, store := l.Of()
		_ = l.Close() // it was only read
		if store != uuid.Nil {
			return store, nil
		}
	}
	return uuid.Nil, nil
}
