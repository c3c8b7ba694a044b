package loader

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
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
// small: the caller begins soon, and one that stops early has caused little reading. Later ones grow with what the
// caller took.
const (
	aheadBatches  = 2
	aheadMessages = 8         // in a first batch
	aheadBytes    = 512 << 10 // in any batch of several messages
	aheadMemory   = 16 << 20  // in all of them, unless it is one message
)

// readers bounds the files that one range keeps open.
var readers = max(4, 2*runtime.GOMAXPROCS(0))

// slow is how long one message takes from a disk, or longer. In the page cache two readers are as fast as more.
const slow = 300 * time.Microsecond

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

// Range returns the messages of the spans in order. Archived messages beyond the memory limit of one call are
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
	memory *budget                 // bounds archived messages, unless it is nil
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

// batch reads messages: neighbours in a journal with one read, message files with several readers if they are many or
// slow. It overwrites entries.
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
	records := make([][]byte, len(missing))
	l.log.ReadPacked(missing, records)  // all at once: neighbours share a frame
	l.log.ReadRecords(missing, records) // or a part of a journal
	files := l.dir.Files(span.Folder)
	defer files.Release()
	help := w.idle > 0 && without(records) > leastRun
	return messages, together(len(missing), help, func(from, to int) (err error) {
		read := l.reader(span, files, missing[from:to], records[from:to])
		for i := from; i < to && err == nil; i++ {
			if w.keep {
				messages[at[i]], err = l.load(ctx, span, &missing[i], func() *Message { return read(i - from) })
			} else {
				messages[at[i]], err = read(i-from), ctx.Err()
			}
		}
		return err
	})
}

// without counts the messages that have no record in a journal or pack.
func without(records [][]byte) (n int) {
	for _, b := range records {
		if b == nil {
			n++
		}
	}
	return n
}

// reader returns a function that reads the message of each entry. It asks the system at once for the files of entries
// without a record, and for the Lstat of those that have one.
func (l *Loader) reader(span Span, files *ctxfolder.Files, entries []index.Entry, records [][]byte) func(i int) *Message {
	raw := slices.Clone(records)
	index.ReadFiles(files, entries, raw)
	stat := func(i int) (fs.FileInfo, error) { return l.dir.StatMessage(span.Folder, entries[i].FileID()) }
	if slices.ContainsFunc(records, func(b []byte) bool { return b != nil }) {
		ids := make([]uuid.UUID, len(entries))
		for i := range entries {
			ids[i] = entries[i].FileID()
		}
		if infos, err := files.Stat(ids); err == nil {
			stat = func(i int) (fs.FileInfo, error) {
				if infos[i] == nil {
					return nil, fs.ErrNotExist
				}
				return infos[i], nil
			}
		}
	}
	return func(i int) *Message {
		if records[i] == nil && raw[i] != nil {
			return l.exact(span, &entries[i], raw[i])
		}
		return l.read(span, &entries[i], records[i], func() (fs.FileInfo, error) { return stat(i) })
	}
}

// One of several readers takes a run of messages at a time, and asks the system for all of them at once. Runs get
// shorter towards the end, so that all readers end at about the same time.
const (
	leastRun = 8
	mostRun  = 16
)

// together calls read for the numbers below n. With help, a second reader helps from the start. More start when the first
// message turns out to be slow. A reader without help reads the rest in one run.
func together(n int, help bool, read func(from, to int) error) error {
	start := time.Now()
	err := read(0, min(1, n))
	if err != nil || n <= 1 {
		return err
	}
	var mu sync.Mutex
	next := 1
	take := func() (from, to int) {
		mu.Lock()
		defer mu.Unlock()
		from = next
		next = min(from+min(max((n-from)/4, leastRun), mostRun), n)
		return from, next
	}
	rest := func() error {
		for from, to := take(); from < to; from, to = take() {
			if err := read(from, to); err != nil {
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	var helpers int
	switch {
	case time.Since(start) > slow:
		helpers = min(readers, n-1)
	case help:
		helpers = 1
	default:
		return read(1, n)
	}
	for range helpers {
		group.Go(rest)
	}
	return errors.Join(rest(), group.Wait())
}
