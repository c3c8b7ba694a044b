package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sort"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Pack is an open pack. It is safe for concurrent use. It caches the last used parts: two decoded frames of up to
// [FrameSize] each, the rows of four segments, and some pages of the tables.
type Pack struct {
	name string
	file vfs.File
	size int64 // of the file
	foot footer

	directory table
	ids       table
	payloads  table

	pages  recent[int64, []byte] // by offset
	rows   recent[int64, *segmentRows]
	frames recent[int64, *frame] // by segment
	groups recent[int64, *group] // by offset
}

// segmentRows is a segment with all its rows.
type segmentRows struct {
	segment
	rows []Row
}

// Open opens a pack in a folder. It reads only the footer, some 100 bytes. The error wraps fs.ErrNotExist, [ErrVersion]
// or [ErrDamaged]. [Salvage] opens a damaged pack.
func Open(fsys vfs.FS, name string) (*Pack, error) {
	f, size, err := openFile(fsys, name)
	if err != nil {
		return nil, err
	}
	p := &Pack{name: name, file: f}
	b := make([]byte, footerSize)
	if size < footerSize {
		err = damaged("%d bytes", size)
	} else if err = readAt(f, b, size-footerSize); err == nil {
		p.foot, err = parseFooter(b, size)
	}
	if err != nil {
		_ = f.Close()
		return nil, p.wrap(err)
	}
	return newPack(name, f, size, p.foot), nil
}

func newPack(name string, f vfs.File, size int64, foot footer) *Pack {
	p := &Pack{name: name, file: f, size: size, foot: foot}
	p.directory, p.ids, p.payloads = foot.layout()
	p.pages.limit, p.rows.limit, p.frames.limit, p.groups.limit = 8, 4, 2, 1
	p.frames.kept, p.frames.evicted = (*frame).take, (*frame).release
	return p
}

func openFile(fsys vfs.FS, name string) (f vfs.File, size int64, err error) {
	if f, err = fsys.OpenFile(name, os.O_RDONLY); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: vfs.ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func (p *Pack) wrap(err error) error { return fmt.Errorf("pack %s: %w", p.name, err) }

// Close closes the file. Running iterators fail.
func (p *Pack) Close() error {
	p.frames.clear()
	return p.file.Close()
}

// Len returns the number of messages.
func (p *Pack) Len() int64 { return p.foot.messages }

// PayloadCount returns the number of payloads.
func (p *Pack) PayloadCount() int64 { return p.foot.payloads }

// Bytes returns the total length of the pack's envelopes.
func (p *Pack) Bytes() int64 { return p.foot.bytes }

// Size returns the length of the pack's file.
func (p *Pack) Size() int64 { return p.size }

// page reads a page of a table and returns its head and its entries.
func (p *Pack) page(t *table, n int64) (head, entries []byte, err error) {
	at, size, _ := t.page(n)
	b, ok := p.pages.get(at)
	if !ok {
		b = make([]byte, size) // of a fixed shape, and within the file
		if err := readAt(p.file, b, at); err != nil {
			return nil, nil, err
		}
		if sum := placedSum(b[:size-sumSize], at); binary.LittleEndian.Uint64(b[size-sumSize:]) != sum {
			return nil, nil, damaged("page at byte %d", at)
		}
		p.pages.put(at, b)
	}
	return b[:t.shape.head], b[t.shape.head : size-sumSize], nil
}

// lastPage returns the last page of a table for which before holds: its first entry does not follow the sought one.
// Without such a page it returns the first page.
func (p *Pack) lastPage(t *table, before func(head, entries []byte) bool) (int64, error) {
	var err error
	n := sort.Search(int(t.pages()), func(i int) bool {
		if err != nil {
			return true
		}
		var head, entries []byte
		if head, entries, err = p.page(t, int64(i)); err != nil {
			return true
		}
		return !before(head, entries)
	})
	return int64(max(n-1, 0)), err
}

// segment reads an entry of the directory and counts the rows of its segment.
func (p *Pack) segment(n int64) (s segment, count int64, err error) {
	next := p.foot.messages
	if n+1 < p.foot.segments {
		after, err := p.entry(n + 1)
		if err != nil {
			return s, 0, err
		}
		next = after.first
	}
	if s, err = p.entry(n); err != nil {
		return s, 0, err
	}
	if !s.sane(p.foot.tables) || s.first >= next {
		return s, 0, damaged("directory entry %d", n)
	}
	return s, next - s.first, nil
}

func (p *Pack) entry(n int64) (segment, error) {
	_, entries, err := p.page(&p.directory, n/directoryShape.each)
	if err != nil {
		return segment{}, err
	}
	return parseSegment(entries[n%directoryShape.each*directoryWidth:]), nil
}

// find returns the number of the last segment for which before holds, or -1.
func (p *Pack) find(before func(*segment) bool) (int64, error) {
	if p.foot.segments == 0 {
		return -1, nil
	}
	page, err := p.lastPage(&p.directory, func(_, entries []byte) bool {
		s := parseSegment(entries)
		return before(&s)
	})
	if err != nil {
		return 0, err
	}
	_, entries, err := p.page(&p.directory, page)
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(entries)/directoryWidth, func(i int) bool {
		s := parseSegment(entries[i*directoryWidth:])
		return !before(&s)
	})
	return page*directoryShape.each + int64(n) - 1, nil
}

