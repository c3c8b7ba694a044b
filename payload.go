package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// OpenPayload returns the payload with a hash as a stream, and its size in bytes. The reader verifies the content at its
// end, and fails with [ErrDamaged]. sha256 is the SHA-256 of the payload in 64 lower-case hexadecimal digits, as
// [Payload] has it: anything else is [ErrInvalid].
//
// It reads the blobs of the store, and fails with [ErrNotExist] when none has the hash. The payload of a message that was
// appended a moment ago may still be in the log alone, until that is sealed. [Message.Open] finds it.
func (s *Store) OpenPayload(ctx context.Context, sha256 string) (io.ReadCloser, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, payloadError(err)
	}
	sum, err := blob.ParseSum(sha256)
	if err != nil {
		return nil, 0, payloadError(fmt.Errorf("%w: the hash is not 64 lower-case hexadecimal digits", ErrInvalid))
	}
	r, size, err := s.e.Blobs.Open(sum)
	if err != nil {
		return nil, 0, payloadError(err)
	}
	return payloadReader{r}, size, nil
}

// payloadReader is the stream of a blob, with errors of this package.
type payloadReader struct{ io.ReadCloser }

func (r payloadReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader wants it as it is
		err = payloadError(err)
	}
	return n, err
}

func payloadError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = engine.Mark(err, ErrNotExist)
	case errors.Is(err, blob.ErrDamaged):
		err = engine.Mark(err, ErrDamaged)
	}
	return &Error{Op: "open the payload", Err: err}
}
