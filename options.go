package ctxdir

import (
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/migrate"
)

// Option changes how a store is opened.
type Option func(*[]engine.Option)

func option(o engine.Option) Option { return func(all *[]engine.Option) { *all = append(*all, o) } }

func engineOptions(opts []Option) []engine.Option {
	all := []engine.Option{engine.OpenLegacy(migrate.Open)}
	for _, o := range opts {
		o(&all)
	}
	return all
}

// WithRelaxedDurability lets an append return before the message is durable: it survives the end of the process, not a
// power cut. A power cut may then lose the newest messages, and no others. By default one fdatasync of the log
// covers each message before its append returns.
func WithRelaxedDurability() Option { return option(engine.WithDurability(engine.Relaxed)) }

// WithPool bounds the messages that are kept in memory, in bytes. The default is the store's setting, see [Settings], or
// else 64 MiB; 0 keeps none.
func WithPool(bytes int64) Option { return option(engine.WithPool(bytes)) }

// WithMemoryLimit sets the limit, in bytes, of the memory that one call takes for decompressed data. A small file can
// expand to gigabytes. The default is 256 MiB. The limit counts bodies, texts, payloads and archived messages; while the
// engine assembles a body, the call may take twice the limit. A larger read fails with [ErrTooLarge].
// [Message.WriteBody], [Message.Open] and [Branch.Messages] stream, and can read such data.
func WithMemoryLimit(bytes int64) Option { return option(engine.WithMemoryLimit(bytes)) }

// WithLockTimeout bounds the wait for another process. The default is 10 seconds.
func WithLockTimeout(d time.Duration) Option { return option(engine.WithLockTimeout(d)) }

// WithMaxMessage bounds a message, in bytes. The default is 256 MiB.
func WithMaxMessage(bytes int64) Option { return option(engine.WithMaxMessage(bytes)) }

// WithTextThreshold sets the threshold, in bytes: a text of at least this length moves to a blob. 0 moves every string,
// a negative number none. The default is 16 KiB; docs/DESIGN.md has the measurements. Binary data (base64 of 256 bytes
// or more) always moves. [Init] writes the threshold into the settings of a new store; with [Open] it applies to this
// handle only.
func WithTextThreshold(bytes int64) Option { return option(engine.WithTextThreshold(bytes)) }

// WithoutMigration shows a legacy context in the store as it is. By default [Store.Open] migrates it.
func WithoutMigration() Option {
	return option(engine.OpenLegacy(migrate.View))
}

// WithReadOnly opens the store for reading: nothing in it changes. The files that a view of a legacy context needs are
// then in the system's temporary folder.
func WithReadOnly() Option { return option(engine.ReadOnly()) }
