// Package loader is a part of the engine and promises nothing to other modules. It reads messages through a bounded
// pool: one message, a range, or an iteration.
//
// What the index has of a message counts, unless a person edited its file. An unreadable message does not stop a load:
// it is marked unavailable, with the reason.
package loader

import (
	"container/list"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// Message is one stored message. Callers must not change it, since others share it.
type Message struct {
	ID        uuid.UUID
	Position  int64 // in every branch that shows it
	Line      uuid.UUID
	Role      string
	Type      string
	CreatedAt time.Time // the message's own time; zero without one
	StoredAt  time.Time // when this version was committed
	OriginID  string    // its id in the source, where that differs from ID
	// CopyOf and Repeats name messages of the context: see [message.Envelope].
	CopyOf, Repeats []uuid.UUID
	Source          json.RawMessage
	// References are to lines of files; an array or nil.
	References json.RawMessage
	// Stored is the framework's object, verbatim except for payloads in blobs, which references replace. [Message.Body]
	// puts them back.
	Stored json.RawMessage

	// Edited reports that the file was edited by hand after the commit.
	Edited bool
	// Unavailable is why the message is unavailable. ID, Line and Position are set as far as they are known. The error
	// wraps index.ErrDamaged, index.ErrErased or an error of the file system.
	Unavailable error

	plain bool // as a writer stored it, without references
	size  int64
	from  *Loader
}

func (m *Message) cost() int64 { return m.size + 512 }

// Span is a run of positions of one line, with the folder of the line's messages.
type Span struct {
	Line     uuid.UUID
	Folder   string
	From, To int64
}

// Loader reads the messages of one context.
type Loader struct {
	dir    *ctxfolder.Dir
	index  *index.Index
	pool   *Pool
	blobs  Blobs
	memory int64 // the expanded data that one call may hold, in bytes
	epoch  atomic.Uint64
	reads  atomic.Int64

	open   sync.RWMutex // held while a payload is taken from a log
	closed bool         // guarded by open
}

// Blobs holds the payloads that no log has any more.
type Blobs interface {
	Get(sum blob.Sum, limit int64) ([]byte, error)
	Open(sum blob.Sum) (payload io.ReadCloser, size int64, err error)
}

// Pool caches loaded messages up to a number of bytes and evicts the least recently used first. Concurrent requests for
// one message share one read. Reads of different messages never wait for each other. One pool can serve many contexts.
type Pool struct {
	mu    sync.Mutex
	max   int64
	size  int64
	items map[poolKey]*poolItem
	order *list.List // of *poolItem, the most recently used first, without those that are being read
}

// poolKey identifies one version of a message.
type poolKey struct {
	owner    *Loader
	line     uuid.UUID
	position int64
	sum      uint64
	at       int64
}

// poolItem is a message that the pool holds or that a caller is reading.
type poolItem struct {
	key     poolKey
	message *Message      // nil while it is being read
	epoch   uint64        // of the last check of its file
	place   *list.Element // in order; nil while it is being read
	done    chan struct{} // closed after the read; nil if no caller waits for it
}

// ErrClosed reports that the context was closed.
var ErrClosed = errors.New("the context was closed")

// New returns a loader that keeps loaded messages in pool and takes payloads from blobs. memory bounds the payloads and
// messages that one call holds, in bytes: their files are compressed, so file sizes bound nothing.
func New(dir *ctxfolder.Dir, ix *index.Index, pool *Pool, blobs Blobs, memory int64) *Loader {
	return &Loader{dir: dir, index: ix, pool: pool, blobs: blobs, memory: memory}
}

// Refresh makes the next access to each pooled message check whether its file changed.
func (l *Loader) Refresh() { l.epoch.Add(1) }

// Reads returns the number of messages read from disk.
func (l *Loader) Reads() int64 { return l.reads.Load() }
