package archive

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// Salvage opens a segment with a damaged footer, damaged tables or a missing end. It reads the whole file, trusts no
// table, and makes the tables in memory: blocks and other records describe themselves. Salvage does
// not change the file.
//
// The segment then has the intact messages and records, and the rows of messages that are damaged: to read
// those gives [ErrDamaged]. Its state, and the places where it begins and ends, are those of the file's state; if that is
// damaged too, the error wraps ErrDamaged. It wraps fs.ErrNotExist if there is no file, and [ErrVersion] if the file is
// of another version. Otherwise it is an error of reading the file.
func Salvage(fsys vfs.FS, name string) (*Segment, error) {
	s, err := SalvageRest(fsys, name)
	if err == nil && s.foot.state == 0 {
		_ = s.Close()
		return nil, s.wrap(damaged("no intact footer and no intact state"))
	}
	return s, err
}

// SalvageRest is [Salvage] for a segment whose state may be damaged, too. Then [Segment.State] fails, and where the segment
// begins and ends is zero.
func SalvageRest(fsys vfs.FS, name string) (*Segment, error) {
	f, size, err := openFile(fsys, name)
	if err != nil {
		return nil, err
	}
	s, err := salvage(name, f, size)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	return s, nil
}

func salvage(name string, f vfs.File, size int64) (*Segment, error) {
	if err := checkVersion(f, size); err != nil {
		return nil, err
	}
	s := &scanner{file: f, size: size}
	if err := s.run(); err != nil {
		return nil, err
	}
	file := &withTables{File: f, size: size}
	foot, err := s.write(s.foot, size, func(b []byte) error { file.tables = append(file.tables, b...); return nil })
	if err != nil {
		return nil, err
	}
	salvaged := newSegment(name, file, size, foot)
	salvaged.stateEnd = s.stateEnd
	return salvaged, nil
}

// checkVersion returns ErrVersion if the footer, or else the head, is of another version.
func checkVersion(r io.ReaderAt, size int64) error {
	if size >= footerSize {
		b := make([]byte, footerSize)
		if err := readAt(r, b, size-footerSize); err != nil {
			return err
		}
		if _, err := parseFooter(b, size); err == nil || isVersion(err) {
			return err
		}
	}
	b := make([]byte, min(size, skipHead))
	if err := readAt(r, b, 0); err != nil {
		return err
	}
	if len(b) == skipHead && le.Uint32(b) == skipMagic && otherVersion(b[8:]) {
		return ErrVersion
	}
	return nil
}

// scanner reads a file in sequence. A part counts if its placed sum is right, so that a segment inside a message is not
// taken for a part of this one. A message frame has no such sum: it counts if whole rows follow it, or if it directly
// follows what is known.
type scanner struct {
	file io.ReaderAt
	size int64

	tables
	foot     footer // what is known of it
	stateEnd int64
	last     Row
	known    int64 // where the last known part ends
	frame    part  // the message frame to which the next rows belong
}

func (s *scanner) run() error {
	for at := int64(0); at < s.size; {
		length, err := s.part(at)
		if err != nil {
			return err
		}
		if length == 0 {
			if length, err = s.skip(at); err != nil {
				return err
			}
		}
		at += length
	}
	return nil
}

// part reads the part at an offset and returns its length, or 0 if there is none.
func (s *scanner) part(at int64) (length int64, err error) {
	var head [zstd.HeaderMaxSize]byte
	b := head[:min(int64(len(head)), s.size-at)]
	if err := readAt(s.file, b, at); err != nil || len(b) < skipHead {
		return 0, err
	}
	switch le.Uint32(b) {
	case zstdMagic:
		return s.messages(at, b)
	case skipMagic:
		return s.skippable(at, b)
	}
	return 0, nil
}

// messages reads a message frame. If its rows are damaged, it makes them from the messages.
func (s *scanner) messages(at int64, head []byte) (int64, error) {
	h, err := frameHeader(head)
	var length int64
	if err == nil {
		length, _, err = frameLength(s.file, at, s.size, maxFrame, &h)
	}
	end := at + length
	var next []byte
	if err == nil {
		next, err = s.rowsAt(end)
	}
	switch {
	case isDamage(err) || err == nil && at != s.known && !placed(next, end):
		return 0, nil
	case err != nil:
		return 0, err
	case placed(next, end):
		s.frame = part{at, end}
		return length, nil
	}
	b := make([]byte, length) // at most maxFrame, and within the file
	if err := readAt(s.file, b, at); err != nil {
		return 0, err
	}
	content, err := decode(b, -1, nil)
	if err != nil || !proven(b, content) {
		if isDamage(err) {
			err = nil
		}
		return 0, err
	}
	s.add(block{offset: at, packed: length, content: int64(len(content))}, linesOf(content, 0))
	s.known = end
	return length, nil
}

