// Package engine implements an open store and an open context: appends, reads, branches, references and locks. The
// packages trash, erase, follow, migrate and backup use it. The root package wraps all of them in the public API.
//
// A store is a folder. Each context, a conversation with its branches, is a folder in it. Each message is a file.
// [Open] opens a store, [Store.Create] and [Store.Context] return a [Context], and its branches append, read and fork:
//
//	s, err := engine.Open(dir)
//	c, err := s.Context(ctx, id)
//	b := c.Active()
//	at, err := b.Append(ctx, engine.Draft{Body: body})
//	for m, err := range b.Messages(ctx) { … }
//
// A line is an append-only sequence of messages. A branch is a name that points at a line. A fork begins a new line at
// a position of another line and copies nothing. No operation on one branch changes what another branch shows, and none
// destroys a message.
//
// When an append returns, the message is durable: one fdatasync of the context's log has covered it. Other
// processes may append to the same context at the same time. Readers take no lock. A reader may see a message shortly
// before it is durable.
//
// docs/FORMAT.md describes the format on disk, docs/DESIGN.md the promises and how the engine keeps them.
package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/storefile"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/watch"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Store is an open store. Several goroutines may use it, and several processes may open the folder.
type Store struct {
	FS         vfs.FS
	path       string
	id         uuid.UUID
	Options    Options
	Pool       *loader.Pool
	Blobs      *blob.Store
	settings   storefile.Settings
	ReadOnly   bool
	Exclusions *Exclusions // set in the dry run of an erase
	problem    error       // why ctxdir.json is unusable
	handles    *handles
	projector  *projector
	derived    *derived
	cut        *cutHook
}

// Options are the settings of an open store, as its options set them. The packages above read the exported ones.
type Options struct {
	FS          vfs.FS
	through     func(vfs.FS) vfs.FS
	Pool        int64
	pooled      bool // Pool is not the default
	Memory      int64
	relaxed     bool
	readOnly    bool
	LockTimeout time.Duration
	sealBytes   int64
	MaxMessage  int64
	threshold   *int64 // nil: the store's setting
	noSeal      bool
	Pause       time.Duration
	Clock       func() time.Time
	openLegacy  func(ctx context.Context, s *Store, id uuid.UUID, name string) (*Context, error)
	inOrder     bool
	files       MessageFiles
	Watching    watch.Options
}

// MessageFiles says when an append makes its message files.
type MessageFiles int

const (
	// FilesBehind lets the files follow a moment after the append. [Context.Flush] waits for them.
	FilesBehind MessageFiles = iota
	// FilesOnReturn makes the append wait for its files.
	FilesOnReturn
	// FilesHeld leaves the files to Flush, Close, seals and a full queue, so that tests meet commits without files.
	FilesHeld
)

// Types of the metadata, as in metadata.json.
type (
	// Metadata is everything about a context but its messages.
	Metadata = ctxfolder.Metadata
	// Object is a JSON object that keeps the order and form of its members.
	Object = ctxfolder.Object
)

// MainBranch is the branch of a new context.
const MainBranch = "main"

// Context is an open context. Several goroutines may use it. It shows the state as of the last operation that wrote
// through it, or of the last [Context.Refresh].
type Context struct {
	Store  *Store
	Dir    *ctxfolder.Dir
	Index  *index.Index
	Loader *loader.Loader
	// prepared is the tenure of the lock in which the handle was brought up to date; only for the holder of the lock.
	prepared uint64
	named    bool // the name of the folder is durable; likewise

	closing sync.Once
	under   sync.WaitGroup // running operations

	mu           sync.Mutex // guards metadata, sealing and closed
	closed       bool       // no operation may begin
	metadata     *Metadata
	journaled    *Metadata            // by the logs; nil before the context has the current format
	projection   ctxfolder.Projection // the state of metadata.json
	stamp        ctxfolder.Stamp
	broken       error         // why metadata.json is unusable
	wrote        bool          // something was appended through this handle
	sealing      chan struct{} // closed when the running seal ends
	blobQueue    blobQueue
	messageFiles messageFiles

	legacy  legacy.Format // of a view; empty otherwise
	release func()        // releases the temporary store of a view
}

// handles are the contexts that a store keeps open.
type handles struct {
	mu     sync.Mutex
	all    map[uuid.UUID]*handle
	uses   uint64 // counts the calls of Use
	closed bool
	group  sync.WaitGroup // calls of Use, and handles that are being closed
	err    error          // the first one of closing
}

