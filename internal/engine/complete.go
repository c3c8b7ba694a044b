package engine

import (
	"errors"
	"fmt"
	"io"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/message"
)

// completeAll completes drafts, many of them in parallel. A result has the error of its draft.
func (s *Store) completeAll(drafts []Draft, threshold int64, hold func() error) (pending []PendingMessage, results []BatchResult) {
	pending, results = make([]PendingMessage, len(drafts)), make([]BatchResult, len(drafts))
	complete := func(i int) {
		pending[i].Draft = drafts[i]
		results[i].Err = s.Complete(&pending[i], threshold, hold)
	}
	if s.Options.inOrder {
		for i := range drafts {
			complete(i)
		}
	} else {
		InParallel(len(drafts), complete)
	}
	return pending, results
}

// Complete checks a draft's body, fills in from it what the draft leaves open, and moves its payloads out. From an
// envelope it takes everything but the place of the message; payloads stay where they are.
func (s *Store) Complete(d *PendingMessage, threshold int64, hold func() error) error {
	switch {
	case d.Gone != archive.Here:
		return completeGone(d)
	case d.Envelope != nil:
		return s.completeCopy(d, hold)
	}
	if int64(len(d.Body)) > s.Options.MaxMessage {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrTooLarge, len(d.Body), s.Options.MaxMessage)
	}
	body, err := message.Compact(d.Body)
	if err != nil {
		return err
	}
	d.Body = body
	if d.Source != nil {
		if d.Source, err = message.Compact(d.Source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if d.References != nil {
		if len(d.References) > maxReferences {
			return fmt.Errorf("references: %w: %d bytes exceed the limit of %d", ErrTooLarge, len(d.References), maxReferences)
		}
		if d.References, err = message.CompactArray(d.References); err != nil {
			return fmt.Errorf("references: %w", err)
		}
	}
	if !d.CreatedAt.IsZero() && !message.ValidTime(d.CreatedAt) {
		return fmt.Errorf("%w: created_at: the year %d is out of range", ErrInvalid, d.CreatedAt.UTC().Year())
	}
	role, typ, created := message.Describe(body)
	if d.Role == "" {
		d.Role = role
	}
	if d.Type == "" {
		d.Type = typ
	}
	if d.CreatedAt.IsZero() {
		d.CreatedAt = created
	}
	return s.externalise(d, threshold, hold)
}

// externalise moves the payloads of a draft out of its body and reads its attachments. The large ones are durable when
// it returns. It calls hold before the first of them, which keeps a sweep away until the record that refers to them is
// written.
func (s *Store) externalise(d *PendingMessage, threshold int64, hold func() error) error {
	attached, err := s.attachmentFuncs(d, hold)
	if err != nil {
		return err
	}
	stored, refs, err := blob.Attach(d.Body, blob.Policy{Text: threshold}, s.PutPayload(d, hold), attached)
	d.Stored, d.Refs = stored, len(refs)
	return err
}

// attachmentFuncs returns the functions that store the attachments of a draft, by pointer.
func (s *Store) attachmentFuncs(d *PendingMessage, hold func() error) (map[string]func() (blob.Ref, error), error) {
	if len(d.Attachments) == 0 {
		return nil, nil
	}
	size := int64(len(d.Body))
	attached := make(map[string]func() (blob.Ref, error), len(d.Attachments))
	for _, a := range d.Attachments {
		err := a.check()
		if err == nil && attached[a.At] != nil {
			err = errors.New("another attachment has the same pointer")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: attachment at %q: %w", ErrInvalid, a.At, err)
		}
		if size += int64(len(a.Prefix) + len(a.MediaType)); size > s.Options.MaxMessage {
			return nil, fmt.Errorf("%w: the body with prefixes and media types exceeds the limit of %d bytes", ErrTooLarge, s.Options.MaxMessage)
		}
		attached[a.At] = func() (blob.Ref, error) {
			if err := hold(); err != nil {
				return blob.Ref{}, err
			}
			ref := blob.Ref{MediaType: a.MediaType, Encoding: blob.Base64, Prefix: a.Prefix}
			var err error
			ref.Sum, ref.Size, err = s.attach(d, a.Open)
			return ref, err
		}
	}
	return attached, nil
}

// attach makes a blob of the bytes that open supplies.
func (s *Store) attach(d *PendingMessage, open func() (io.ReadCloser, error)) (sum blob.Sum, size int64, err error) {
	r, err := open()
	if err != nil {
		return sum, 0, err
	}
	sum, size, _, err = s.Blobs.PutReader(&limitedReader{r, d})
	return sum, size, errors.Join(err, r.Close())
}
