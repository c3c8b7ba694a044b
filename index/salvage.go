package index

import (
	"bytes"
	"cmp"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// A record's two checksums prove the record, whatever surrounds it: a damaged begin record, another context's or
// store's begin record, zeroed sectors, other line ends. They do not prove its history, that is, which journal it
// belongs to. A payload needs no history, since its SHA-256 is its name.

// EachPayload yields the payloads in a journal's whole records. read returns one, nil if it cannot be read.
func EachPayload(f vfs.File, yield func(sum Sum, read func() []byte) bool) error {
	return eachRecord(f, 0, func(rec record) bool {
		sum, ok := payloadSum(rec.body)
		if rec.kind != KindPayload || !ok {
			return true
		}
		at := payloadAt{off: rec.off, len: rec.len, sum: rec.sum}
		return yield(sum, func() []byte {
			payload, _ := readPayload(&openFile{File: f}, at)
			return payload
		})
	})
}

// eachRecord yields every whole record of a file from an offset on, in order. It ignores whether they form a chain.
func eachRecord(f vfs.File, from int64, yield func(record) bool) error {
	mark := []byte(headChain)
	for part, err := range vfs.Data(f) {
		if err != nil {
			return err
		}
		_, off, size := part.Outer()
		r := &reader{f: f, size: off + size, loose: true}
		off = max(off, from)
		buf := r.borrow()
		for off < r.size && err == nil {
			var b []byte
			if b, err = r.bytes(off, len(mark)); err != nil || len(b) < len(mark) {
				break
			}
			b = r.buf[off-r.at:]
			i := bytes.Index(b, mark)
			if i < 0 {
				off += int64(len(b) - len(mark) + 1)
				continue
			}
			off += int64(i)
			var rec record
			var ok bool
			if rec, ok, err = r.whole(off); !ok {
				off++
				continue
			}
			if !yield(rec) {
				r.giveBack(buf)
				return nil
			}
			off += rec.size() - tailSize
		}
		r.giveBack(buf)
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeRecords holds the whole records of a journal.
type wholeRecords struct {
	begin   *begin // nil if it is damaged
	changes []change
}

// salvage reads the whole records of a journal from an offset on. Records read before an error count.
func salvage(dir *ctxfolder.Dir, gen uint64, from int64) (s wholeRecords, err error) {
	f, err := openRegular(dir.FS, ctxfolder.JournalFile(gen))
	if err != nil {
		return s, err
	}
	defer f.Close()
	j := &journal{gen: gen, f: f.File}
	err = eachRecord(f.File, from, func(rec record) bool {
		var c change
		if rec.kind == KindBegin {
			s.begin = cmp.Or(s.begin, j.beginOf(rec))
		} else if c.parse(j, rec) == nil {
			s.changes = append(s.changes, c)
		}
		return true
	})
	return s, err
}

// beginOf parses a begin record of any context; it returns nil if the record makes no sense.
func (j *journal) beginOf(rec record) *begin {
	_, body, err := j.readWhole(rec.off, rec.off+rec.size())
	if err != nil {
		body = rec.body
	}
	b, err := decodeBegin(body)
	if err != nil {
		return nil
	}
	return &b
}
