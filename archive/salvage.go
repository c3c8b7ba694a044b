package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// Salvage opens a pack with a damaged footer, damaged tables or a missing end. It reads the whole file, as [Scan] does,
// and rebuilds the tables in memory. They take 5 bytes per message and 50 per segment and payload, and five times that
// during the rebuild. Salvage does not change the file.
//
// The pack holds the results of the scan: intact messages and payloads, and messages of which only the rows are intact.
// Reading the latter gives [ErrDamaged]. If zstd recompressed the file, Salvage compresses the messages again, in
// memory of about the size of the file. It omits messages out of order, which no [Writer] writes. A file without
// recognisable content, even an empty one, gives an empty pack. Verify reports tables that are missing from the file.
//
// The error wraps fs.ErrNotExist, or [ErrVersion] if the footer, or the head of a pack with a damaged footer, is of
// another version. Otherwise it is an error of reading the file.
func Salvage(fsys vfs.FS, name string) (*Pack, error) {
	f, size, err := openDamaged(fsys, name)
	if err != nil {
		return nil, err
	}
	p, err := salvage(name, f, size)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("pack %s: %w", name, err)
	}
	return p, nil
}

// MayHold reports whether a damaged part that [Salvage] and [Scan] cannot identify may hold one of the ids.
func MayHold(fsys vfs.FS, name string, ids map[uuid.UUID]bool) (bool, error) {
	p, err := Open(fsys, name)
	if err != nil {
		if isDamage(err) {
			return true, nil
		}
		return false, err
	}
	defer p.Close() //nolint:errcheck // the file was only read
	for id := range ids {
		for _, err := range p.LookupID(id) {
			if err != nil {
				if isDamage(err) {
					err = nil
				}
				return err == nil, err
			}
		}
	}
	return false, nil
}

func salvage(name string, f vfs.File, size int64) (*Pack, error) {
	if err := checkVersion(f, size); err != nil {
		return nil, err
	}
	t := salvageTables{size: size}
	s := scanner{file: f, size: size, yield: func(p *piece) bool { t.add(p); return true }}
	if err := s.run(); err != nil {
		return nil, err
	}
	// The writer adds no payload twice, but a file that holds a pack in a payload may repeat one.
	slices.SortFunc(t.payloads, func(a, b payload) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	t.payloads = slices.CompactFunc(t.payloads, func(a, b payload) bool { return a.sum == b.sum })
	file := &withTables{File: f, size: size, tables: t.frames}
	foot, err := t.write(size+int64(len(t.frames)), func(b []byte) error { file.tables = append(file.tables, b...); return nil })
	if err != nil {
		return nil, err
	}
	return newPack(name, file, size, foot), nil
}

// checkVersion returns ErrVersion if the footer, or else the head, is of another version.
func checkVersion(r io.ReaderAt, size int64) error {
	if size >= footerSize {
		b := make([]byte, footerSize)
		if err := readAt(r, b, size-footerSize); err != nil {
			return err
		}
		if _, err := parseFooter(b, size); err == nil || errors.Is(err, ErrVersion) {
			return err
		}
	}
	b := make([]byte, min(size, skipHead))
	if err := readAt(r, b, 0); err != nil {
		return err
	}
	if len(b) == skipHead && binary.LittleEndian.Uint32(b) == skipMagic && otherVersion(b[8:]) {
		return ErrVersion
	}
	return nil
}

// salvageTables holds the results of a scan as tables.
type salvageTables struct {
	tables
	size    int64 // of the file
	last    Row
	frames  []byte // of recompressed messages, as if appended to the file
	encoder *zstd.Encoder
}

func (s *salvageTables) add(p *piece) {
	switch {
	case p.group != nil && p.err == nil:
		for i, sum := range p.group.sums {
			if _, err := p.group.payload(int64(i), sum); err == nil && len(s.payloads) < MaxCount {
				s.payloads = append(s.payloads, payload{sum, p.at.offset, p.at.packed, int64(i)})
			}
		}
	case s.follow(p.rows):
		at := p.at
		if p.foreign {
			at = s.compress(p.content)
		}
		at.line, at.position, at.first = p.rows[0].Line, p.rows[0].Position, int64(len(s.ids))
		if !at.sane(s.size + int64(len(s.frames))) {
			return
		}
		s.segments = append(s.segments, at)
		for i := range p.rows {
			s.addRow(&p.rows[i])
		}
		s.last = p.rows[len(p.rows)-1]
	}
}

// compress makes a pack's frame of messages from a frame that does not allow reading a part of it.
func (s *salvageTables) compress(content []byte) segment {
	if s.encoder == nil {
		s.encoder = newEncoder(zstd.SpeedFastest, 1)
	}
	at := segment{offset: s.size + int64(len(s.frames)), content: int64(len(content))}
	s.frames = s.encoder.EncodeAll(content, s.frames)
	at.packed = s.size + int64(len(s.frames)) - at.offset
	return at
}

// follow reports whether rows is not empty, ascends, and comes after all rows so far.
func (s *salvageTables) follow(rows []Row) bool {
	prev := &s.last
	for i := range rows {
		if len(s.ids)+i > 0 && prev.compare(rows[i].Line, rows[i].Position) >= 0 {
			return false
		}
		prev = &rows[i]
	}
	return len(rows) > 0 && len(s.ids)+len(rows) <= MaxCount
}

// withTables is a file with other tables and frames appended after its end.
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
