package engine

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Option configures how a store is opened.
type Option func(*Options)

func newOptions(opts []Option) Options {
	o := Options{
		Pool:        64 << 20,
		Memory:      256 << 20,
		LockTimeout: 10 * time.Second,
		sealBytes:   defaultSealBytes,
		Pause:       5 * time.Millisecond,
		MaxMessage:  256 << 20,
		Clock:       time.Now,
	}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Durability is the failure that an acknowledged append survives.
type Durability int

const (
	// Full survives a power cut. One fdatasync of the log has covered the message.
	Full Durability = iota
	// Relaxed survives the end of the process. A power cut may lose the newest messages; it harms no others.
	Relaxed
)

// WithFiles sets when message files are made. The default is FilesBehind.
func WithFiles(when MessageFiles) Option { return func(o *Options) { o.files = when } }

// WithDurability sets the durability of appends. The default is Full.
func WithDurability(d Durability) Option { return func(o *Options) { o.relaxed = d == Relaxed } }

// WithPool bounds the loaded messages kept in memory, in bytes. The default is the store's setting, or else 64 MiB; 0
// keeps none.
func WithPool(bytes int64) Option { return func(o *Options) { o.Pool, o.pooled = max(bytes, 0), true } }

// WithMemoryLimit bounds the expanded data that one call holds, in bytes. The default is 256 MiB. Data is compressed on
// disk, so a small file can expand to gigabytes. The limit counts the bodies that [Message.Body], [Message.Texts] and
// [loader.Bodies] assemble, the payload of [Message.Payload], and the sealed messages of [Branch.Load], [Branch.Range]
// and [Branch.Last]. While it assembles a body, the call may take twice the limit. Data beyond the limit fails with
// [ErrMemoryLimit]. [Message.WriteBody], [Message.Open] and [Branch.Messages] stream, so the limit does not affect
// them.
func WithMemoryLimit(bytes int64) Option { return func(o *Options) { o.Memory = max(bytes, 0) } }

// WithLockTimeout bounds the wait for another process's lock. The default is 10 s.
func WithLockTimeout(d time.Duration) Option { return func(o *Options) { o.LockTimeout = d } }

// WithMaxMessage bounds one message, in bytes. The default is 256 MiB.
func WithMaxMessage(bytes int64) Option { return func(o *Options) { o.MaxMessage = bytes } }

// WithSealBytes sets the length of a log, in bytes, at which another one begins, so that the first is sealed. The default
// is 1 MiB. With a negative length only [Context.Seal] seals.
func WithSealBytes(bytes int64) Option {
	return func(o *Options) { o.sealBytes, o.noSeal = cmp.Or(max(bytes, 0), defaultSealBytes), bytes < 0 }
}

const (
	defaultSealBytes = 1 << 20
	// sealInPause is the length of records, in bytes, from which a log is sealed when commits pause, or when the context is
	// closed.
	sealInPause = 64 << 10
)

// fullLog returns the length at which a log ends by itself, in bytes.
func (o *Options) fullLog() int64 {
	if o.noSeal {
		return math.MaxInt64
	}
	return o.sealBytes
}

// WithTextThreshold sets the least length, in bytes, of a text in a message that moves to a blob: 0 moves every string,
// a negative number none. Binary data (base64) always moves. [Init] stores the threshold in the store; with [Open] it
// applies to this handle.
func WithTextThreshold(bytes int64) Option { return func(o *Options) { o.threshold = &bytes } }

// OpenLegacy sets how [Store.Context] opens a legacy context of the store, which has that name there. Without it,
// Context fails with [ErrNotExist].
func OpenLegacy(open func(ctx context.Context, s *Store, id uuid.UUID, name string) (*Context, error)) Option {
	return func(o *Options) { o.openLegacy = open }
}

// ReadOnly opens the store read-only: nothing in it changes. The view of a legacy context then uses the system's
// temporary folder.
func ReadOnly() Option { return func(o *Options) { o.readOnly = true } }

// WithFS replaces the file system under the store. Tests inject faults with it.
func WithFS(fsys vfs.FS) Option { return func(o *Options) { o.FS = fsys } }

// WithCalls lets the calls of the store's file system pass through another one. Tests inject faults with it.
func WithCalls(through func(vfs.FS) vfs.FS) Option { return func(o *Options) { o.through = through } }

// WithClock replaces the clock of collections and purges, so that tests can advance it.
func WithClock(clock func() time.Time) Option { return func(o *Options) { o.Clock = clock } }

// WithoutPause makes a check repeat a suspicious look at once, for tests without another writer.
func WithoutPause() Option { return func(o *Options) { o.Pause = 0 } }

// InOrder disables concurrent and deferred work, so that a repeated test performs the same disk operations.
func InOrder() Option { return func(o *Options) { o.inOrder = true } }
