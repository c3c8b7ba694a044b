package index

import (
	"encoding/hex"
	"errors"
	"fmt"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
)

// record is a record of a log, parsed as far as the state needs it.
type record struct {
	journal.Record
	log     *openLog
	address message.Address // of Add and Replace
	payload blob.Sum        // of Payload
	trim    trim
	erasure erasure
}

// parse parses the body of a record. Of a large one, it reads on only if it has to.
func (r *record) parse() error {
	switch r.Kind {
	case journal.Add, journal.Replace:
		var ok bool
		if r.address, ok = message.ParseAddress(r.Body); ok {
			return nil
		}
		if err := r.whole(); err != nil {
			return err
		}
		env, err := message.ParseTrusted(r.Body)
		if errors.Is(err, message.ErrVersion) {
			return err
		}
		if err != nil {
			return r.damaged(err)
		}
		r.address = env.Address()
	case journal.Payload:
		var ok bool
		if r.payload, ok = payloadSum(r.Body); !ok {
			return r.damaged(errors.New("the payload record lacks a hash"))
		}
	case journal.Trim:
		err := r.whole()
		if err == nil {
			r.trim, err = parseTrim(r.Body)
		}
		return err
	case journal.Erase:
		err := r.whole()
		if err == nil {
			r.erasure, err = parseErasure(r.Body)
		}
		return err
	case journal.Metadata, journal.Change:
		return r.whole()
	}
	return nil
}

// whole reads the rest of the body.
func (r *record) whole() (err error) {
	if int64(len(r.Body)) < r.Len {
		r.Body, err = r.log.ReadBody(r.Off)
	}
	return err
}

func (r *record) damaged(err error) error {
	if errors.Is(err, ctxfolder.ErrVersion) {
		return err
	}
	return fmt.Errorf("%w: record %d of %s: %w", ErrDamaged, r.Seq, r.log.Name(), err)
}

// entry returns the entry of the message that the record commits.
func (r *record) entry() Entry {
	e := entryOfAddress(&r.address, r.Seq, r.Len, r.Sum)
	e.log, e.off = r.log, r.Off
	return e
}

// payloadBlob is the beginning of the body of a payload record; the name of the payload follows.
const payloadBlob = `{"blob":"`

// payloadSum returns the name of the payload in a record whose body begins with b.
func payloadSum(b []byte) (sum blob.Sum, ok bool) {
	if len(b) < len(payloadBlob)+2*len(sum) || string(b[:len(payloadBlob)]) != payloadBlob {
		return sum, false
	}
	_, err := hex.Decode(sum[:], b[len(payloadBlob):len(payloadBlob)+2*len(sum)])
	return sum, err == nil
}
