package loader

import (
	"context"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// A batch is the part of a range that is read at once, bounded in messages and bytes.
const (
	batchMessages = 512
	batchBytes    = 4 << 20
	rowsAtOnce    = 512
)

// An iteration reads several batches ahead, so that its readers seldom wait for the caller. The first batches are
// small, so that the caller starts soon, and reads little if it stops early. Later ones grow with what the caller took.
const (
	aheadBatches  = 2
	aheadMessages = 8         // in a first batch
	aheadBytes    = 512 << 10 // in any batch of several messages
	aheadMemory   = 16 << 20  // in all of them, unless it is one message
)

// Each calls yield for every message of the spans in order. One goroutine reads ahead meanwhile. Each leaves nothing in
// the pool: an iteration would evict what callers use again. It stops with nil when yield returns false, and with ctx's
// error when ctx ends. Every read runs inside use, which may refuse it; yield runs outside.
func (l *Loader) Each(ctx context.Context, spans []Span, use func(read func() error) error, yield func(*Message) bool) error {
	ctx, stop := context.WithCancel(ctx)
	type ahead struct {
		messages []*Message
		size     int64 // of memory
	}
	batches, memory := make(chan ahead, aheadBatches), semaphore.NewWeighted(aheadMemory)
	var taken atomic.Int64 // messages
	var group errgroup.Group
	group.Go(func() error {
		defer close(batches)
		var size int64
		// The caller keeps a processor busy.
		w := walk{l: l, use: use, most: aheadMessages, bytes: aheadBytes, idle: runtime.GOMAXPROCS(0) - 2}
		w.wait = func(bytes int64) error {
			size = min(bytes, aheadMemory)
			return memory.Acquire(ctx, size)
		}
		return w.batches(ctx, spans, func(messages []*Message) bool {
			w.most = int(min(aheadMessages+taken.Load(), batchMessages))
			select {
			case batches <- ahead{messages, size}:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	more := true
	for b := range batches {
		for _, m := range b.messages {
			if more = more && yield(m); !more {
				break
			}
		}
		if !more {
			break
		}
		taken.Add(int64(len(b.messages)))
		memory.Release(b.size)
	}
	stop()
	for range batches { // unblocks the reader, so that it ends
	}
	err := group.Wait()
	if !more {
		return nil
	}
	return err
}

// Range returns the messages of the spans in order. Messages of segments beyond the memory limit of one call are
// unavailable.
func (l *Loader) Range(ctx context.Context, spans []Span) ([]*Message, error) {
	var out []*Message
	w := walk{
		l: l, use: Plainly, memory: newBudget(l.memory), most: batchMessages, bytes: batchBytes, keep: true,
		idle: runtime.GOMAXPROCS(0) - 1,
	}
	err := w.batches(ctx, spans, func(messages []*Message) bool {
		out = append(out, messages...)
		return true
	})
	return out, err
}

// Plainly is a use function for [Loader.Each] that only calls read.
func Plainly(read func() error) error { return read() }

// walk is a walk through spans.
type walk struct {
	l      *Loader
	use    func(read func() error) error
	wait   func(bytes int64) error // until a batch of so many may be read; nil does not wait
	memory *budget                 // bounds messages of segments, unless it is nil
	most   int                     // messages in the next batch
	bytes  int64                   // bound for its bytes
	keep   bool                    // keeps messages in the pool
	idle   int                     // processors that can help
}

// batches reads the spans batch by batch.
func (w *walk) batches(ctx context.Context, spans []Span, yield func([]*Message) bool) error {
	for _, span := range spans {
		for from := span.From; from < span.To; {
			var entries []index.Entry
			err := w.use(func() (err error) {
				entries, err = w.l.index.Entries(span.Line, from, min(from+rowsAtOnce, span.To))
				return err
			})
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			from += int64(len(entries))
			for len(entries) > 0 {
				n, bytes := 0, int64(0)
				for n < len(entries) && n < w.most && (n == 0 || bytes+entries[n].Size <= w.bytes) {
					bytes += entries[n].Size
					n++
				}
				if w.wait != nil {
					if err := w.wait(bytes); err != nil {
						return err
					}
				}
				var messages []*Message
				err := w.use(func() (err error) {
					messages, err = w.batch(ctx, span, entries[:n])
					return err
				})
				if err != nil {
					return err
				}
				if !yield(messages) {
					return ctx.Err()
				}
				entries = entries[n:]
			}
		}
	}
	return ctx.Err()
}

// few is how many messages of a batch are read from their files first: more are read faster from segments.
const few = 4

// batch reads messages. It overwrites entries.
func (w *walk) batch(ctx context.Context, span Span, entries []index.Entry) ([]*Message, error) {
	l := w.l
	messages := make([]*Message, len(entries))
	for i := range entries {
		if e := &entries[i]; w.memory != nil && e.IsSealed() {
			if err := w.memory.take(e.Size); err != nil {
				messages[i] = &Message{ID: e.ID, Line: span.Line, Position: e.Position, StoredAt: e.StoredAt(), Unavailable: err}
			}
		}
	}
	l.pool.current(messages, func(i int) poolKey { return l.key(span, &entries[i]) }, l.epoch.Load())
	missing, at := entries, make([]int, 0, len(entries))
	for i := range messages {
		if messages[i] == nil {
			missing[len(at)], at = entries[i], append(at, i)
		}
	}
	if missing = missing[:len(at)]; len(missing) == 0 {
		return messages, nil
	}
	read := l.reader(span, missing, w.idle > 0)
	for i := range missing {
		if !w.keep {
			messages[at[i]] = read(i)
			continue
		}
		var err error
		if messages[at[i]], err = l.load(ctx, span, &missing[i], func() *Message { return read(i) }); err != nil {
			return nil, err
		}
	}
	return messages, ctx.Err()
}

// reader reads what was committed of entries, and looks for edits of their files; with help, at the same time. It returns
// a function that returns the message of each.
func (l *Loader) reader(span Span, entries []index.Entry, help bool) func(i int) *Message {
	files := l.dir.Files(span.Folder)
	defer files.Release()
	raw := make([][]byte, len(entries))
	if len(entries) <= few {
		views.ReadAll(files, entries, raw)
	}
	exact := slices.Clone(raw)
	var infos []fs.FileInfo
	var failed error
	look := func() {
		if slices.ContainsFunc(exact, func(b []byte) bool { return b == nil }) {
			ids := make([]uuid.UUID, len(entries))
			for i := range entries {
				ids[i] = entries[i].ID
			}
			infos, failed = files.Stat(ids)
		}
	}
	var looking sync.WaitGroup
	if help && len(entries) > few {
		looking.Go(look)
	} else {
		look()
	}
	l.index.Read(entries, raw)
	looking.Wait()
	return func(i int) *Message {
		switch e := &entries[i]; {
		case exact[i] != nil:
			return l.exact(e, exact[i])
		case failed != nil:
			info, err := l.dir.StatMessage(span.Folder, e.ID)
			return l.read(span, e, raw[i], info, err)
		case infos[i] == nil:
			return l.read(span, e, raw[i], nil, fs.ErrNotExist)
		default:
			return l.read(span, e, raw[i], infos[i], nil)
		}
	}
}
