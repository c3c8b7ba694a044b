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
		if at, ok := s.payloads[sum]; ok {
			payload, _ = readPayload(s.record(at.gen), at)
		}
		for _, k := range []*kept{&s.kept, &s.scraps} {
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

// readPayload returns the payload of a record, nil where that is not whole. It fails where the system could not read. It releases the file, which may be
// nil.
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

// errUnread is wrapped when the system could not read something that may be whole.
var errUnread = errors.New("could not be read")

// keepPayloads stores the payloads that a journal has. It goes on past a damaged one, and reports that there was one; past one that the system could not
// read it goes on, too, and fails with errUnread.
func (l *Log) keepPayloads(gen uint64, changes []change, durable bool) (damaged bool, err error) {
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

// keepAllPayloads is keepPayloads, durably, for all journals, whole or not: a rebuild is about to give them up.
func (l *Log) keepAllPayloads() error {
	gens, err := generations(l.dir)
	if err != nil {
		return err
	}
	for _, gen := range gens {
		scrap, _ := readScrap(l.dir, gen) // the journal goes to trash with what cannot be read
		if _, err := l.keepPayloads(gen, scrap.changes, true); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnread) {
			return err
		}
	}
	return nil
}
