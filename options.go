package ctxdir

import (
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/watch"
)

// Option changes how a store is opened.
type Option func(*options)

type options struct {
	fs          vfs.FS
	pool        int64
	memory      int64
	relaxed     bool
	readOnly    bool
	lockTimeout time.Duration
	foldBytes   int64
	retain      int
	maxMessage  int64
	threshold   *int64 // nil: what the store says
	noFold      bool
	pause       time.Duration
	collect     *time.Duration // the grace period of what is collected by itself; nil: nothing is
	clock       func() time.Time
	keepLegacy  bool
	inOrder     bool
	watching    watch.Options
}

func newOptions(opts []Option) options {
	o := options{pool: 64 << 20, memory: 256 << 20, lockTimeout: 10 * time.Second, pause: 5 * time.Millisecond, maxMessage: 256 << 20, clock: time.Now}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Durability says what an append that returned has survived.
type Durability int

const (
	// Full: a power cut. One fdatasync of the journal has covered the message.
	Full Durability = iota
	// Relaxed: the end of the process. A power cut may lose the newest messages; it harms no others.
	Relaxed
)

// WithDurability sets the durability of appends; Full is the default.
func WithDurability(d Durability) Option { return func(o *options) { o.relaxed = d == Relaxed } }

// WithPool bounds the loaded messages that are kept in memory, in bytes; 64 MiB is the default, 0 keeps
// none.
func WithPool(bytes int64) Option { return func(o *options) { o.pool = max(bytes, 0) } }

// WithMemoryLimit bounds what one call holds of data that is compressed on disk, in bytes; 256 MiB is the default. A small file can claim
// gigabytes there. It counts the bodies that [Message.Body], [Message.Texts] and [ResolveAll] put together, the payload of
// [Message.Payload], and the archived messages of [Branch.Load], [Branch.Range] and [Branch.Last]; while a body is put together, the call may take
// twice that. What does not fit fails with [ErrMemoryLimit]. [Message.WriteBody], [Message.Open] and [Branch.Messages] stream, so they read it all the same.
func WithMemoryLimit(bytes int64) Option { return func(o *options) { o.memory = max(bytes, 0) } }

// WithLockTimeout is how long to wait for another process; 10 s is the default.
func WithLockTimeout(d time.Duration) Option { return func(o *options) { o.lockTimeout = d } }

// WithMaxMessage bounds one message, in bytes; 256 MiB is the default.
func WithMaxMessage(bytes int64) Option { return func(o *options) { o.maxMessage = bytes } }

// WithFoldBytes sets the size of a journal at which it is folded into files and index in the background;
// 512 KiB is the default. A negative size leaves folding to [Context.Fold].
func WithFoldBytes(bytes int64) Option {
	return func(o *options) { o.foldBytes, o.noFold = max(bytes, 0), bytes < 0 }
}

// WithTextThreshold sets the least length of a text in a message, in bytes, that is moved to a blob: 0 moves every string,
// a negative number none. Binary data (base64) is moved whatever it is. Given to [Init], it is the store's
// setting from then on; given to [Open], it counts for this handle.
func WithTextThreshold(bytes int64) Option { return func(o *options) { o.threshold = &bytes } }

// WithCollection lets [Store.CollectIfDue] collect: what no branch shows goes to trash, and what has been there for as long as
// grace is purged. Without it nothing is collected but by [Store.Collect].
func WithCollection(grace time.Duration) Option { return func(o *options) { o.collect = &grace } }

// AutoMigrate says whether [Store.Context] migrates a legacy context that lies in the store when it is asked for. The default is that it does.
func AutoMigrate(on bool) Option { return func(o *options) { o.keepLegacy = !on } }

// ReadOnly opens the store for reading: nothing in it is changed. What the view of a legacy context needs is in the system's temporary folder then.
func ReadOnly() Option { return func(o *options) { o.readOnly = true } }

// withFS puts another file system under the store: tests inject faults with it.
func withFS(fsys vfs.FS) Option { return func(o *options) { o.fs = fsys } }

// withClock sets what tells the time to collect and to purge: tests let it jump.
func withClock(clock func() time.Time) Option { return func(o *options) { o.clock = clock } }

// withoutPause has a check not wait before it looks again at what looks wrong: for tests in which nobody else writes.
func withoutPause() Option { return func(o *options) { o.pause = 0 } }

// inOrder has nothing done beside something else, nor a little later: a test that is run again then does the same to the disk.
func inOrder() Option { return func(o *options) { o.inOrder = true } }

// withRetain sets how many folded journals there may be before they are settled: tests have it come soon.
func withRetain(journals int) Option { return func(o *options) { o.retain = journals } }
