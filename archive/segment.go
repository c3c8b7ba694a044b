package archive

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Segment is an open segment. It is safe for concurrent use. It caches some pages of its tables. All segments together cache
// the decoded frames, of up to [FrameSize] each, and the rows that were used last.
type Segment struct {
	name   string
	file   vfs.File
	size   int64 // of the file
	foot   footer
	tables [tableCount]table

	stateEnd int64 // of the frame with the state

	pages recent[int64, []byte] // by offset
}

// blockOf is a block of a segment.
type blockOf struct {
	s *Segment
	n int64
}

// The values that all segments together keep: a context has some fifty of them, and a process many contexts. A common frame
// has 128 KiB, and the rows of its messages as much.
var (
	recentFrames = recent[blockOf, *frame]{limit: 64, kept: (*frame).take, evicted: (*frame).release}
	recentRows   = recent[blockOf, *blockRows]{limit: 128}
)

// blockRows is a block with all its rows.
type blockRows struct {
	block
	rows   []Row
	remade bool // from the messages: numbers of records are not known
}

// Open opens a segment in a folder. It reads only the footer, some 200 bytes. The error wraps fs.ErrNotExist,
// [ErrVersion] or [ErrDamaged]. [Salvage] opens a damaged segment.
func Open(fsys vfs.FS, name string) (*Segment, error) {
	f, size, err := openFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var foot footer
	b := make([]byte, footerSize)
	if size < footerSize {
		err = damaged("%d bytes", size)
	} else if err = readAt(f, b, size-footerSize); err == nil {
		foot, err = parseFooter(b, size)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	return newSegment(name, f, size, foot), nil
}

func newSegment(name string, f vfs.File, size int64, foot footer) *Segment {
	s := &Segment{name: name, file: f, size: size, foot: foot}
	s.tables, _ = foot.layout()
	s.stateEnd = foot.tables
	s.pages.limit = 64 // all of most segments
	return s
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

func (s *Segment) wrap(err error) error { return fmt.Errorf("segment %s: %w", s.name, err) }

// Close closes the file. Running iterators fail.
func (s *Segment) Close() error {
	s.forget()
	return s.file.Close()
}

// forget drops what is cached of the segment.
func (s *Segment) forget() {
	recentFrames.clear(func(b blockOf) bool { return b.s == s })
	recentRows.clear(func(b blockOf) bool { return b.s == s })
}

// Context returns the id of the context to which the segment belongs.
func (s *Segment) Context() uuid.UUID { return s.foot.context }

// From returns the place before the first record.
func (s *Segment) From() journal.Position { return s.foot.from }

// To returns the place after the last record.
func (s *Segment) To() journal.Position { return s.foot.to }

// Len returns the number of messages, those that are gone included.
func (s *Segment) Len() int64 { return s.foot.counts[ids] }

// Bytes returns the total length of the segment's envelopes.
func (s *Segment) Bytes() int64 { return s.foot.bytes }

// Size returns the length of the segment's file.
func (s *Segment) Size() int64 { return s.size }

// Spans returns what the segment has of each line, in the order of the lines' ids.
func (s *Segment) Spans() ([]Span, error) { return entries(s, spans, parseSpan) }

// Joints returns the places within the segment at which another one may have ended, in order.
func (s *Segment) Joints() ([]journal.Position, error) { return entries(s, joints, parsePosition) }

// entries returns all entries of a small table.
func entries[T any](s *Segment, table int, parse func([]byte) T) (all []T, err error) {
	t := &s.tables[table]
	for n := range t.pages() {
		_, b, err := s.page(t, n)
		if err != nil {
			return nil, s.wrap(err)
		}
		for ; len(b) > 0; b = b[t.shape.width:] {
			all = append(all, parse(b))
		}
	}
	return all, nil
}

// page reads a page of a table and returns its head and its entries.
func (s *Segment) page(t *table, n int64) (head, entries []byte, err error) {
	at, size, _ := t.page(n)
	b, ok := s.pages.get(at)
	if !ok {
		b = make([]byte, size) // of a fixed shape, and within the file
		if err := readAt(s.file, b, at); err != nil {
			return nil, nil, err
		}
		if sum := placedSum(b[:size-sumSize], at); le.Uint64(b[size-sumSize:]) != sum {
			return nil, nil, damaged("page at byte %d", at)
		}
		s.pages.put(at, b)
	}
	return b[:t.shape.head], b[t.shape.head : size-sumSize], nil
}

// entryOf reads an entry of a table.
func (s *Segment) entryOf(table int, n int64) ([]byte, error) {
	t := &s.tables[table]
	_, b, err := s.page(t, n/t.shape.each)
	if err != nil {
		return nil, err
	}
	return b[n%t.shape.each*t.shape.width:][:t.shape.width], nil
}

// lastPage returns the last page of a table for which before holds: its first entry does not follow the sought one.
// Without such a page it returns the first page.
func (s *Segment) lastPage(t *table, before func(head, entries []byte) bool) (int64, error) {
	var err error
	n := sort.Search(int(t.pages()), func(i int) bool {
		if err != nil {
			return true
		}
		var head, entries []byte
		if head, entries, err = s.page(t, int64(i)); err != nil {
			return true
		}
		return !before(head, entries)
	})
	return int64(max(n-1, 0)), err
}

// block reads an entry of the directory and counts the rows of its block.
func (s *Segment) block(n int64) (b block, count int64, err error) {
	next := s.Len()
	if n+1 < s.tables[directory].count {
		after, err := s.entry(n + 1)
		if err != nil {
			return b, 0, err
		}
		next = after.first
	}
	if b, err = s.entry(n); err != nil {
		return b, 0, err
	}
	if !b.sane(s.foot.tables) || b.first >= next {
		return b, 0, damaged("directory entry %d", n)
	}
	return b, next - b.first, nil
}

func (s *Segment) entry(n int64) (block, error) {
	b, err := s.entryOf(directory, n)
	if err != nil {
		return block{}, err
	}
	return parseBlock(b), nil
}

// find returns the number of the last block for which before holds, or -1.
func (s *Segment) find(before func(*block) bool) (int64, error) {
	t := &s.tables[directory]
	if t.count == 0 {
		return -1, nil
	}
	page, err := s.lastPage(t, func(_, entries []byte) bool {
		b := parseBlock(entries)
		return before(&b)
	})
	if err != nil {
		return 0, err
	}
	_, entries, err := s.page(t, page)
	if err != nil {
		return 0, err
	}
	width := int(t.shape.width)
	n := sort.Search(len(entries)/width, func(i int) bool {
		b := parseBlock(entries[i*width:])
		return !before(&b)
	})
	return page*t.shape.each + int64(n) - 1, nil
}

func (s *Segment) findPosition(line uuid.UUID, position int64) (int64, error) {
	return s.find(func(b *block) bool {
		first := Row{Line: b.line, Position: b.position}
		return first.compare(line, position) <= 0
	})
}

// blockRows returns the rows of a block. If their frame is damaged, it makes them from the messages.
func (s *Segment) blockRows(n int64) (*blockRows, error) {
	if r, ok := recentRows.get(blockOf{s, n}); ok {
		return r, nil
	}
	b, count, err := s.block(n)
	if err != nil {
		return nil, err
	}
	rows, _, err := s.readRows(n, &b, count)
	remade := isDamage(err)
	if remade {
		var other error
		if rows, other = s.remake(n, &b, count); other != nil {
			err = fmt.Errorf("%w; %w", err, other)
		} else {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	r := &blockRows{b, rows, remade}
	recentRows.put(blockOf{s, n}, r)
	return r, nil
}

// packedFrames holds frames while they are decoded.
var packedFrames = sync.Pool{New: func() any { return new([]byte) }}

// frame returns a block's message frame until release.
func (s *Segment) frame(n int64, b *block) (*frame, error) {
	if f, ok := recentFrames.get(blockOf{s, n}); ok {
		return f, nil
	}
	pooled := packedFrames.Get().(*[]byte)
	defer packedFrames.Put(pooled)
	packed := slices.Grow((*pooled)[:0], int(b.packed))[:b.packed] // at most maxFrame, and within the file
	if b.packed <= 2*FrameSize {
		*pooled = packed
	}
	if err := readAt(s.file, packed, b.offset); err != nil {
		return nil, err
	}
	f := framePool.Get().(*frame)
	f.take()
	content, err := f.content[:0], error(nil)
	if b.packed > 0 {
		content, err = decode(packed, b.content, f.content)
	} else if b.content != 0 {
		err = damaged("its messages are missing")
	}
	if err != nil {
		f.release()
		return nil, fmt.Errorf("block %d: %w", n, err)
	}
	if f.content = content; cap(content) <= FrameSize {
		recentFrames.put(blockOf{s, n}, f)
	}
	return f, nil
}

// remake makes the rows of a block from its messages.
func (s *Segment) remake(n int64, b *block, count int64) ([]Row, error) {
	f, err := s.frame(n, b)
	if err != nil {
		return nil, err
	}
	defer f.release()
	var end [4]byte
	if err := readAt(s.file, end[:], max(b.offset+b.packed-4, 0)); err != nil {
		return nil, err
	}
	if !proven(end[:], f.content) {
		return nil, damaged("block %d: its messages differ from what was written", n)
	}
	rows := linesOf(f.content, uint32(n))
	for i := 1; i < len(rows); i++ {
		if !rows[i].follows(&rows[i-1]) {
			return nil, damaged("block %d: its messages are not in order", n)
		}
	}
	return rows, b.check(n, rows, count)
}

// check compares the rows of the n-th block with its directory entry.
func (b *block) check(n int64, rows []Row, count int64) error {
	if int64(len(rows)) != count || rows[0].compare(b.line, b.position) != 0 {
		return damaged("rows of block %d differ from the directory", n)
	}
	return nil
}

// readRows reads the rows of a block, and the sum of its message frame.
func (s *Segment) readRows(n int64, b *block, count int64) (rows []Row, sum uint64, err error) {
	frame := make([]byte, b.rows) // at most maxRows
	if err := readAt(s.file, frame, b.offset+b.packed); err != nil {
		return nil, 0, err
	}
	content := int64(0)
	if err = damaged("rows of block %d", n); placed(frame, b.offset+b.packed) {
		rows, sum, content, err = parseRowsFrame(frame, uint32(n), count)
	}
	if err == nil {
		err = b.check(n, rows, count)
	}
	if err == nil && content != b.content {
		err = damaged("rows of block %d belong to another frame", n)
	}
	if err != nil {
		return nil, 0, err
	}
	return rows, sum, nil
}

// search returns the number of the first row at or after a position.
func (b *blockRows) search(line uuid.UUID, position int64) int {
	return sort.Search(len(b.rows), func(i int) bool { return b.rows[i].compare(line, position) >= 0 })
}
