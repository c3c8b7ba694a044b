package archive

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// Found is what [Scan] finds: a message with its row, a row alone, or a payload.
type Found struct {
	Message
	Payload []byte
	Name    *Sum  // of a payload
	Err     error // why there is no envelope or no payload; wraps ErrDamaged
}

// Scan reads a pack from its beginning and believes no table: segments and groups of payloads describe themselves. It yields what is whole, in
// the order of the file, which is that of line and position for messages, so a [Writer] can make a new pack from it. What is known of and
// damaged is yielded with Err. Parts of the file that hold nothing that could be recognised are passed over; behind one, messages count only with rows
// that are whole, since they could be those of a pack in a payload. The rows' Place means nothing.
//
// The error is one of reading the file, and ends it. Memory is bounded by the largest frame; a hostile file can make it read the same
// bytes many times.
func Scan(fsys vfs.FS, name string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		f, size, err := openDamaged(fsys, name)
		if err != nil {
			yield(Found{}, err)
			return
		}
		defer f.Close()
		s := scanner{file: f, size: size, yield: func(p *piece) bool {
			for f := range p.found() {
				if !yield(f, nil) {
					return false
				}
			}
			return true
		}}
		if err := s.run(); err != nil {
			yield(Found{}, fmt.Errorf("pack %s: %w", name, err))
		}
	}
}

// piece is a segment or a group of payloads that a scanner finds.
type piece struct {
	at      segment // of a group, offset and packed alone. Without rows that are whole, at.rows is 0
	rows    []Row
	content []byte // of the message frame
	foreign bool   // the frame is not of the kind that packs have
	group   *group
	err     error // why there is no content, or none of the group
}

// found yields what a piece holds.
func (p *piece) found() iter.Seq[Found] {
	return func(yield func(Found) bool) {
		for i := range p.rows {
			f := Found{Message: Message{Row: p.rows[i]}, Err: p.err}
			if p.err == nil {
				f.Envelope, f.Err = envelope(&p.rows[i], p.content)
			}
			if !yield(f) {
				return
			}
		}
		if p.group == nil {
			return
		}
		for i := range p.group.sums {
			f := Found{Name: &p.group.sums[i], Err: p.err}
			if p.err == nil {
				f.Payload, f.Err = p.group.payload(int64(i), *f.Name)
			}
			if !yield(f) {
				return
			}
		}
	}
}

// scanner goes through a file. frame is where the last message frame lies, and content what it holds, while its rows were not met.
//
// Behind damage, what looks like a message frame may be a part of a payload. It counts only with rows behind it whose sum is for this
// place in the file.
type scanner struct {
	file    io.ReaderAt
	size    int64
	yield   func(*piece) bool
	stopped bool
	done    int64 // what begins here is not known to belong to a part
	lost    bool  // damage was passed over, and no rows were met since
	frame   segment
	content []byte
	err     error // of the last message frame, if it is damaged

	recompressed bool // the file begins with a frame, as another program writes it
}

func (s *scanner) found(p *piece) { s.stopped = s.stopped || !s.yield(p) }

func (s *scanner) run() error {
	for at := int64(0); at < s.size && !s.stopped; {
		length, err := s.part(at)
		if err != nil {
			return err
		}
		if length == 0 {
			if s.content != nil {
				s.lines()
			}
			s.lost = true
			if length, err = s.skip(at); err != nil {
				return err
			}
		} else if s.content == nil {
			s.done = at + length
		}
		at += length
	}
	s.lines()
	return nil
}

// part reads what begins at a byte and returns its length, 0 where it cannot be told.
func (s *scanner) part(at int64) (length int64, err error) {
	var head [zstd.HeaderMaxSize]byte
	b := head[:min(int64(len(head)), s.size-at)]
	if err := readAt(s.file, b, at); err != nil || len(b) < 8 {
		return 0, err
	}
	switch binary.LittleEndian.Uint32(b) {
	case zstdMagic:
		return s.messages(at, b)
	case skipMagic:
		return s.skippable(at, b)
	}
	return 0, nil
}

