package journal

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Record is a whole record of a log.
type Record struct {
	Head
	Off  int64  // in the file
	Body []byte // all of it, or the first bytes of a large one
}

const (
	// window is how many bytes of a log are read at once.
	window = 256 << 10
	// newsWindow is how many are read at once for what others appended: much of it is preallocated space.
	newsWindow = 16 << 10
	// bodyHead is how many bytes of a large body are kept to read its envelope's head.
	bodyHead = 4 << 10
)

// reader reads a file through one buffer.
type reader struct {
	f     vfs.File
	size  int64
	buf   []byte
	at    int64 // of buf[0] in the file
	least int   // bytes to read at once; 0 for window
}

// bytes returns up to n bytes from off, fewer at the end of the file. They are valid until the next call.
func (r *reader) bytes(off int64, n int) ([]byte, error) {
	if off < r.at || off+int64(n) > r.at+int64(len(r.buf)) {
		want := int(min(int64(max(n, cmp.Or(r.least, window))), max(r.size-off, 0)))
		if cap(r.buf) < want {
			r.buf = make([]byte, want)
		}
		r.buf = r.buf[:want]
		m, err := r.f.ReadAt(r.buf, off)
		if err != nil && !errors.Is(err, io.EOF) {
			r.buf = r.buf[:0]
			return nil, err
		}
		r.buf, r.at = r.buf[:m], off
	}
	b := r.buf[off-r.at:]
	return b[:min(n, len(b))], nil
}

// buffers are for readers: most logs are read in one piece.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// borrow gives the reader a used buffer. giveBack returns it when the data read is no longer needed.
func (r *reader) borrow() *[]byte {
	b := buffers.Get().(*[]byte)
	r.buf = (*b)[:0]
	return b
}

func (r *reader) giveBack(b *[]byte) {
	*b = r.buf
	buffers.Put(b)
}

func (r *reader) forget() { r.buf = r.buf[:0] }

// whole reads the record at off. ok reports whether it is whole; its body is valid until the next call.
func (r *reader) whole(off int64) (rec Record, ok bool, err error) {
	b, err := r.bytes(off, headSize)
	if err != nil {
		return rec, false, err
	}
	h, ok := parseHead(b)
	if !ok || h.Len > maxLen || off+h.Size() > r.size {
		return rec, false, nil
	}
	rec = Record{Head: h, Off: off}
	if h.Size() <= window {
		b, err := r.bytes(off, int(h.Size()))
		if err != nil || int64(len(b)) < h.Size() {
			return rec, false, err
		}
		b = b[headSize:]
		rec.Body = b[:h.Len]
		return rec, ended(b[h.Len:]) && message.Sum(rec.Body) == h.Sum, nil
	}
	if vfs.HasHole(r.f, off, off+h.Size()) { // of zeros, which no record holds
		return rec, false, nil
	}
	// Sum a large body piece by piece and keep its first bytes.
	rec.Body = make([]byte, 0, bodyHead)
	d := xxhash.New()
	for done := int64(0); done < h.Len; {
		b, err := r.bytes(off+int64(headSize)+done, int(min(window, h.Len-done)))
		if err != nil || len(b) == 0 {
			return rec, false, err
		}
		rec.Body = append(rec.Body, b[:min(len(b), bodyHead-len(rec.Body))]...)
		_, _ = d.Write(b)
		done += int64(len(b))
	}
	b, err = r.bytes(off+int64(headSize)+h.Len, tailSize)
	return rec, err == nil && ended(b) && d.Sum64() == h.Sum, err
}

// ahead returns the buffered bytes from off on, at least one except at the end of the file. They are valid until the
// next call.
func (r *reader) ahead(off int64) ([]byte, error) {
	if b, err := r.bytes(off, 1); err != nil || len(b) == 0 {
		return nil, err
	}
	return r.buf[off-r.at:], nil
}

// blank reports whether the file has nothing but newlines from off to its end.
func (r *reader) blank(off int64) (bool, error) {
	for {
		b, err := r.ahead(off)
		if err != nil || len(b) == 0 {
			return err == nil, err
		}
		if bytes.Count(b, []byte{'\n'}) < len(b) {
			return false, nil
		}
		off += int64(len(b))
	}
}