func (p *Pack) findPosition(line uuid.UUID, position int64) (int64, error) {
	return p.find(func(s *segment) bool {
		first := Row{Line: s.line, Position: s.position}
		return first.compare(line, position) <= 0
	})
}

// segmentRows returns the rows of a segment. If their frame is damaged, it makes them from the messages.
func (p *Pack) segmentRows(n int64) (*segmentRows, error) {
	if r, ok := p.rows.get(n); ok {
		return r, nil
	}
	s, count, err := p.segment(n)
	if err != nil {
		return nil, err
	}
	rows, err := p.readRows(n, &s, count)
	if isDamage(err) {
		f, ferr := p.frame(n, &s)
		if ferr != nil {
			return nil, fmt.Errorf("%w; %w", err, ferr)
		}
		rows = linesOf(f.content, uint32(n))
		f.release()
		err = s.check(n, rows, count)
	}
	if err != nil {
		return nil, err
	}
	r := &segmentRows{s, rows}
	p.rows.put(n, r)
	return r, nil
}

// check compares the rows of the n-th segment with its directory entry.
func (s *segment) check(n int64, rows []Row, count int64) error {
	if int64(len(rows)) != count || rows[0].compare(s.line, s.position) != 0 {
		return damaged("rows of segment %d differ from the directory", n)
	}
	return nil
}

func (p *Pack) readRows(n int64, s *segment, count int64) ([]Row, error) {
	b := make([]byte, s.rows) // at most maxRows
	if err := readAt(p.file, b, s.offset+s.packed); err != nil {
		return nil, err
	}
	if !isSkip(b, kindRows) || !rowsSummed(b, s.offset+s.packed) {
		return nil, damaged("rows of segment %d", n)
	}
	rows, _, err := parseRows(b[skipHead:len(b)-sumSize], uint32(n), count)
	if err == nil {
		err = s.check(n, rows, count)
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Lookup returns the row of a message. The error wraps [ErrNotFound] or [ErrDamaged].
func (p *Pack) Lookup(line uuid.UUID, position int64) (Row, error) {
	n, err := p.findPosition(line, position)
	if err != nil {
		return Row{}, p.wrap(err)
	}
	if n >= 0 {
		s, err := p.segmentRows(n)
		if err != nil {
			return Row{}, p.wrap(err)
		}
		if i := s.search(line, position); i < len(s.rows) && s.rows[i].compare(line, position) == 0 {
			return s.rows[i], nil
		}
	}
	return Row{}, p.wrap(fmt.Errorf("%w: line %s, position %d", ErrNotFound, line, position))
}

// search returns the number of the first row at or after a position.
func (s *segmentRows) search(line uuid.UUID, position int64) int {
	return sort.Search(len(s.rows), func(i int) bool { return s.rows[i].compare(line, position) >= 0 })
}

// LookupID yields the rows of all messages with an id, in the order of the pack; two lines may each have one. For each
// damaged part that may hold such a row, it yields an error that wraps [ErrDamaged] and continues.
func (p *Pack) LookupID(id uuid.UUID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if p.foot.messages == 0 {
			return
		}
		// Equal ids may begin on the page before the first page that begins with them.
		page, err := p.lastPage(&p.ids, func(head, _ []byte) bool { return bytes.Compare(head, id[:]) < 0 })
		if err != nil {
			yield(Row{}, p.wrap(err))
			return
		}
		for ; page < p.ids.pages(); page++ {
			head, entries, err := p.page(&p.ids, page)
			if err != nil {
				yield(Row{}, p.wrap(err))
				return
			}
			if bytes.Compare(head, id[:]) > 0 {
				return
			}
			for ; len(entries) > 0; entries = entries[idWidth:] {
				tag, number := parseIDEntry(entries)
				if tag != [2]byte(id[14:]) {
					continue
				}
				r, err := p.row(number)
				if err != nil && !yield(Row{}, p.wrap(err)) || err == nil && r.ID == id && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// row returns a row by its number in the pack.
func (p *Pack) row(number int64) (Row, error) {
	if number >= p.foot.messages {
		return Row{}, damaged("id table names row %d of %d", number, p.foot.messages)
	}
	n, err := p.find(func(s *segment) bool { return s.first <= number })
	if err != nil {
		return Row{}, err
	}
	if n < 0 {
		return Row{}, damaged("directory has no row %d", number)
	}
	s, err := p.segmentRows(n)
	if err != nil {
		return Row{}, err
	}
	i := number - s.first
	if i >= int64(len(s.rows)) {
		return Row{}, damaged("segment %d has no row %d", n, i)
	}
	return s.rows[i], nil
}
