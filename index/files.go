package index

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// users counts who needs a file open: states, and readers.
type users struct{ n atomic.Int64 }

// hold is for one more user. It fails if the last one is gone.
func (u *users) hold() bool {
	for {
		n := u.n.Load()
		if n == 0 {
			return false
		}
		if u.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends a use, and reports whether it was the last one.
func (u *users) release() bool { return u.n.Add(-1) == 0 }

type openLog struct {
	*journal.Log
	users
	before []byte // the state where it begins, if its begin record is torn
}

func newOpenLog(l *journal.Log) *openLog {
	o := &openLog{Log: l}
	o.n.Store(1)
	return o
}

func tipsOf(logs []*openLog) tips {
	t := tips{}
	for _, o := range logs {
		t[tip(archive.NameOf(journal.Position{}, o.From()))] = true
	}
	return t
}

func (o *openLog) release() {
	if o.users.release() {
		_ = o.Close() // what was written is synced, or was not acknowledged
	}
}

// openSegment is a segment of the history. Its file is opened when it is needed: most reads need the newest ones, and
// the names say which records all have.
type openSegment struct {
	users
	dir   Folder
	name  archive.Name
	after *archive.Name // of the one before; nil for the first one, or if it was compared

	opening sync.Mutex
	failed  error // of a file that is damaged
	// Segment and spans are there after need.
	*archive.Segment
	spans map[uuid.UUID]archive.Span
}

func newOpenSegment(dir Folder, name archive.Name, after *archive.Name) *openSegment {
	o := &openSegment{dir: dir, name: name, after: after}
	o.n.Store(1)
	return o
}

// openSegmentIn opens a segment that was just written.
func openSegmentIn(dir Folder, file string) (*openSegment, error) {
	name, ok := archive.ParseName(file)
	if !ok {
		return nil, damaged("%q is not the name of a segment", file)
	}
	o := newOpenSegment(dir, name, nil)
	if err := o.need(); err != nil {
		return nil, err
	}
	return o, nil
}

// need opens the file, and reads which messages it has. The error wraps fs.ErrNotExist if another segment took its place
// meanwhile.
func (o *openSegment) need() error {
	o.opening.Lock()
	defer o.opening.Unlock()
	if o.Segment != nil || o.failed != nil {
		return o.failed
	}
	err := o.openFile()
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrGap) {
		o.failed = fmt.Errorf("%w: %w", ErrDamaged, err)
		return o.failed
	}
	return err
}

// failure returns why the file is damaged, if that was seen.
func (o *openSegment) failure() error {
	o.opening.Lock()
	defer o.opening.Unlock()
	return o.failed
}

// needWhole is need that reads every byte, and returns what is damaged.
func (o *openSegment) needWhole() (err error) {
	if err := o.need(); err != nil {
		return err
	}
	parts := 0
	for d := range o.Verify() {
		if parts++; parts == 1 {
			err = fmt.Errorf("%s, %d bytes at offset %d: %w", d.Part, d.Size, d.Offset, d.Err)
		}
	}
	if parts > 1 {
		err = fmt.Errorf("%d damaged parts, the first: %w", parts, err)
	}
	return err
}

// state returns the state of the context at the end of the archive.
func (o *openSegment) state() ([]byte, error) {
	if err := o.need(); err != nil {
		return nil, err
	}
	return o.State()
}

func (o *openSegment) openFile() error {
	s, err := archive.Open(o.dir.Segments, o.name.File())
	if err != nil {
		return err
	}
	spans, err := s.Spans()
	switch {
	case err != nil:
	case archive.NameOf(s.From(), s.To()) != (archive.Name{From: o.name.From, To: o.name.To, Chain: o.name.Chain}):
		err = damaged("%s has records %d to %d", o.name.File(), s.From().Seq+1, s.To().Seq)
	case o.after != nil && uint32(s.From().Chain>>32) != o.after.Chain:
		err = fmt.Errorf("%w: %s belongs to a divergent history", ErrGap, o.name.File())
	}
	if err != nil {
		_ = s.Close() // it was only read
		return err
	}
	o.spans = make(map[uuid.UUID]archive.Span, len(spans))
	for _, span := range spans {
		o.spans[span.Line] = span
	}
	o.Segment = s
	return nil
}

func (o *openSegment) release() {
	if o.users.release() && o.Segment != nil {
		_ = o.Close() // likewise
	}
}

// contains reports whether a segment has all that another one has: it is a newer edition of it, or was merged from it.
func (o *openSegment) contains(n archive.Name) (bool, error) {
	is := o.name
	switch {
	case n == is || n.From < is.From || n.To > is.To:
		return false, nil
	case n.From == is.From && n.To == is.To:
		return n.Chain == is.Chain && n.Edition < is.Edition, nil
	}
	if err := o.need(); err != nil {
		return false, err
	}
	joints, err := o.Joints()
	if err != nil {
		return false, err
	}
	from, to := n.From == is.From, n.To == is.To && n.Chain == is.Chain
	for _, j := range joints {
		from = from || j.Seq+1 == n.From
		to = to || j.Seq == n.To && uint32(j.Chain>>32) == n.Chain
	}
	return from && to, nil
}

// segments are the segments of a history, in order. They do not change; others take their place.
type segments struct {
	users
	all []*openSegment
}

func newSegments() *segments {
	x := &segments{}
	x.n.Store(1)
	return x
}

func (x *segments) release() {
	if x.users.release() {
		for _, o := range x.all {
			o.release()
		}
	}
}

// last returns the newest one, or nil.
func (x *segments) last() *openSegment {
	if len(x.all) == 0 {
		return nil
	}
	return x.all[len(x.all)-1]
}