// resync finds the next whole record after off that follows the one with a number, or a later one. The newline before it may
// be damaged.
func (r *reader) resync(off int64, seq uint64) (Record, bool, error) {
	mark := []byte(headChain)
	for off++; off < r.size; {
		b, err := r.bytes(off, window)
		if err != nil || len(b) == 0 {
			return Record{}, false, err
		}
		i := bytes.Index(b, mark)
		if i < 0 {
			off += int64(max(len(b)-len(mark)+1, 1))
			if b[len(b)-1] == 0 { // a record holds no zero byte
				off = vfs.NextData(r.f, off, r.size)
			}
			continue
		}
		off += int64(i)
		rec, ok, err := r.whole(off)
		if err != nil {
			return rec, false, err
		}
		if ok && rec.before() >= seq {
			return rec, true, nil
		}
		off++
	}
	return Record{}, false, nil
}

// sector is how many bytes a disk writes whole or not at all.
const sector = 512

// torn reports whether an interrupted write can have left the bytes [from, to) of a log, which hold no whole record
// although they are not blank: whether a sector may be missing. Such a sector still has the newlines of preallocated
// space, or it has zero bytes. Without one, a whole record was damaged. to is where the next whole record begins, or the
// end of the file. That end is where a sector ends or where it was, one byte after the last whole record in a log
// without preallocated space. A write that stopped elsewhere has not written the brace that ends a record.
func (r *reader) torn(from, to int64) (bool, error) {
	if vfs.HasHole(r.f, from, to) {
		return true, nil
	}
	end, last, blank := from, byte(0), false // after the last byte that is not blank, that byte, whether a sector follows
	for at := from; at < to; {
		b, err := r.bytes(at, int(min((at/sector+1)*sector, to)-at))
		if err != nil || len(b) == 0 {
			return false, err
		}
		text := bytes.TrimRight(b, "\n\x00")
		switch {
		case len(text) > 0 && blank:
			return true, nil
		case len(text) > 0:
			end, last = at+int64(len(text)), text[len(text)-1]
		case at+int64(len(b)) < to || to == r.size || to%sector == 0: // else a record begins in this sector
			blank = true
		}
		at += int64(len(b))
	}
	switch {
	case to < r.size:
		return blank, nil
	case end == to:
		return to%sector == 0 || to == from+1, nil
	}
	return end%sector == 0 || last != '}', nil
}

// scan calls f for each whole record from off on, which follows a place. It returns where the last one ends, and whether
// nothing but blank space follows. Whole records may follow a broken one. Either a crash tore the write of several
// records, none of which was acknowledged, and scan ends there. Or there is damage: scan calls gap with the number of
// lost records and continues. known says that only writers have changed what follows off since it was last read.
func (r *reader) scan(
	off int64, at Position, known bool, f func(Record) error, gap func(lost uint64),
) (end int64, clean bool, err error) {
	if known {
		r.least = newsWindow
	}
	for {
		b, err := r.ahead(off)
		if err != nil || len(b) == 0 { // a write leaves blank space after its records
			return off, false, err
		}
		if b[0] == '\n' { // the end, unless a damaged sector looks like it
			if known {
				return off, true, nil
			}
			if blank, err := r.blank(off); err != nil || blank {
				return off, blank, err
			}
		}
		rec, ok, err := r.whole(off)
		if err != nil {
			return off, false, err
		}
		if !ok || rec.before() != at.Seq || rec.Prev != at.Chain {
			if rec, ok, err = r.resume(off, at.Seq); err != nil || !ok {
				return off, false, err
			}
			if lost := rec.before() - at.Seq; lost > 0 && gap != nil {
				gap(lost)
			}
		}
		if err := f(rec); err != nil {
			return off, false, err
		}
		at = rec.Position()
		off = rec.Off + rec.Size()
	}
}

// resume finds the record to continue with when the one at off is not the next whole one. ok is false when none counts.
func (r *reader) resume(off int64, seq uint64) (rec Record, ok bool, err error) {
	next, found, err := r.resync(off, seq)
	if err != nil || !found {
		return rec, false, err
	}
	// A writer may have written during this read. Its record is whole by now, since the record after it is there.
	r.forget()
	if rec, ok, err = r.whole(off); err != nil || ok && rec.before() == seq {
		return rec, ok, err
	}
	if damaged, err := r.damaged(off, next, seq); err != nil || !damaged {
		return rec, false, err
	}
	return r.whole(next.Off)
}

// damaged reports whether the record after seq, in the bytes from off to the whole record next, was durable: no sector
// of it is missing, or a later record has a mark that says so.
func (r *reader) damaged(off int64, next Record, seq uint64) (bool, error) {
	if torn, err := r.torn(off, next.Off); err != nil || !torn {
		return err == nil, err
	}
	for found := true; found; {
		if next.Mark > seq {
			return true, nil
		}
		var err error
		if next, found, err = r.resync(next.Off+next.Size()-1, next.Seq); err != nil {
			return false, err
		}
	}
	return false, nil
}
