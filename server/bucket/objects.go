package bucket

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Objects is what one database has in a bucket. Names of objects are random. A marker among them tells it from another
// bucket, and from one that is empty because it is not mounted.
type Objects struct {
	// Failed hears of each request that failed; nil for nobody. It is set before the first request.
	Failed func(error)

	bucket Bucket
	id     uuid.UUID
	last   atomic.Pointer[error]
}

// NewObjects returns the objects with an id.
func NewObjects(b Bucket, id uuid.UUID) *Objects { return &Objects{bucket: b, id: id} }

// ErrOther means that a bucket has nothing of a database.
var ErrOther = errors.New("the bucket has no objects of this database")

const marker = "ctxserver"

// Mark makes the marker.
func (o *Objects) Mark(ctx context.Context) error {
	return o.note(o.bucket.Put(ctx, o.id.String()+"/"+marker, []byte(marker)))
}

// Check looks for the marker. The error wraps [ErrOther] if there is none.
func (o *Objects) Check(ctx context.Context) error {
	_, err := o.bucket.Get(ctx, o.id.String()+"/"+marker, len(marker))
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrTooLarge) {
		err = ErrOther
	}
	return o.note(err)
}

func (o *Objects) name(object uuid.UUID) string {
	s := object.String()
	return o.id.String() + "/" + s[:2] + "/" + s
}

// Put keeps an object. It is durable when Put returns.
func (o *Objects) Put(ctx context.Context, object uuid.UUID, data []byte) error {
	return o.note(o.bucket.Put(ctx, o.name(object), data))
}

// Get is [Bucket.Get]. The error wraps [ErrMissing] only if the bucket has the marker: otherwise it is a fault of the store.
func (o *Objects) Get(ctx context.Context, object uuid.UUID, most int) ([]byte, error) {
	b, err := o.bucket.Get(ctx, o.name(object), most)
	switch {
	case errors.Is(err, ErrTooLarge):
		_ = o.note(nil)
		return nil, err
	case !errors.Is(err, ErrMissing):
		return b, o.note(err)
	}
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	return nil, err
}

// Remove removes an object. It is no error if there is none.
func (o *Objects) Remove(ctx context.Context, object uuid.UUID) error {
	return o.note(o.bucket.Remove(ctx, o.name(object)))
}

// List yields the objects, and when each was written. It leaves out what is none.
func (o *Objects) List(ctx context.Context) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		for x, err := range o.bucket.List(ctx, o.id.String()) {
			if err != nil {
				yield(Listed{}, err)
				return
			}
			id, err := uuid.Parse(x.Name[strings.LastIndexByte(x.Name, '/')+1:])
			if err != nil || x.Name != o.name(id) {
				continue
			}
			if !yield(Listed{id, x.Modified}, nil) {
				return
			}
		}
	}
}

// Listed is an object of a list.
type Listed struct {
	Object   uuid.UUID
	Modified time.Time
}

// note remembers how a request ended.
func (o *Objects) note(err error) error {
	if err != nil {
		err = fmt.Errorf("object store: %w", err)
		if o.Failed != nil {
			o.Failed(err)
		}
	}
	o.last.Store(&err)
	return err
}

// Failure returns why the last request to the store failed, and nil if it did not.
func (o *Objects) Failure() error {
	if err := o.last.Load(); err != nil {
		return *err
	}
	return nil
}
