package index

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Sum is the SHA-256 of a payload, its name.
type Sum = [32]byte

// A small payload of a message rides in the journal: its record stands before the message's, and one sync covers both. Its
// blob is made when there is time, without a sync, and durable from the settle on.

const payloadBlob = `{"blob":"`

// PayloadItem returns the item that keeps a payload.
func PayloadItem(sum Sum, payload []byte) Item {
	b := make([]byte, 0, len(payloadBlob)+2*len(sum)+len(payload)*4/3+64)
	b = hex.AppendEncode(append(b, payloadBlob...), sum[:])
	if utf8.Valid(payload) {
		b = append(b, `","text":`...)
		b, _ = jsontext.AppendQuote(b, payload)
	} else {
		b = append(b, `","base64":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, payload), '"')
	}
	return Item{Kind: KindPayload, Body: append(b, '}'), Sum: sum, Payload: payload}
}

// payloadSum returns the name of the payload in a record, of whose body b is the beginning.
func payloadSum(b []byte) (sum Sum, ok bool) {
	if !bytes.HasPrefix(b, []byte(payloadBlob)) || len(b) < len(payloadBlob)+2*len(sum) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], b[len(payloadBlob):len(payloadBlob)+2*len(sum)])
	return sum, err == nil
}

// parsePayload returns the payload in a record.
func parsePayload(b []byte) ([]byte, error) {
	var x struct {
		Text   *string `json:"text"`
		Base64 []byte  `json:"base64"`
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("%w: payload in a journal: %w", ErrDamaged, err)
	}
	if x.Text != nil {
		return []byte(*x.Text), nil
	}
	return x.Base64, nil
}

// payloadAt is where a journal has a payload.
type payloadAt struct {
	gen uint64
	off int64
	len int64 // of the record's body
	sum uint64
}

// HasPayload reports whether a journal that is not folded is known to have a payload: who refers to it needs no record
// of his own.
func (l *Log) HasPayload(sum Sum) bool {
	var ok bool
	_ = l.view(func(s *state) { _, ok = s.payloads[sum] })
	return ok
}

// Payload returns a payload that a journal has; nil when none has it. The journals that are folded are searched only
// when folded is set, the first time that reads all of them, and packs after them. Whether it is the one of that name is for the
// caller to see.
func (l *Log) Payload(sum Sum, folded bool) (payload []byte, err error) {
	defer func() {
		if folded && payload == nil && err == nil {
			payload = l.ArchivedPayload(sum)
		}
	}()
	err = l.view(func(s *state) { // the view keeps the file open
		at, ok := s.payloads[sum]
		if !ok && folded {
			at, ok = s.kept.payload(s.dir, sum)
		}
		if !ok {
			return
		}
		f := s.record(at.gen)
		if f == nil {
			return
		}
		defer f.Release()
		entry := Entry{Size: at.len, Sum: at.sum, gen: at.gen, off: at.off}
		var body [1][]byte
		readRun(f.File, []Entry{entry}, body[:], nil)
		if body[0] != nil {
			payload, _ = parsePayload(body[0])
		}
	})
	return payload, err
}

// PayloadSettled reports whether of all journals only settled ones have a payload: its blob was durable then. They go one day.
func (l *Log) PayloadSettled(sum Sum) (is bool) {
	_ = l.view(func(s *state) {
		if _, live := s.payloads[sum]; live {
			return
		}
		if at, ok := s.kept.payload(s.dir, sum); ok {
			is = settled(s.dir, at.gen)
		}
	})
	return is
}

// PayloadStore is where payloads go when their journal does.
type PayloadStore interface {
	// Keep stores payloads, unsynced: the caller makes everything durable with vfs.FS.SyncAll. With durable, each is
	// written anew and synced by itself: for where the system has no such call, or it has failed.
	Keep(payloads iter.Seq[[]byte], durable bool) error
}

var errNoPlace = errors.New("no place for payloads")

// keepPayloads stores the payloads that a journal has. It goes on past a damaged one, and tells of the first of those.
func (l *Log) keepPayloads(j *journal, changes []change, durable bool) (damaged, err error) {
	payloads := slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.kind != KindPayload })
	if len(payloads) == 0 {
		return nil, nil
	}
	if l.opts.Payloads == nil {
		return nil, errNoPlace
	}
	err = l.opts.Payloads.Keep(func(yield func([]byte) bool) {
		for _, c := range payloads {
			_, body, err := j.readWhole(c.off, c.off+c.size())
			var payload []byte
			if err == nil {
				payload, err = parsePayload(body)
			}
			if err != nil {
				damaged = cmp.Or(damaged, err)
			} else if !yield(payload) {
				return
			}
		}
	}, durable)
	return damaged, err
}

// keepAllPayloads is keepPayloads for journals that a rebuild is about to give up.
func (l *Log) keepAllPayloads(journals []*journal, durable bool) error {
	for _, held := range journals {
		j, err := openJournal(l.dir, held.gen, nil)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		n, _ := j.read(maxSeq, nil) // what was read before an error counts; the journal goes to trash
		_, err = l.keepPayloads(j, n.changes, durable)
		if cerr := j.f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
