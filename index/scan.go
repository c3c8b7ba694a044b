package index

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
)

func bodySum(b []byte) uint64 { return message.Sum(b) }

// tail is what a scan met after the last whole record.
type tail int

const (
	tailBlank tail = iota // newlines
	tailCut               // the end of the file
	tailTorn              // bytes that are no whole record, and none after them
)

// reader reads a file through one buffer.
type reader struct {
	f     vfs.File
	size  int64
	buf   []byte
	at    int64 // of buf[0] in the file
	loose bool  // a record may end in anything: its two checksums prove it
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

// buffers are for readers: most journals are read in one piece.
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
func (r *reader) whole(off int64) (rec record, ok bool, err error) {
	b, err := r.bytes(off, headSize)
	if err != nil {
		return rec, false, err
	}
	h, ok := parseHead(b)
	if !ok || h.len > maxLen || off+h.size() > r.size {
		return rec, false, nil
	}
	rec = record{head: h, off: off}
	if h.size() <= window {
		b, err := r.bytes(off, int(h.size()))
		if err != nil || int64(len(b)) < h.size() {
			return rec, false, err
		}
		b = b[h.width:]
		rec.body = b[:h.len]
		return rec, (r.loose || ended(b[h.len:])) && bodySum(rec.body) == h.sum, nil
	}
	if vfs.HasHole(r.f, off, off+h.size()) { // of zeros, which no record holds
		return rec, false, nil
	}
	// Sum a large body piece by piece and keep its first bytes.
	rec.body = make([]byte, 0, bodyHead)
	d := xxhash.New()
	for done := int64(0); done < h.len; {
		b, err := r.bytes(off+int64(h.width)+done, int(min(window, h.len-done)))
		if err != nil || len(b) == 0 {
			return rec, false, err
		}
		rec.body = append(rec.body, b[:min(len(b), bodyHead-len(rec.body))]...)
		_, _ = d.Write(b)
		done += int64(len(b))
	}
	b, err = r.bytes(off+int64(h.width)+h.len, tailSize)
	return rec, err == nil && (r.loose || ended(b)) && d.Sum64() == h.sum, err
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

// resync finds the next whole record after off with a number above seq. The newline before it may be damaged.
func (r *reader) resync(off int64, seq uint64) (record, bool, error) {
	mark := []byte(headChain)
	for off++; off < r.size; {
		b, err := r.bytes(off, window)
		if err != nil || len(b) == 0 {
			return record{}, false, err
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
		if ok && rec.seq > seq {
			return rec, true, nil
		}
		off++
	}
	return record{}, false, nil
}

// witness reports whether there is proof that a record was acknowledged.
type witness func(record) bool

// torn reports whether an interrupted write left the bytes [from, to) of a journal, which are no whole records. If so,
// nothing after them was acknowledged either. Such a write leaves sectors inside a record that are still preallocated
// newlines, or zero. Neither byte can be in a record, and damage seldom leaves them. A witness of a later record proves
// the contrary.
func (r *reader) torn(from, to int64, seq uint64, acknowledged witness) (bool, error) {
	blank := false
	for at := from; at < to && !blank; {
		b, err := r.bytes(at, int(min(window, to-at)))
		if err != nil || len(b) == 0 {
			return false, err
		}
		at += int64(len(b))
		if at == to {
			b = b[:len(b)-1] // the newline that ends the last record
		}
		blank = bytes.ContainsAny(bytes.ReplaceAll(b, []byte("}\n"+headChain), nil), "\n\x00")
	}
	if !blank || acknowledged == nil {
		return blank, nil
	}
	for {
		rec, found, err := r.resync(to-1, seq)
		if err != nil || !found {
			return true, err
		}
		if acknowledged(rec) {
			return false, nil
		}
		to, seq = rec.off+rec.size(), rec.seq
	}
}

// looksDamaged reports whether the bytes after the last whole record look like a record that was whole once: no sector
// is blank, and they end like a record, or the file ends in the middle of it. A crash leaves the record's end at the
// end of a sector. It leaves the file's end where a sector ends or where it was, one byte on in a journal without more
// preallocated space. A wrong answer costs only the time to look for the message in its file.
func (j *journal) looksDamaged(end int64) bool {
	size, err := j.size()
	if err != nil {
		return false
	}
	most := min(size-end, 16<<20)
	if vfs.HasHole(j.f, end, end+most) {
		return false // there are zero bytes
	}
	b := make([]byte, most)
	n, _ := j.f.ReadAt(b, end)
	b = b[:n]
	text := bytes.TrimRight(b, "\n")
	border := []byte("}\n" + headChain) // between two records
	if len(text) == 0 || bytes.ContainsAny(bytes.ReplaceAll(text, border, nil), "\n\x00") {
		return false
	}
	stop := end + int64(len(text))
	if len(text) == len(b) {
		return size%sector != 0 && size > end+1
	}
	h, ok := parseHead(text)
	return text[len(text)-1] == '}' && (stop%sector != 0 || ok && end+h.size() == stop+1)
}

// sector is how many bytes a disk writes whole or not at all.
const sector = 512

// scan calls f for each whole record of the journal from off on. It returns where the last one ends and what follows
// it. Whole records may follow a broken one. Either a crash tore the write of several records, none of which was
// acknowledged, and scan ends there. Or there is damage: scan calls gap with the number of lost records and continues.
func (j *journal) scan(
	off int64, seq, chain uint64, acknowledged witness, f func(record) error, gap func(lost uint64),
) (int64, tail, error) {
	size, err := j.size()
	if err != nil {
		return off, tailBlank, err
	}
	r := &reader{f: j.f, size: size}
	known := j.checked && off == j.end // nothing but a writer has changed the file since it was read
	if known {
		r.least = newsWindow
	}
	defer r.giveBack(r.borrow())
	for {
		b, err := r.ahead(off)
		if err != nil || len(b) == 0 {
			return off, tailCut, err
		}
		if b[0] == '\n' { // the end, unless a damaged sector looks like it
			if known {
				return off, tailBlank, nil
			}
			if blank, err := r.blank(off); err != nil || blank {
				return off, tailBlank, err
			}
		}
		rec, ok, err := r.whole(off)
		if err != nil {
			return off, tailBlank, err
		}
		if !ok || rec.seq != seq+1 || rec.prev != chain {
			if rec, ok, err = r.resume(off, seq, acknowledged); err != nil || !ok {
				return off, tailTorn, err
			}
			if lost := rec.seq - seq - 1; lost > 0 && gap != nil {
				gap(lost)
			}
		}
		if err := f(rec); err != nil {
			return off, tailBlank, err
		}
		seq, chain = rec.seq, rec.chain
		off = rec.off + rec.size()
	}
}

// resume finds the record to continue with when the one at off is not the next whole one. ok is false when none counts.
func (r *reader) resume(off int64, seq uint64, acknowledged witness) (rec record, ok bool, err error) {
	next, found, err := r.resync(off, seq)
	if err != nil || !found {
		return rec, false, err
	}
	// A writer may have written during this read. Its record is whole by now, since the record after it is there.
	r.forget()
	if rec, ok, err = r.whole(off); err != nil || ok && rec.seq == seq+1 {
		return rec, ok, err
	}
	if torn, err := r.torn(off, next.off, seq, acknowledged); err != nil || torn {
		return rec, false, err
	}
	return r.whole(next.off)
}
