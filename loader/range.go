package loader

import (
	"context"
	"io/fs"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// A batch is the part of a range that is read at once, bounded in messages and bytes. The first batch of an iteration
// is small, so that its caller begins soon; each further one is twice as large.
const (
	firstMessages = 8
	batchMessages = 512
	batchBytes    = 4 << 20
	aheadBytes    = 1 << 20 // of a batch that an iteration reads ahead
	rowsAtOnce    = 512
)

// readers bounds the files that one range keeps open.
var readers = max(4, 2*runtime.GOMAXPROCS(0))

// More readers start when one has read for longer than slow and took longer than slowFile for each message, as from a
// disk. In the page cache one reader is as fast as several.
const (
	slow     = 300 * time.Microsecond
	slowFile = 50 * time.Microsecond
)

// Each calls yield for every message of the spans in order. One goroutine reads ahead meanwhile. Each leaves nothing in
// the pool: an iteration would evict what callers use again. It stops with nil when yield returns false, and with ctx's
// error when ctx ends. Every read runs inside use, which may refuse it; yield runs outside.
func (l *Loader) Each(ctx context.Context, spans []Span, use func(read func() error) error, yield func(*Message) bool) error {
	ctx, stop := context.WithCancel(ctx)
	batches := make(chan []*Message)
	var group errgroup.Group
	group.Go(func() error {
		defer close(batches)
		w := walk{l: l, use: use, most: firstMessages, bytes: aheadBytes}
		w.load = func(ctx context.Context, _ Span, _ *index.Entry, read func() *Message) (*Message, error) {
			return read(), ctx.Err()
		}
		return w.batches(ctx, spans, func(messages []*Message) bool {
			select {
			case batches <- messages:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	more := true
	for messages := range batches {
		for _, m := range messages {
			if more = more && yield(m); !more {
				break
			}
		}
		if !more {
			break
		}
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

// Range returns the messages of the spans in order. Archived messages beyond the memory limit of one call are
// unavailable.
func (l *Loader) Range(ctx context.Context, spans []Span) ([]*Message, error) {
	var out []*Message
	w := walk{l: l, use: Plainly, memory: newBudget(l.memory), most: batchMessages, bytes: batchBytes, load: l.load}
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
	memory *budget // bounds archived messages, unless it is nil
	most   int     // messages in the next batch
	bytes  int64   // bound for its bytes
	// load returns a message from the pool or from read.
	load func(ctx context.Context, span Span, e *index.Entry, read func() *Message) (*Message, error)
}

// batches reads the spans batch by batch.
func (w *walk) batches(ctx context.Context, spans []Span, yield func([]*Message) bool) error {
	for _, span := range spans {
		for from := span.From; from < span.To; {
			var entries []index.Entry
			err := w.use(func() (err error) {
				entries, err = w.l.log.Entries(span.Line, from, min(from+rowsAtOnce, span.To))
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
				w.most = min(2*w.most, batchMessages)
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

// batch reads messages: neighbours in a journal with one read, message files with several readers if they are slow. It
// overwrites entries.
func (w *walk) batch(ctx context.Context, span Span, entries []index.Entry) ([]*Message, error) {
	l := w.l
	messages := make([]*Message, len(entries))
	for i := range entries {
		if e := &entries[i]; w.memory != nil && e.Pack != uuid.Nil {
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
	records := l.log.ReadRecords(missing)
	stat := w.stat(span.Folder, missing, records)
	return messages, together(len(missing), func(i int) (err error) {
		messages[at[i]], err = w.load(ctx, span, &missing[i], func() *Message {
			return l.read(span, &missing[i], records[i], func() (fs.FileInfo, error) { return stat(i) })
		})
		return err
	})
}

// stat returns a function for the Lstat of each entry's file. It asks the system only if there are records, which need
// it.
func (w *walk) stat(folder string, entries []index.Entry, records [][]byte) func(i int) (fs.FileInfo, error) {
	one := func(i int) (fs.FileInfo, error) { return w.l.dir.StatMessage(folder, entries[i].FileID()) }
	if !slices.ContainsFunc(records, func(b []byte) bool { return b != nil }) {
		return one
	}
	ids := make([]uuid.UUID, len(entries))
	for i := range entries {
		ids[i] = entries[i].FileID()
	}
	infos, err := w.l.dir.StatMessages(folder, ids)
	if err != nil {
		return one
	}
	return func(i int) (fs.FileInfo, error) {
		if infos[i] == nil {
			return nil, fs.ErrNotExist
		}
		return infos[i], nil
	}
}

// together calls read for each number below n. More readers start when the first one turns out to be slow.
func together(n int, read func(i int) error) error {
	var next atomic.Int64
	one := func() (more bool, err error) {
		i := int(next.Add(1)) - 1
		if i >= n {
			return false, nil
		}
		err = read(i)
		return err == nil, err
	}
	start := time.Now()
	for done := time.Duration(0); ; done++ {
		if took := time.Since(start); took > slow && took > done*slowFile {
			break
		}
		if more, err := one(); !more {
			return err
		}
	}
	var group errgroup.Group
	for range readers {
		group.Go(func() error {
			for {
				if more, err := one(); !more {
					return err
				}
			}
		})
	}
	return group.Wait()
}
