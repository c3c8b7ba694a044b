package ctxdir

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
)

// Payload is a piece of a message that lies in a blob: a reference stands for it in [Message.Stored].
type Payload = blob.Ref

// UnavailableError says which payload of a message cannot be had, and why.
type UnavailableError = blob.UnavailableError

const (
	// DefaultTextThreshold is the least length of a text that is moved to a blob unless the store or an option says
	// otherwise, in bytes. docs/DESIGN.md has the figures behind it.
	DefaultTextThreshold = 16 << 10

	// rides is how large a payload may be to ride in the journal, in bytes. A larger one is made durable
	// before the record that refers to it.
	rides = 64 << 10

	// blobsLock is held shared from the use of a blob to the commit that refers to it, and exclusively by who sweeps.
	blobsLock = "locks/blobs"
)

// TextThreshold is the least length of a text in a message, in bytes, that is moved to a blob.
func (s *Store) TextThreshold() int64 {
	switch {
	case s.opts.threshold != nil:
		return *s.opts.threshold
	case s.settings.TextThreshold != nil:
		return *s.settings.TextThreshold
	}
	return DefaultTextThreshold
}

// ResolveAll returns the bodies of messages with their payloads back in place, read side by side: what [Message.Body] does
// for one. All of them share the memory that one call may take ([WithMemoryLimit]), in order: a message that does not fit any more comes as
// it is stored, and the error wraps [ErrMemoryLimit].
func ResolveAll(ctx context.Context, messages []*Message) ([]json.RawMessage, error) {
	return loader.Bodies(ctx, messages)
}

// payloadStore takes the payloads of a journal that is about to go.
type payloadStore struct{ s *Store }

var _ index.PayloadStore = payloadStore{}

