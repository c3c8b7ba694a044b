package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// payloads copies and verifies the payloads that a message or the metadata refers to, except unavailable ones.
func (b *copier) payloads(stored []byte) (err error) {
	engine.EachMention(stored, func(sum blob.Sum) {
		if err == nil && !b.seen[sum] {
			b.seen[sum] = true
			err = b.payload(sum)
		}
	})
	return err
}

func (b *copier) payload(sum blob.Sum) error {
	p, logged, err := b.ix.Payload(sum)
	if logged = logged && err == nil && blob.SumOf(p) == sum; logged && b.kept {
		return nil
	}
	there, err := b.to.Blobs.Share(sum, false)
	if there {
		b.blobs[sum] = true
	}
	if there || err != nil {
		return err
	}
	if logged {
		return b.put(sum, bytes.NewReader(p))
	}
	r, _, err := b.c.Store.Blobs.Open(sum)
	if err == nil {
		in := &sourceReader{Reader: r}
		err = b.put(sum, in)
		_ = r.Close() // it was only read
		if in.err == nil {
			return err
		}
		err = in.err
	}
	b.countMissing(fmt.Errorf("payload %s: %w", sum, err))
	return nil
}

// put stores a payload. It does not sync a small payload: that is done before the copy gets its place.
func (b *copier) put(sum blob.Sum, r io.Reader) error {
	small, err := io.ReadAll(io.LimitReader(r, smallPayload))
	if err != nil {
		return err
	}
	if len(small) == smallPayload {
		_, _, _, err = b.to.Blobs.PutReader(io.MultiReader(bytes.NewReader(small), r))
		return err
	}
	if _, _, err = b.to.Blobs.PutUnsynced(small); err == nil {
		b.blobs[sum] = true
	}
	return err
}

// smallPayload bounds the payloads that put stores without a sync, in bytes.
const smallPayload = 1 << 20

// sourceReader keeps the errors of reading a payload apart from those of writing it.
type sourceReader struct {
	io.Reader
	err error
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
