package history

import (
	"sync/atomic"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/segment"
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
}

func newOpenLog(l *journal.Log) *openLog {
	o := &openLog{Log: l}
	o.n.Store(1)
	return o
}

func (o *openLog) release() {
	if o.users.release() {
		_ = o.Close() // what was written is synced, or was not acknowledged
	}
}

type openSegment struct {
	*segment.Segment
	users
	name  segment.Name
	spans map[uuid.UUID]segment.Span
}

// openSegmentIn opens a segment of a folder, and reads which messages it has.
func openSegmentIn(dir Folder, name segment.Name) (*openSegment, error) {
	s, err := segment.Open(dir.Segments, name.File())
	if err != nil {
		return nil, err
	}
	o := &openSegment{Segment: s, name: name, spans: map[uuid.UUID]segment.Span{}}
	o.n.Store(1)
	spans, err := s.Spans()
	if err == nil && s.Context() != dir.Context {
		err = damaged("%s belongs to context %s", name.File(), s.Context())
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	for _, span := range spans {
		o.spans[span.Line] = span
	}
	return o, nil
}

func (o *openSegment) release() {
	if o.users.release() {
		_ = o.Close()
	}
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
