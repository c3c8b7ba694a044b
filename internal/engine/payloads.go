package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// Payload is a piece of a message in a blob. In [Message.Stored] a reference replaces it.
type Payload = blob.Ref

// UnavailableError says which payload of a message is unavailable, and why.
type UnavailableError = blob.UnavailableError

const (
	// DefaultTextThreshold is the default of the least length, in bytes, of a text that moves to a blob. The store or
	// an option can override it. docs/DESIGN.md has the measurements.
	DefaultTextThreshold = 16 << 10

	// maxJournalPayload bounds a payload in the log, in bytes. A larger one is made durable in a blob before the
	// record that refers to it.
	maxJournalPayload = 64 << 10
)

// TextThreshold returns the least length, in bytes, of a text in a message that moves to a blob.
func (s *Store) TextThreshold() int64 {
	switch {
	case s.Options.threshold != nil:
		return *s.Options.threshold
	case s.settings.TextThreshold != nil:
		return *s.settings.TextThreshold
	}
	return DefaultTextThreshold
}

// keepPayloads stores the payloads of a log durably, before the log goes.
func (s *Store) keepPayloads(payloads iter.Seq2[[]byte, error]) error {
	blobs := BlobHold{Store: s}
	defer blobs.Release()
	if err := blobs.Hold(context.Background()); err != nil {
		return err
	}
	for payload, err := range payloads {
		if err != nil {
			return err
		}
		if _, err := s.Blobs.Rewrite(payload); err != nil {
			return err
		}
	}
	return nil
}

// AddPayloads appends to items the payloads that are neither in a live log nor in added. It adds them to added, the
// set of payloads in items. The caller holds the context's lock.
func (c *Context) AddPayloads(items, payloads []Item, added map[blob.Sum]bool) []Item {
	for _, p := range payloads {
		if !added[p.Sum] && !c.Index.HasPayload(p.Sum) {
			added[p.Sum] = true
			items = append(items, p)
		}
	}
	return items
}

// PutPayload returns the function that stores the payloads of a draft.
func (s *Store) PutPayload(d *PendingMessage, hold func() error) func(payload []byte) (blob.Sum, error) {
	return func(payload []byte) (blob.Sum, error) {
		if err := d.Count(int64(len(payload))); err != nil {
			return blob.Sum{}, err
		}
		if len(payload) > maxJournalPayload {
			if err := hold(); err != nil {
				return blob.Sum{}, err
			}
			sum, _, err := s.Blobs.Put(payload)
			return sum, err
		}
		sum := blob.SumOf(payload)
		if !slices.ContainsFunc(d.Payloads, func(it Item) bool { return it.Sum == sum }) {
			d.Payloads = append(d.Payloads, payloadItem(sum, slices.Clone(payload)))
		}
		return sum, nil
	}
}

// ExternalisePrompt moves a branch's system prompt to a blob, durably, unless it is already a reference: prompts are
// long, and equal in many contexts. Anything but a text stays.
func (s *Store) ExternalisePrompt(prompt json.RawMessage, hold func() error) (json.RawMessage, error) {
	text := bytes.TrimSpace(prompt)
	if len(text) <= len(`""`) || text[0] != '"' {
		return prompt, nil
	}
	stored, _, err := blob.Externalise(text, blob.Policy{}, func(payload []byte) (blob.Sum, error) {
		if err := hold(); err != nil {
			return blob.Sum{}, err
		}
		sum, _, err := s.Blobs.Put(payload)
		return sum, err
	})
	return stored, err
}

// SystemPrompt returns a branch's system prompt as given, nil without one. The metadata holds a reference in its place.
func (c *Context) SystemPrompt(ctx context.Context, name string) (json.RawMessage, error) {
	info, err := branch.Get(c.Current(), name)
	if err == nil {
		err = ctx.Err()
	}
	var prompt json.RawMessage
	if err == nil {
		err = c.use(func() (err error) {
			if info.SystemPrompt != nil {
				prompt, err = c.Loader.Resolve(ctx, info.SystemPrompt)
			}
			return err
		})
	}
	return prompt, Wrap(Error{Op: "read the system prompt", Context: c.Dir.ID, Branch: name}, err)
}

const (
	// maxQueuedBytes bounds the waiting payloads, in bytes.
	maxQueuedBytes = 4 << 20
	// queueDelay is the time without appends before blobs are made.
	queueDelay = 100 * time.Millisecond
)

// PutBlobs makes the blobs now that wait for a moment without appends.
func (c *Context) PutBlobs() { c.blobQueue.run(c) }

// queueBlobs queues the payloads among items written to a journal.
func (c *Context) queueBlobs(items []Item, log string) {
	p := &c.blobQueue
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range items {
		if it.Kind == journal.Payload && p.size+len(it.Payload) <= maxQueuedBytes {
			p.payloads, p.size = append(p.payloads, queuedPayload{log, it.Payload}), p.size+len(it.Payload)
		}
	}
	switch {
	case len(p.payloads) == 0 || c.Store.Options.inOrder:
	case p.timer == nil:
		p.timer = time.AfterFunc(queueDelay, func() { p.run(c) })
	default:
		p.timer.Reset(queueDelay)
	}
}

// run makes the waiting blobs. A failure is not an error: the log has the payload. If the log is gone, the blob was
// made and may have been erased since: an erase removes the log before it takes the lock on blobs.
func (p *blobQueue) run(c *Context) {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	waiting := p.payloads
	p.payloads, p.size = nil, 0
	p.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	blobs := BlobHold{Store: c.Store}
	defer blobs.Release()
	if blobs.Hold(context.Background()) != nil {
		return
	}
	for _, w := range waiting {
		if _, err := c.Dir.FS.Lstat(w.log); err == nil {
			_, _, _ = c.Store.Blobs.PutUnsynced(w.payload)
		}
	}
}