// rowsAt returns what looks like a frame of rows at an offset.
func (s *scanner) rowsAt(at int64) ([]byte, error) {
	var head [skipHead]byte
	if at+skipHead > s.size {
		return nil, nil
	}
	if err := readAt(s.file, head[:], at); err != nil {
		return nil, err
	}
	length := 8 + int64(le.Uint32(head[4:]))
	if le.Uint32(head[:]) != skipMagic || string(head[8:]) != kindRows || length < skipHead || length > maxRows || at+length > s.size {
		return nil, nil
	}
	b := make([]byte, length) // at most maxRows, and within the file
	return b, readAt(s.file, b, at)
}

func (s *scanner) skippable(at int64, head []byte) (int64, error) {
	length := 8 + int64(le.Uint32(head[4:]))
	most, kind := int64(0), string(head[8:skipHead])
	switch kind {
	case kindRows:
		most = maxRows
	case kindOthers, kindState:
		most = maxOthers
	case kindSegment:
		if at == 0 && length == skipHead {
			s.known = length
			return length, nil
		}
	}
	if length < skipHead || length > s.size-at || length > most {
		return 0, nil
	}
	b := make([]byte, length) // at most maxOthers, and within the file
	if err := readAt(s.file, b, at); err != nil {
		return 0, err
	}
	if !placed(b, at) {
		return 0, nil
	}
	switch kind {
	case kindRows:
		s.rows(at, b)
	default:
		s.records(at, b, kind)
	}
	s.known = at + length
	return length, nil
}

// rows takes rows with the message frame before them. If that is damaged, it is somewhere behind the last known part.
func (s *scanner) rows(at int64, b []byte) {
	rows, _, content, err := parseRowsFrame(b, 0, MaxCount)
	if err != nil {
		return
	}
	from := max(s.known, at-maxFrame)
	switch {
	case content == 0:
		from = at
	case s.frame.to == at:
		from = s.frame.from
	}
	s.add(block{offset: from, packed: at - from, content: content, rows: int64(len(b))}, rows)
}

// add adds a block unless its rows do not come after all rows so far.
func (s *scanner) add(b block, rows []Row) {
	prev := &s.last
	for i := range rows {
		if len(s.ids)+i > 0 && !rows[i].follows(prev) {
			return
		}
		prev = &rows[i]
	}
	if len(rows) == 0 || len(s.ids)+len(rows) > MaxCount {
		return
	}
	b.line, b.position, b.first = rows[0].Line, rows[0].Position, int64(len(s.ids))
	if !b.sane(s.size) {
		return
	}
	s.blocks = append(s.blocks, b)
	for i := range rows {
		s.addRow(&rows[i])
	}
	s.last = rows[len(rows)-1]
}

// records takes a frame of other records, or the state.
func (s *scanner) records(at int64, b []byte, kind string) {
	content, err := decode(b[skipHead:len(b)-sumSize], -1, nil)
	switch {
	case err != nil:
	case kind == kindState:
		if len(content) >= placeSize {
			s.foot.parsePlace(content)
			s.foot.state, s.stateEnd = at, at+int64(len(b))
		}
	default:
		d := rowReader{b: content, ok: true}
		d.take(1)
		seq := uint64(d.uvarint(1 << 62))
		if n := len(s.others); d.ok && len(s.others) < MaxCount && (n == 0 || s.others[n-1].seq < seq) {
			s.others = append(s.others, otherFrame{seq, at, int64(len(b)), int64(len(content))})
		}
	}
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
		for i := range max(len(b)-3, 0) {
			if m := le.Uint32(b[i:]); m == skipMagic || m == zstdMagic {
				return from + int64(i) - at, nil
			}
		}
		if b[len(b)-1] == 0 { // no part begins with a zero byte
			from = max(from, vfs.NextData(s.file, from+int64(len(b)), s.size)-(step-3))
		}
	}
	return s.size - at, nil
}

// withTables is a file with other tables after its end.
type withTables struct {
	vfs.File
	size   int64
	tables []byte
}

func (f *withTables) ReadAt(b []byte, off int64) (int, error) {
	if off >= f.size {
		return bytes.NewReader(f.tables).ReadAt(b, off-f.size)
	}
	return f.File.ReadAt(b, off)
}