// handle is a context that several calls of Use share.
type handle struct {
	opening chan struct{} // holds one token: its owner may set c
	c       *Context      // nil until it is open
	users   int           // guarded by handles.mu, like the rest
	last    uint64        // the call of Use that used it last
	dropped bool          // the last user closes it
}

// projector makes the message files of a store behind the commits. It works in bursts, when commits pause: beside the
// syncs of appends, each file alone costs an append more than its share of a burst does.
//
// Crash order: a batch waits here only when its records are durable. A crash loses what waits; the log has it,
// and the next writer makes the files (see [Context.pending]).
type projector struct {
	mu      sync.Mutex
	waiting []*fileBatch
	queued  int               // files in waiting
	files   int               // files in waiting, or being made
	bytes   int               // of their messages
	first   time.Time         // when the first of them came
	last    time.Time         // when the newest came
	timer   *time.Timer       // until the next burst; nil without one
	due     bool              // a goroutine is about to begin a burst
	stale   map[*Context]bool // handles whose metadata.json is to be replaced

	making sync.Mutex // held while files are made
}

// messageFiles is what a handle knows about the message files that follow its commits. While one is pending, the handle
// holds the context's lock on files in shared mode: a process that removes message files waits for that lock, so no
// file appears behind it.
type messageFiles struct {
	mu      sync.Mutex
	due     int   // batches with pending files
	failure error // why a file could not be made since the last flush; the log has its message
	checked bool  // the handle has made the files that a killed process left pending
}

// fileBatch is a set of pending message files. A nil batch makes none.
type fileBatch struct {
	c       *Context
	folders map[uuid.UUID]string // of the lines
	files   []messageFile
	bytes   int

	mu      sync.Mutex
	touched []index.Entry // whose files are there, and not as they were made
}

// messageFile is a pending message file.
type messageFile struct {
	line  uuid.UUID
	id    uuid.UUID
	at    time.Time   // of the commit
	body  []byte      // the envelope; nil if it is to be read, and the file may exist
	entry index.Entry // if it is to be read
}

// blobQueue makes blobs of payloads in the log after a moment without appends, since making one takes as long as an
// append. So a blob appears shortly after the append, and at the latest when the context is closed. The seal makes
// the blobs of payloads beyond the bound.
type blobQueue struct {
	mu       sync.Mutex
	payloads []queuedPayload
	size     int
	timer    *time.Timer

	making sync.Mutex // held while blobs are made
}

// queuedPayload is a payload without a blob, and the log that holds it.
type queuedPayload struct {
	log     string
	payload []byte
}

// derived is what a store knows about [DerivedFolder].
type derived struct {
	noted atomic.Bool // erasureFile is this store's

	mu    sync.Mutex
	views map[string]Forget
	lost  []uuid.UUID // contexts, since the last removal ended
}

// Forget removes the text of messages that contexts have lost from the files of a view.
type Forget = func(ctx context.Context, contexts []uuid.UUID) error

// cutHook erases what was made from messages that a purge is about to cut.
type cutHook struct {
	f atomic.Pointer[func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error]
}

// Exclusions is what a dry run of an erase takes as gone.
type Exclusions struct {
	Context uuid.UUID
	IDs     map[uuid.UUID]bool
	Paths   map[string]bool // relative to the context's folder
}

// In returns the same store in another folder: a context in a trash item opens there.
func (s *Store) In(fsys vfs.FS) *Store {
	in := *s
	in.FS, in.handles = fsys, &handles{}
	return &in
}

// Path returns the path with which the store was opened.
func (s *Store) Path() string { return s.path }

// ID returns the store's id.
func (s *Store) ID() uuid.UUID { return s.id }

// use runs an operation, unless the context was closed. Every exported method that needs the context's files runs in
// it, except payloads of messages: see [loader.Loader.Close]. Operations do not nest: Close may refuse the inner one.
func (c *Context) use(f func() error) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.under.Add(1)
	c.mu.Unlock()
	defer c.under.Done()
	return f()
}

// Use runs an operation with a result, unless the context was closed. The packages above run every operation on an
// open context in it.
func Use[T any](c *Context, f func() (T, error)) (result T, err error) {
	err = c.use(func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// Current returns the metadata that the handle has now. The caller must not change it.
func (c *Context) Current() *Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metadata
}

// ID returns the context's id.
func (c *Context) ID() uuid.UUID { return c.Dir.ID }

// Metadata returns a copy of the metadata.
func (c *Context) Metadata() *Metadata { return c.Current().Clone() }

// Now returns the clock's time for removals and purges.
func (s *Store) Now() time.Time { return s.Options.Clock() }
