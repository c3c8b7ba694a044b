package archive

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// ScanResult is a result of [Scan]: a message with its row, a row alone, or a payload.
type ScanResult struct {
	Message
	Payload []byte
	Name    *Sum  // of a payload
	Err     error // why the envelope or the payload is missing; wraps ErrDamaged
}

// Scan reads a pack from its beginning and trusts no table: segments and groups of payloads describe themselves. It
// yields intact parts in the order of the file, which for messages is the order of line and position. So a [Writer] can
// make a new pack from them. It yields known but damaged items with Err, and skips unrecognisable parts. After such a
// part, messages count only with intact rows: they could belong to a pack inside a payload. Place has no meaning.
func Scan(fsys vfs.FS, name string) iter.Seq2[ScanResult, error] {
	return func(yield func(ScanResult, error) bool) {
		f, size, err := openDamaged(fsys, name)
		if err != nil {
			yield(ScanResult{}, err)
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
			yield(ScanResult{}, fmt.Errorf("pack %s: %w", name, err))
		}
	}
}

// piece is a segment or a group of payloads that a scanner found.
type piece struct {
	at      segment // of a group, only offset and packed; at.rows is 0 without intact rows
	rows    []Row
	content []byte // of the message frame
	foreign bool   // the frame is not one that packs have
	group   *group
	err     error // why the content, or that of the group, is missing
}

// found yields the items of a piece.
func (p *piece) found() iter.Seq[ScanResult] {
	return func(yield func(ScanResult) bool) {
		for i := range p.rows {
			f := ScanResult{Message: Message{Row: p.rows[i]}, Err: p.err}
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
			f := ScanResult{Name: &p.group.sums[i], Err: p.err}
			if p.err == nil {
				f.Payload, f.Err = p.group.payload(int64(i), *f.Name)
			}
			if !yield(f) {
				return
			}
		}
	}
}

// scanner reads a file in sequence. frame and content are the place and content of a message frame that awaits its
// rows.
//
// After damage, an apparent message frame may be a part of a payload. It counts only if rows follow it whose sum is
// valid at this place in the file.
type scanner struct {
	file    io.ReaderAt
	size    int64
	yield   func(*piece) bool
	stopped bool
	done    int64 // no known part covers the bytes from here on
	lost    bool  // the scanner skipped damage and has met no rows since
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

// part reads the part at an offset and returns its length, or 0 if the length is unknown.
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
		content, err = decode(b, -1, nil)
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
		s.lines() // the rows belong to a frame that was skipped
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

// lines yields the pending message frame, if any, whose rows are missing.
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
	return err == nil // otherwise its length may be wrong too
}

// skip returns the distance from an offset to the next possible part.
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