// messages reads a message frame.
func (s *scanner) messages(at int64, head []byte) (int64, error) {
	h, err := frameHeader(head)
	s.recompressed = s.recompressed || at == 0 // a pack begins with its head
	if s.recompressed && (err != nil || !h.HasFCS || h.FrameContentSize > FrameSize) && h.Decode(head) == nil && h.DictionaryID == 0 {
		return s.foreign(at, &h)
	}
	var length int64
	if err == nil {
		length, _, err = frameLength(s.file, at, s.size, maxFrame, &h)
	}
	var content []byte
	if err == nil {
		b := make([]byte, length) // at most maxFrame, and within the file
		if err := readAt(s.file, b, at); err != nil {
			return 0, err
		}
		content, err = decode(b, -1)
	}
	if err != nil && !isDamage(err) {
		return 0, err
	}
	s.lines()
	s.frame = segment{offset: at, packed: length, content: int64(len(content))}
	s.content, s.err = content, err
	if err != nil {
		return 0, nil // its length may be wrong too
	}
	return length, nil
}

func (s *scanner) skippable(at int64, head []byte) (int64, error) {
	length := 8 + int64(binary.LittleEndian.Uint32(head[4:]))
	if length < skipHead || length > s.size-at || len(head) < skipHead {
		return 0, nil
	}
	var read func(b []byte, at int64) bool
	most := int64(0)
	switch string(head[8:skipHead]) {
	case kindRows:
		read, most = s.rows, maxRows
	case kindPayloads:
		read, most = s.payloads, maxGroup
	case kindPack:
		if at == 0 && length == skipHead {
			return length, nil
		}
	case kindTables:
		return length, nil
	}
	if length > most {
		return 0, nil
	}
	b := make([]byte, length) // at most maxGroup
	if err := readAt(s.file, b, at); err != nil {
		return 0, err
	}
	if !read(b, at) {
		return 0, nil
	}
	return length, nil
}

// rows reads the rows of the message frame before them.
func (s *scanner) rows(b []byte, at int64) bool {
	if !rowsSummed(b, at) {
		return false
	}
	rows, size, err := parseRows(b[skipHead:len(b)-sumSize], 0, MaxCount)
	if err != nil {
		return false
	}
	if s.content != nil && size != int64(len(s.content)) {
		s.lines() // they belong to a frame that was passed over
	}
	p := &piece{at: s.frame, rows: rows, content: s.content, err: s.err}
	if s.content == nil {
		from := max(s.done, at-maxFrame)
		p.at = segment{offset: from, packed: at - from, content: size}
		if p.err == nil {
			p.err = damaged("the message frame is missing")
		}
	}
	p.at.rows = int64(len(b))
	s.content, s.err, s.lost = nil, nil, false
	s.found(p)
	return true
}

// lines yields the message frame whose rows are not there, if there is one.
func (s *scanner) lines() {
	if s.content != nil && !s.lost {
		s.found(&piece{at: s.frame, rows: linesOf(s.content, 0), content: s.content})
		s.done = s.frame.offset + s.frame.packed
	}
	s.content, s.err = nil, nil
}

func (s *scanner) payloads(b []byte, at int64) bool {
	g, err := parseGroup(b)
	s.found(&piece{at: segment{offset: at, packed: int64(len(b))}, group: &g, err: err})
	return err == nil // else its length may be wrong too
}

// skip returns how far behind a byte the next part may begin.
func (s *scanner) skip(at int64) (int64, error) {
	const step = 64 << 10
	b := make([]byte, step)
	for from := at + 1; from < s.size; from += step - 3 {
		b = b[:min(step, s.size-from)]
		if err := readAt(s.file, b, from); err != nil {
			return 0, err
		}
		for i := range b {
			if i+4 > len(b) {
				break
			}
			if m := binary.LittleEndian.Uint32(b[i:]); m == skipMagic || m == zstdMagic {
				return from + int64(i) - at, nil
			}
		}
		if b[len(b)-1] == 0 { // no part begins with a zero byte
			from = max(from, vfs.NextData(s.file, from+int64(len(b)), s.size)-(step-3))
		}
	}
	return s.size - at, nil
}
