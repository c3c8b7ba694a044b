package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/index"
	"golang.org/x/sync/errgroup"
)

// Blobs is where payloads are that no journal has any more.
type Blobs interface {
	Get(sum blob.Sum, limit int64) ([]byte, error)
	Open(sum blob.Sum) (payload io.ReadCloser, size int64, err error)
}

// MaxBody bounds the payloads that are put back into one message, in bytes: the same one may be referred to many times.
const MaxBody = 1 << 30

// HasPayloads reports whether Stored may differ from the body: a reference, and a name that was escaped because it looks
// like one, has a dollar sign.
func (m *Message) HasPayloads() bool {
	return bytes.IndexByte(m.Stored, '$') >= 0 || bytes.Contains(m.Stored, []byte(`\u0024`))
}

// Payloads lists the payloads that were moved out of the message, in order, with size and media type. It opens no blob.
func (m *Message) Payloads() ([]blob.Ref, error) {
	if !m.HasPayloads() {
		return nil, nil
	}
	return blob.Refs(m.Stored)
}

// Body returns the framework's object, verbatim: with every payload back in its place. Where one cannot be had, the error
// joins a [*blob.UnavailableError] for each, and the body comes with references in their places all the same; that of
// payloads above [MaxBody] wraps [index.ErrTooLarge]. Of a message that is unavailable there is no body; the error is why.
func (m *Message) Body(ctx context.Context) (json.RawMessage, error) {
	return m.resolve(ctx, m.bounded())
}

// Texts is Body for who only shows a message: references to binary payloads stay, which tell size and media type. Of the
// payloads nothing is read but that they are there. The result is not to be stored: a framework may have an object of its
// own that looks like a reference.
func (m *Message) Texts(ctx context.Context) (json.RawMessage, error) {
	get := m.bounded()
	return m.resolve(ctx, func(ref blob.Ref) ([]byte, error) {
		if ref.Encoding == "" {
			return get(ref)
		}
		r, size, err := m.Open(ref)
		if err != nil {
			return nil, err
		}
		_ = r.Close() // nothing was written
		if size != ref.Size {
			return nil, fmt.Errorf("%w: %d bytes, the reference says %d", blob.ErrDamaged, size, ref.Size)
		}
		return nil, blob.ErrKeep
	})
}

func (m *Message) resolve(ctx context.Context, get func(blob.Ref) ([]byte, error)) (json.RawMessage, error) {
	if m.Unavailable != nil {
		return nil, m.Unavailable
	}
	if !m.HasPayloads() {
		return m.Stored, nil
	}
	return blob.Resolve(m.Stored, func(ref blob.Ref) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return get(ref)
	})
}

// bounded returns what reads payloads up to MaxBody in all.
func (m *Message) bounded() func(blob.Ref) ([]byte, error) {
	left := int64(MaxBody)
	return func(ref blob.Ref) ([]byte, error) {
		if ref.Size > left {
			return nil, fmt.Errorf("%w: its payloads are larger than %d bytes", index.ErrTooLarge, int64(MaxBody))
		}
		left -= ref.Size
		return m.from.payload(ref)
	}
}

// Payload returns one of the message's payloads, verified. It is no larger than the reference says.
func (m *Message) Payload(ref blob.Ref) ([]byte, error) { return m.from.payload(ref) }

// Open returns one of the message's payloads as a stream, and its size in bytes. What is read is verified at its end.
func (m *Message) Open(ref blob.Ref) (io.ReadCloser, int64, error) {
	if b := m.from.riding(ref, false); b != nil {
		return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	}
	r, size, err := m.from.blobs.Open(ref.Sum)
	if err != nil {
		var b []byte
		if b, err = m.from.elsewhere(ref, err); b != nil {
			return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
		}
	}
	return r, size, err
}

// payload looks in the journals that are in memory, where the newest ones are; then for a blob; and where that is missing or
// damaged in the folded journals, which have to be searched, and in packs.
func (l *Loader) payload(ref blob.Ref) ([]byte, error) {
	if b := l.riding(ref, false); b != nil {
		return b, nil
	}
	b, err := l.blobs.Get(ref.Sum, ref.Size)
	if err != nil {
		there, why := l.elsewhere(ref, err)
		if there != nil {
			return there, nil
		}
		// It may have moved from one place to another while they were looked at.
		if again, aerr := l.blobs.Get(ref.Sum, ref.Size); aerr == nil {
			return again, nil
		}
		err = why
	}
	return b, err
}

// elsewhere returns a payload of which there is no blob, for the reason why, or that reason. A message file may be newer than what is known of the journals.
func (l *Loader) elsewhere(ref blob.Ref, why error) (b []byte, err error) {
	closed := l.whileOpen(func() {
		if b = l.inJournals(ref, true); b == nil && l.log.Refresh() == nil {
			b = l.inJournals(ref, true)
		}
	})
	if closed != nil {
		why = fmt.Errorf("%w: %w", closed, why)
	}
	return b, why
}

// riding returns a payload from a journal, nil where none has it unharmed.
func (l *Loader) riding(ref blob.Ref, folded bool) (b []byte) {
	_ = l.whileOpen(func() { b = l.inJournals(ref, folded) })
	return b
}

// whileOpen calls f, which looks into the log, unless that may be closed.
func (l *Loader) whileOpen(f func()) error {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return ErrClosed
	}
	f()
	return nil
}

// inJournals is riding for who keeps the log open.
func (l *Loader) inJournals(ref blob.Ref, folded bool) []byte {
	if b, err := l.log.Payload(ref.Sum, folded); err == nil && b != nil && blob.SumOf(b) == ref.Sum {
		return b
	}
	return nil
}

// Bodies returns the bodies of messages, read side by side. An entry is what [Message.Body] returns; the error joins
// theirs.
func Bodies(ctx context.Context, messages []*Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(messages))
	errs := make([]error, len(messages))
	var group errgroup.Group
	var next atomic.Int64
	for range min(readers, len(messages)) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(messages) {
					return nil
				}
				out[i], errs[i] = messages[i].Body(ctx)
			}
		})
	}
	_ = group.Wait()
	return out, errors.Join(errs...)
}
