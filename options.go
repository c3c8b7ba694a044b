package ctxdir

import (
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"
)

// Options say how a store is opened. A field that is zero means its default. [Open] and [Init] take several, for
// programs that collect them: of the values of a field, the last one that is not zero counts.
type Options struct {
	// ReadOnly opens the store for reading: nothing in it changes. The files that a view of a legacy context needs are
	// then in the system's temporary folder.
	ReadOnly bool

	// RelaxedDurability lets an append return before the message is durable: it survives the end of the process, not a
	// power cut. A power cut may then lose the newest messages, and no others. By default one fdatasync of the log covers
	// each message before its append returns.
	RelaxedDurability bool

	// LockTimeout bounds the wait for another process; then the operation fails with [ErrLocked]. 0 means 10 seconds, a
	// negative time no wait.
	LockTimeout time.Duration

	// TextThreshold is the length, in bytes, from which a text moves to a blob. 0 means the store's setting, see
	// [Settings], or else 16 KiB; a negative number moves no text, 1 each one. Binary data (base64 of 256 bytes or more)
	// always moves. [Init] writes the threshold into the settings of a new store; with [Open] it applies to this handle
	// only. docs/DESIGN.md has the measurements.
	TextThreshold int64

	// MaxMessage bounds a message, in bytes. 0 means 256 MiB. A larger message fails with [ErrTooLarge].
	MaxMessage int64

	// MemoryLimit is the limit, in bytes, of the memory that one call takes for decompressed data: a small file can expand
	// to gigabytes. 0 means 256 MiB. The limit counts bodies, texts, payloads and archived messages; while the engine
	// assembles a body, the call may take twice the limit. A larger read fails with [ErrTooLarge]. [Message.WriteBody],
	// [Message.Open] and [Branch.Messages] stream, and can read such data.
	MemoryLimit int64

	// CacheSize bounds the messages that are kept in memory, in bytes. 0 means the store's setting, see [Settings], or
	// else 64 MiB; a negative number keeps none.
	CacheSize int64

	// Internal is for the tests of ctxdir itself.
	Internal []engine.Option
}

func engineOptions(opts []Options) []engine.Option {
	all := []engine.Option{engine.OpenLegacy(migrate.Open)}
	for _, o := range opts {
		if o.ReadOnly {
			all = append(all, engine.ReadOnly())
		}
		if o.RelaxedDurability {
			all = append(all, engine.WithDurability(engine.Relaxed))
		}
		if o.LockTimeout != 0 {
			all = append(all, engine.WithLockTimeout(max(o.LockTimeout, 0)))
		}
		if o.TextThreshold != 0 {
			all = append(all, engine.WithTextThreshold(o.TextThreshold))
		}
		if o.MaxMessage != 0 {
			all = append(all, engine.WithMaxMessage(o.MaxMessage))
		}
		if o.MemoryLimit != 0 {
			all = append(all, engine.WithMemoryLimit(o.MemoryLimit))
		}
		if o.CacheSize != 0 {
			all = append(all, engine.WithPool(max(o.CacheSize, 0)))
		}
		all = append(all, o.Internal...)
	}
	return all
}

// WriteOptions are the conditions of one write. Each call names the fields that it takes, and fails with [ErrInvalid] if
// another one is set.
type WriteOptions struct {
	// Position makes an append or a commit fail with [ErrPosition] unless its first message gets this position, and a
	// replacement unless the message has it. A retry succeeds: the message with the id of the draft is at that position.
	Position *int64

	// Sequence makes a write fail with [ErrPosition] unless the newest commit of the context has this number: see
	// [Summary].Sequence. So a write happens only on the state that the caller knows.
	Sequence *uint64

	// Shared lets a replacement change a message that other branches show too.
	Shared bool
}

func writeOptions(opts []WriteOptions) (all []engine.WriteOption) {
	for _, o := range opts {
		if o.Position != nil {
			all = append(all, engine.AtPosition(*o.Position))
		}
		if o.Sequence != nil {
			all = append(all, engine.AtSequence(*o.Sequence))
		}
		if o.Shared {
			all = append(all, engine.Shared())
		}
	}
	return all
}

// chosen returns the contexts of an operation as the packages below take them, nil for all. The caller has to say that it
// means all: a list of contexts that came out empty would else be everything.
func chosen(op string, contexts []uuid.UUID, all bool) ([]uuid.UUID, error) {
	switch {
	case all && len(contexts) > 0:
		return nil, &Error{Op: op, Err: fmt.Errorf("%w: both Contexts and All are set", ErrInvalid)}
	case !all && len(contexts) == 0:
		return nil, &Error{Op: op, Err: fmt.Errorf("%w: neither Contexts nor All is set", ErrInvalid)}
	}
	return contexts, nil
}
