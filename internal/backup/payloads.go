package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// payloads copies and verifies the payloads that a message or a system prompt refers to, except unavailable ones.
func (b *copier) payloads(stored []byte, e *index.Entry) error {
	var sums []blob.Sum
	engine.EachMention(stored, b.c.OutsidePacks(e, func(sum blob.Sum) { sums = append(sums, sum) }))
	for _, sum := range sums {
		if b.seen[sum] {
			continue
		}
		b.seen[sum] = true
		if err := b.payload(sum); err != nil {
			return err
		}
	}
	return nil
}

func (b *copier) payload(sum blob.Sum) error {
	if there, err := b.to.Blobs.Share(sum, false); there || err != nil {
		return err
	}
	fromJournal := func(folded bool) (io.ReadCloser, error) {
		p, err := b.c.Log.Payload(sum, folded)
		if err == nil && (p == nil || blob.SumOf(p) != sum) {
			err = fs.ErrNotExist
		}
		return io.NopCloser(bytes.NewReader(p)), err
	}
	var why error
	for _, open := range []func() (io.ReadCloser, error){
		func() (io.ReadCloser, error) { return fromJournal(false) },
		func() (io.ReadCloser, error) { r, _, err := b.c.Store.Blobs.Open(sum); return r, err },
		func() (io.ReadCloser, error) { return fromJournal(true) },
	} {
		r, err := open()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) || why == nil {
				why = err
			}
			continue
		}
		in := &sourceReader{Reader: r}
		err = b.put(in)
		_ = r.Close()
		if in.err == nil {
			return err
		}
		why = in.err
	}
	b.countMissing(fmt.Errorf("payload %s: %w", sum, why))
	return nil
}

// put stores a payload. It does not sync a small payload: stage syncs everything before the copy gets its place.
func (b *copier) put(r io.Reader) error {
	small, err := io.ReadAll(io.LimitReader(r, smallPayload))
	if err != nil {
		return err
	}
	if len(small) < smallPayload {
		_, _, err = b.to.Blobs.PutUnsynced(small)
	} else {
		_, _, _, err = b.to.Blobs.PutReader(io.MultiReader(bytes.NewReader(small), r))
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
