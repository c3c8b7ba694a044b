package engine

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/loader"
)

// MaxAttachmentBytes bounds the payloads of one message, in bytes before base64: a larger body could not be put
// together.
const MaxAttachmentBytes = loader.MaxBody

// Attachment is a payload to be put into a message as base64. It becomes a blob without passing through memory whole. A
// message is refused with [ErrInvalid] before anything is stored if an attachment cannot be placed, and with
// [ErrTooLarge] if its payloads together exceed [MaxAttachmentBytes].
type Attachment struct {
	// At is the RFC 6901 pointer, of at most 1 KiB, to the empty string in Body where the payload belongs. It must lead
	// to one string, and each attachment to a different one.
	At        string
	MediaType string // in UTF-8; empty if unknown
	Prefix    string // text before the base64, in UTF-8, such as "data:image/png;base64,"
	Open      func() (io.ReadCloser, error)
}

func (a *Attachment) check() error {
	switch {
	case a.Open == nil:
		return errors.New("Open is nil")
	case !utf8.ValidString(a.Prefix):
		return errors.New("the prefix is not valid UTF-8")
	case !utf8.ValidString(a.MediaType):
		return errors.New("the media type is not valid UTF-8")
	}
	return nil
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

// limitedReader fails when a draft's payloads become too large.
type limitedReader struct {
	r io.Reader
	d *PendingMessage
}

func (c *limitedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if full := c.d.Count(int64(n)); full != nil {
		return 0, full
	}
	return n, err
}
