package archiving

import (
	"bytes"
	"context"
	"errors"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/loader"
)

// Externalise applies a text threshold, as of [engine.WithTextThreshold], to stored messages, including those of removed
// branches. It does not read binary payloads, nor texts that stay long enough. It takes a message that was edited by
// hand as it is now. It leaves alone unavailable messages, those that need an unavailable payload, and those whose
// payloads together are too large ([engine.MaxAttachmentBytes], [engine.WithMemoryLimit]). An interruption leaves each message in one
// form or the other; a second call continues. With dryRun it only counts.
func Externalise(ctx context.Context, c *engine.Context, threshold int64, dryRun bool) (Result, error) {
	e := externaliser{c: c, policy: blob.Policy{Text: threshold}, dryRun: dryRun, blobs: engine.BlobHold{Store: c.Store}}
	e.done.Context = c.Dir.ID
	_, err := engine.Use(c, func() (struct{}, error) {
		err := c.Refresh(ctx)
		if err == nil && c.Store.ReadOnly && !dryRun {
			err = engine.ErrReadOnly
		}
		if err == nil {
			err = e.run(ctx)
		}
		if !dryRun {
			c.Wrote()
		}
		return struct{}{}, err
	})
	return e.done, engine.Wrap(engine.Error{Op: "externalise", Context: c.Dir.ID}, err)
}

type externaliser struct {
	c      *engine.Context
	policy blob.Policy
	dryRun bool
	blobs  engine.BlobHold
	done   Result
}

// newForm is a message in its new form.
type newForm struct {
	engine.PendingMessage
	entry index.Entry // of the version it was made from
}

// rewriteBatch is how many messages are changed within one hold of the lock.
const rewriteBatch = 64

func (e *externaliser) run(ctx context.Context) error {
	for _, line := range e.c.Current().Lines {
		counts, ok, err := e.c.Index.Counts(line.ID)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for from := counts.Base; from < counts.End(); from += rewriteBatch {
			if err := e.runBatch(ctx, line, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// runBatch changes the messages of a line from a position on, at most rewriteBatch.
func (e *externaliser) runBatch(ctx context.Context, line ctxfolder.Line, from int64) error {
	defer e.blobs.Release()
	span := loader.Span{Line: line.ID, Folder: line.Folder, From: from, To: from + rewriteBatch}
	entries, err := e.c.Index.Entries(line.ID, span.From, span.To)
	if err != nil {
		return err
	}
	var changed []newForm
	for _, entry := range entries {
		m, err := e.c.Loader.Load(ctx, span, &entry)
		if err != nil {
			return err
		}
		r := newForm{entry: entry}
		var unavailable *engine.UnavailableError
		switch err := e.rewrite(ctx, m, &r.PendingMessage); {
		case m.Unavailable != nil || errors.As(err, &unavailable) || errors.Is(err, engine.ErrTooLarge):
			continue
		case err != nil:
			return err
		case !bytes.Equal(r.Stored, m.Stored):
			changed = append(changed, r)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if e.dryRun {
		for _, r := range changed {
			e.done.add(&r.entry, r.entry.Size-int64(len(r.Body)-len(r.Stored)))
		}
		return nil
	}
	return e.c.Write(ctx, func(m *engine.Metadata) error {
		now, ok := m.Line(line.ID)
		if !ok {
			return nil // the line went with its branch
		}
		span.Folder = now.Folder // the branch may have been renamed
		return e.replace(span, changed)
	})
}

func (x *Result) add(before *index.Entry, after int64) {
	x.Messages++
	x.Before += before.Size
	x.After += after
}

// rewrite makes the new form of a message. Body is the present stored form.
func (e *externaliser) rewrite(ctx context.Context, m *engine.Message, d *engine.PendingMessage) error {
	if m.Unavailable != nil {
		return nil
	}
	d.Body = m.Stored
	left := e.c.Store.Options.Memory
	get := func(ref engine.Payload) ([]byte, error) {
		if ref.Size > left {
			return nil, engine.ErrMemoryLimit
		}
		left -= ref.Size
		return m.Payload(ref)
	}
	put := func(payload []byte) (blob.Sum, error) { return blob.SumOf(payload), nil }
	if !e.dryRun {
		put = e.c.Store.PutPayload(d, func() error { return e.blobs.Hold(ctx) })
	}
	stored, refs, err := blob.Reexternalise(m.Stored, e.policy, get, put)
	d.Stored, d.Refs = stored, len(refs)
	d.PayloadBytes = 0
	for _, ref := range refs { // unchanged references count too
		err = errors.Join(err, d.Count(ref.Size))
	}
	return err
}

// replace commits the new forms of those messages that did not change meanwhile. The caller holds the lock, so the
// files are there before it is released.
//
// Crash order: as for a replacement. The old version has the same body, so it does not go to the trash.
func (e *externaliser) replace(span loader.Span, changed []newForm) error {
	c := e.c
	var items []engine.Item
	added := map[blob.Sum]bool{}
	var counted Result
	for i := range changed {
		r := &changed[i]
		now, err := c.Index.Entries(span.Line, r.entry.Position, r.entry.Position+1)
		if err != nil {
			return err
		}
		if len(now) == 0 || now[0].Sum != r.entry.Sum || now[0].At != r.entry.At {
			continue // replaced meanwhile
		}
		_, env, err := c.Loader.Envelope(span, &now[0])
		if err != nil {
			return err
		}
		if !bytes.Equal(env.Body, r.Body) {
			continue // edited by hand meanwhile
		}
		env.Body, env.Payloads, env.StoredAt = r.Stored, r.Refs, r.entry.Next()
		items = c.AddPayloads(items, r.Payloads, added)
		raw := env.AppendTo(nil)
		items = append(items, engine.MessageItem(journal.Replace, env, raw, r.entry.Size))
		counted.add(&r.entry, int64(len(raw)))
	}
	if len(items) == 0 {
		return nil
	}
	if err := c.CommitItems(items); err != nil {
		return err
	}
	e.done.Messages, e.done.Before, e.done.After = e.done.Messages+counted.Messages, e.done.Before+counted.Before, e.done.After+counted.After
	for i := range items {
		if env := items[i].Envelope; env != nil {
			c.Superseded(engine.Place{Span: span, Entry: index.Entry{Position: env.Position}}, nil, env, items[i].Body)
		}
	}
	return nil
}
