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
// damaged is yielded with Err. Parts of the file that hold nothing that could be recognised are passed over.
//
// The error is one of reading the file, and ends it. Memory is bounded by the largest frame; a hostile file can make it read the same
// bytes many times.
func Scan(fsys vfs.FS, name string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		f, size, err := openFile(fsys, name)
		if err != nil {
			yield(Found{}, err)
			return
		}
		defer f.Close()
		s := scanner{file: f, size: size, yield: yield}
		if err := s.run(); err != nil {
			yield(Found{}, fmt.Errorf("pack %s: %w", name, err))
		}
	}
}

// scanner goes through a file. content is what the last message frame holds, while its rows were not met.
//
// Behind damage, what looks like a message frame may be a part of a payload. It counts only with rows behind it whose sum is for this
// place in the file.
type scanner struct {
	file    io.ReaderAt
	size    int64
	yield   func(Found, error) bool
	stopped bool
	lost    bool // damage was passed over, and no rows were met since
	segment uint32
	content []byte
	err     error // of the last message frame, if it is damaged
}

func (s *scanner) found(f Found) {
	if !s.stopped && !s.yield(f, nil) {
		s.stopped = true
	}
}

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
	var length int64
	if err == nil {
		length, _, err = frameLength(s.file, at, s.size, &h)
	}
	var content []byte
	if err == nil {
		b := make([]byte, length) // it lies within the file
		if err := readAt(s.file, b, at); err != nil {
			return 0, err
		}
		content, err = decode(b, -1)
	}
	if err != nil && !isDamage(err) {
		return 0, err
	}
	if s.content != nil {
		s.lines()
	}
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
	rows, size, err := parseRows(b[skipHead:len(b)-sumSize], s.segment, MaxCount)
	if err != nil {
		return false
	}
	if s.content != nil && size != int64(len(s.content)) {
		s.lines() // they belong to a frame that was passed over
	}
	content, err := s.content, s.err
	s.lost = false
	if content == nil && err == nil {
		err = damaged("the message frame is missing")
	}
	s.content, s.err = nil, nil
	for i := range rows {
		f := Found{Message: Message{Row: rows[i]}}
		if content != nil {
			f.Envelope, f.Err = envelope(&rows[i], content)
		} else {
			f.Err = err
		}
		s.found(f)
	}
	s.segment++
	return true
}

// lines yields the messages of a frame whose rows are not there.
func (s *scanner) lines() {
	if s.lost {
		s.content = nil
	}
	rows := linesOf(s.content, s.segment)
	for i := range rows {
		f := Found{Message: Message{Row: rows[i]}}
		f.Envelope, f.Err = envelope(&rows[i], s.content)
		s.found(f)
	}
	s.content, s.err = nil, nil
}

func (s *scanner) payloads(b []byte, _ int64) bool {
	g, err := parseGroup(b)
	for i := range g.sums {
		f := Found{Name: &g.sums[i], Err: err}
		if err == nil {
			f.Payload, f.Err = g.payload(int64(i), g.sums[i])
		}
		s.found(f)
	}
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
	}
	return s.size - at, nil
}
