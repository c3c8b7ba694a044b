package loader

import (
	"context"
	"io/fs"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// A batch is the part of a range that is read at once, bounded in messages and bytes.
const (
	batchMessages = 512
	batchBytes    = 4 << 20
	rowsAtOnce    = 512
)

// readers bounds the files that one range keeps open.
var readers = max(4, 2*runtime.GOMAXPROCS(0))

// slow is how long one reader may take for a batch before more readers start.
const slow = 300 * time.Microsecond

// Each calls yield for every message of the spans in order, reading ahead meanwhile. It stops with nil when yield
// returns false, and with ctx's error when ctx ends. Every read runs inside use, which may refuse it; yield runs
// outside.
func (l *Loader) Each(ctx context.Context, spans []Span, use func(read func() error) error, yield func(*Message) bool) error {
	ctx, stop := context.WithCancel(ctx)
	batches := make(chan []*Message)
	var group errgroup.Group
	group.Go(func() error {
		defer close(batches)
		return l.batches(ctx, spans, use, nil, func(messages []*Message) bool {
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
	err := l.batches(ctx, spans, Plainly, newBudget(l.memory), func(messages []*Message) bool {
		out = append(out, messages...)
		return true
	})
	return out, err
}

// Plainly is a use function for [Loader.Each] that only calls read.
func Plainly(read func() error) error { return read() }

// batches reads the spans batch by batch, the messages of a batch concurrently. memory bounds archived messages, unless
// it is nil.
func (l *Loader) batches(
	ctx context.Context,
	spans []Span,
	use func(read func() error) error,
	memory *budget,
	yield func([]*Message) bool,
) error {
	for _, span := range spans {
		for from := span.From; from < span.To; {
			var entries []index.Entry
			err := use(func() (err error) {
				entries, err = l.log.Entries(span.Line, from, min(from+rowsAtOnce, span.To))
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
				for n < len(entries) && n < batchMessages && (n == 0 || bytes+entries[n].Size <= batchBytes) {
					bytes += entries[n].Size
					n++
				}
				var messages []*Message
				err := use(func() (err error) {
					messages, err = l.batch(ctx, span, entries[:n], memory)
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

// batch reads messages concurrently: neighbours in a journal with one read, message files with several readers.
func (l *Loader) batch(ctx context.Context, span Span, entries []index.Entry, memory *budget) ([]*Message, error) {
	messages := make([]*Message, len(entries))
	missing := make([]index.Entry, 0, len(entries))
	at := make([]int, 0, len(entries))
	for i := range entries {
		if e := &entries[i]; memory != nil && e.Pack != uuid.Nil {
			if err := memory.take(e.Size); err != nil {
				messages[i] = &Message{ID: e.ID, Line: span.Line, Position: e.Position, StoredAt: e.StoredAt(), Unavailable: err}
				continue
			}
		}
		if m, current := l.pool.peek(l.key(span, &entries[i]), l.epoch.Load()); current {
			messages[i] = m
		} else {
			missing, at = append(missing, entries[i]), append(at, i)
		}
	}
	if len(missing) == 0 {
		return messages, nil
	}
	records := l.log.ReadRecords(missing)
	file := stat(l.dir.StatNext)
	if !l.dir.HasFolder(span.Folder) {
		// Where everything is archived, there are no files to look for.
		file = func(string, uuid.UUID) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
	}
	var next atomic.Int64
	one := func() (bool, error) {
		i := int(next.Add(1)) - 1
		if i >= len(missing) {
			return false, nil
		}
		m, err := l.load(ctx, span, &missing[i], file, func() []byte { return records[i] })
		messages[at[i]] = m
		return err == nil, err
	}
	// One reader reads cached files as fast as several do. So the others start only when reading turns out to be slow.
	start := time.Now()
	for time.Since(start) < slow {
		if more, err := one(); !more {
			return messages, err
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
	return messages, group.Wait()
}
