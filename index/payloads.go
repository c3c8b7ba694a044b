package index

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"unicode/utf8"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/go-json-experiment/json/jsontext"
)

// Sum is the SHA-256 of a payload, which is its name.
type Sum = [32]byte

// The journal takes a small payload as a record before the record of its message, and one sync covers both. Its blob
// follows when there is time, without a sync, and is durable from the settle on.

const payloadBlob = `{"blob":"`

// PayloadItem returns the item that commits a payload.
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

// payloadSum returns the name of the payload in a record whose body begins with b.
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
		return nil, fmt.Errorf("%w: payload record: %w", ErrDamaged, err)
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

// HasPayload reports whether an unfolded journal is known to have a payload. A message that refers to it then needs no
// payload record.
func (l *Log) HasPayload(sum Sum) bool {
	var ok bool
	_ = l.view(func(s *state) { _, ok = s.payloads[sum] })
	return ok
}

// Payload returns a payload from a journal, or nil when none has it. With folded it also searches the folded journals,
// all of which the first search reads, and then the packs. The caller verifies that the payload has that name.
func (l *Log) Payload(sum Sum, folded bool) (payload []byte, err error) {
	defer func() {
		if folded && payload == nil && err == nil {
			payload = l.ArchivedPayload(sum)
		}
	}()
	err = l.view(func(s *state) { // the view keeps the file open
		if at, ok := s.payloads[sum]; ok {
			payload, _ = readPayload(s.record(at.gen), at)
		}
		for _, k := range []*journalSet{&s.folded, &s.all} {
			if payload != nil || !folded {
				return
			}
			if at, ok := k.payload(s.dir, sum); ok {
				payload, _ = readPayload(s.record(at.gen), at)
			}
		}
	})
	return payload, err
}

// PayloadSettled reports whether only settled journals have a payload: its blob was durable, and the journals will go.
func (l *Log) PayloadSettled(sum Sum) (is bool) {
	_ = l.view(func(s *state) {
		if _, live := s.payloads[sum]; live {
			return
		}
		if at, ok := s.folded.payload(s.dir, sum); ok {
			is = settled(s.dir, at.gen)
		}
	})
	return is
}

// PayloadStore receives payloads before their journal goes.
type PayloadStore interface {
	// Keep stores payloads without a sync: the caller makes everything durable with vfs.FS.SyncAll. With durable, Keep
	// writes and syncs each one anew, for systems without such a call and after that call failed.
	Keep(payloads iter.Seq[[]byte], durable bool) error
}

var errNoPlace = errors.New("the log was opened without a payload store")

// readPayload returns the payload of a record, nil if the record is not whole. It fails only if the system could not
// read. It releases the file, which may be nil.
func readPayload(f *openFile, at payloadAt) (payload []byte, err error) {
	if f == nil {
		return nil, nil
	}
	defer f.Release()
	var body [1][]byte
	_, err = readRun(f.File, []Entry{{Size: at.len, Sum: at.sum, off: at.off}}, body[:], nil)
	if body[0] != nil {
		payload, _ = parsePayload(body[0])
	}
	return payload, err
}

// errUnread reports data that the system could not read and that may be whole.
var errUnread = errors.New("could not be read")

// storePayloads stores the payloads of a journal. It continues after a damaged payload and reports it. After a payload
// that the system could not read it continues, too, and fails with errUnread.
func (l *Log) storePayloads(gen uint64, changes []change, durable bool) (damaged bool, err error) {
	payloads := slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.kind != KindPayload })
	if len(payloads) == 0 {
		return false, nil
	}
	if l.opts.Payloads == nil {
		return false, errNoPlace
	}
	f, err := openRegular(l.dir.FS, ctxfolder.JournalFile(gen))
	if err != nil {
		return false, err
	}
	defer f.Close()
	var unread error
	err = l.opts.Payloads.Keep(func(yield func([]byte) bool) {
		for _, c := range payloads {
			payload, err := readPayload(&openFile{File: f.File}, payloadAt{gen, c.off, c.len, c.sum})
			if err != nil && !errors.Is(err, io.EOF) {
				unread = fmt.Errorf("payload %w: %w", errUnread, err)
				continue
			}
			if damaged = damaged || payload == nil; payload != nil && !yield(payload) {
				return
			}
		}
	}, durable)
	return damaged, cmp.Or(err, unread)
}

// storeAllPayloads is storePayloads with durable, for all journals, whole or not: a rebuild is about to give them up.
func (l *Log) storeAllPayloads() error {
	gens, err := generations(l.dir)
	if err != nil {
		return err
	}
	for _, gen := range gens {
		found, _ := salvage(l.dir, gen, 0) // unreadable records go to the trash with the journal
		if _, err := l.storePayloads(gen, found.changes, true); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnread) {
			return err
		}
	}
	return nil
}