// Keep implements [index.PayloadStore].
func (p payloadStore) Keep(payloads iter.Seq[[]byte], durable bool) error {
	blobs := blobsInUse{s: p.s}
	defer blobs.release()
	if err := blobs.hold(context.Background()); err != nil {
		return err
	}
	for payload := range payloads {
		var err error
		if durable {
			_, err = p.s.blobs.Rewrite(payload)
		} else {
			_, _, err = p.s.blobs.PutUnsynced(payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// draft is a message on its way.
type draft struct {
	Draft
	stored   []byte       // Body, with references
	refs     int          // so many
	moved    int64        // bytes of their payloads
	payloads []index.Item // small ones, that ride
}

// count adds to the bytes that were moved out of the draft. More than fit into a body could never be read as one again.
func (d *draft) count(size int64) error {
	if size > loader.MaxBody-d.moved {
		return errMoved
	}
	d.moved += size
	return nil
}

var errMoved = fmt.Errorf("%w: its payloads are larger than %d bytes", ErrTooLarge, int64(loader.MaxBody))

// externalise moves the payloads of a draft out of its body, and reads its attachments. The large ones are durable when it
// returns; hold, taken before the first of them, keeps a sweep away until the record that refers to them is written.
func (s *Store) externalise(d *draft, threshold int64, hold func() error) error {
	attached, err := s.attached(d, hold)
	if err != nil {
		return err
	}
	stored, refs, err := blob.Attach(d.Body, blob.Policy{Text: threshold}, s.put(d, hold), attached)
	d.stored, d.refs = stored, len(refs)
	return err
}

// ride appends to items those payloads that no live journal has and riding, which notes what is among the items, does not
// say. The context's lock is held.
func (c *Context) ride(items, payloads []index.Item, riding map[index.Sum]bool) []index.Item {
	for _, p := range payloads {
		if !riding[p.Sum] && !c.log.HasPayload(p.Sum) {
			riding[p.Sum] = true
			items = append(items, p)
		}
	}
	return items
}

// put returns what stores the payloads of a draft.
func (s *Store) put(d *draft, hold func() error) func(payload []byte) (blob.Sum, error) {
	return func(payload []byte) (blob.Sum, error) {
		if err := d.count(int64(len(payload))); err != nil {
			return blob.Sum{}, err
		}
		if len(payload) > rides {
			if err := hold(); err != nil {
				return blob.Sum{}, err
			}
			sum, _, err := s.blobs.Put(payload)
			return sum, err
		}
		sum := blob.SumOf(payload)
		if !slices.ContainsFunc(d.payloads, func(it index.Item) bool { return it.Sum == sum }) {
			d.payloads = append(d.payloads, index.PayloadItem(sum, slices.Clone(payload)))
		}
		return sum, nil
	}
}

// externalisePrompt moves a branch's system prompt to a blob, durably, unless it is one already: prompts are long, and the
// same in many contexts. What is no text stays.
func (s *Store) externalisePrompt(prompt json.RawMessage, hold func() error) (json.RawMessage, error) {
	text := bytes.TrimSpace(prompt)
	if len(text) <= len(`""`) || text[0] != '"' {
		return prompt, nil
	}
	stored, _, err := blob.Externalise(text, blob.Policy{}, func(payload []byte) (blob.Sum, error) {
		if err := hold(); err != nil {
			return blob.Sum{}, err
		}
		sum, _, err := s.blobs.Put(payload)
		return sum, err
	})
	return stored, err
}

// SystemPrompt returns a branch's system prompt as it was given, nil where it has none. Metadata has a reference in its
// place.
func (c *Context) SystemPrompt(ctx context.Context, name string) (json.RawMessage, error) {
	info, err := branch.Get(c.current(), name)
	if err == nil {
		err = ctx.Err()
	}
	var prompt json.RawMessage
	if err == nil {
		err = c.use(func() (err error) {
			if info.SystemPrompt != nil {
				prompt, err = c.load.Resolve(ctx, info.SystemPrompt)
			}
			return err
		})
	}
	return prompt, public(Error{Op: "read the system prompt", Context: c.dir.ID, Branch: name}, err)
}

// blobsInUse is a hold on the store's blobs.
type blobsInUse struct {
	s    *Store
	lock vfs.Lock
}

func (b *blobsInUse) hold(ctx context.Context) error {
	if b.lock != nil {
		return nil
	}
	lock := b.s.fs.Lock(blobsLock)
	if err := b.s.acquireShared(ctx, lock); err != nil {
		_ = lock.Close()
		return err
	}
	b.lock = lock
	return nil
}

// blobsAlone runs f while nobody else holds on to blobs.
func (s *Store) blobsAlone(ctx context.Context, f func() error) error {
	lock := s.fs.Lock(blobsLock)
	defer lock.Close()
	if err := s.acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	return f()
}

func (b *blobsInUse) release() {
	if b.lock != nil {
		_ = b.lock.Release()
		_ = b.lock.Close()
		b.lock = nil
	}
}

// putting makes blobs of payloads that ride in the journal, when nothing was appended for a moment: making one takes as
// long as an append. A blob can be seen shortly after, and is there when the context was closed. What does not fit is
// left to the settle.
type putting struct {
	mu      sync.Mutex
	waiting []waiting
	size    int
	timer   *time.Timer

	one sync.Mutex // held by who makes blobs
}

// waiting is a payload that waits, and the journal it rides in.
type waiting struct {
	journal uint64
	payload []byte
}

const (
	// putAtMost bounds the payloads that wait, in bytes.
	putAtMost = 4 << 20
	// putAfter is how long nothing must have been appended.
	putAfter = 100 * time.Millisecond
)

// putLater takes the payloads among items that were written to a journal.
func (c *Context) putLater(items []index.Item, journal uint64) {
	p := &c.putting
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range items {
		if it.Kind == index.KindPayload && p.size+len(it.Payload) <= putAtMost {
			p.waiting, p.size = append(p.waiting, waiting{journal, it.Payload}), p.size+len(it.Payload)
		}
	}
	switch {
	case len(p.waiting) == 0 || c.store.opts.inOrder:
	case p.timer == nil:
		p.timer = time.AfterFunc(putAfter, func() { p.run(c) })
	default:
		p.timer.Reset(putAfter)
	}
}

// run makes the blobs that wait. One that cannot be made is no error: the journal has the payload. Where the journal is
// gone the blob was made, and may have been erased since: who erases removes the journal before he takes the lock on blobs.
func (p *putting) run(c *Context) {
	p.one.Lock()
	defer p.one.Unlock()
	p.mu.Lock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	waiting := p.waiting
	p.waiting, p.size = nil, 0
	p.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	blobs := blobsInUse{s: c.store}
	defer blobs.release()
	if blobs.hold(context.Background()) != nil {
		return
	}
	for _, w := range waiting {
		if _, err := vfs.LstatNumber(c.dir.FS, ctxfolder.JournalFile(w.journal)); err == nil {
			_, _, _ = c.store.blobs.PutUnsynced(w.payload)
		}
	}
}
