// Package bucket keeps objects in an object store: pieces of content that are written once, and read whole. [Open] opens one
// at Amazon S3 or whatever speaks its protocol, at Google Cloud Storage, or in a folder. An [Objects] is what one database
// has in a bucket.
package bucket

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Bucket is where objects are. A name is words with slashes between them. Several goroutines may use it. An error means that
// it is unknown what the store has, unless it wraps one of the errors below.
type Bucket interface {
	// Put keeps an object, in the place of another one with the name. It is durable when Put returns.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns an object. The error wraps [ErrMissing] if the store says that there is none, and [ErrTooLarge] if it has
	// more than so many bytes.
	Get(ctx context.Context, name string, most int) ([]byte, error)
	// Remove removes an object. It is no error if there is none.
	Remove(ctx context.Context, name string) error
	// List yields the objects whose names begin with a folder and a slash, in no particular order and in bounded memory.
	List(ctx context.Context, folder string) iter.Seq2[Object, error]
}

// Object is an object without its content.
type Object struct {
	Name     string
	Modified time.Time
}

// Errors about one object.
var (
	ErrMissing  = errors.New("the object is missing")
	ErrTooLarge = errors.New("the object is too large")
)
