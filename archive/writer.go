package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

const (
	// rowsSize is the number of bytes of rows that ends a segment, however small its content.
	rowsSize = 256 << 10
	// maxRows is the greatest length of the frame of a segment's rows.
	maxRows = skipHead + rowsSize + 256 + sumSize
)

// Writer makes one pack. The pack has a temporary name until Commit. A Writer holds a frame of messages and one of
// payloads, each plain and compressed, about 5 MiB, beside the compressor. The sorted tables take 20 bytes per message and
// 48 per payload.
//
// A Writer is for one goroutine. After a write error every further call returns that error. A rejected message or
// payload (order, size, form) changes nothing.
type Writer struct {
	fs    vfs.FS
	id    uuid.UUID
	tmp   string
	file  vfs.File
	size  int64 // bytes written
	err   error
	zstd  *zstd.Encoder
	out   []byte
	limit int // FrameSize; less in tests

	content []byte // the envelopes of the segment, each with its newline
	rows    []byte
	start   Row // the first row of the segment
	last    Row
	first   int64 // rows before the segment

	tables
	group group
	known map[Sum]bool // the payloads added so far
}

// Create begins a pack in a folder. End it with Commit or Abort.
func Create(fsys vfs.FS) (*Writer, error) { return CreateWith(fsys, NewCompressor(1)) }

// CreateWith is Create with a compressor that other writers use, too.
func CreateWith(fsys vfs.FS, with *Compressor) (*Writer, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	w := &Writer{
		fs: fsys, id: id, tmp: vfs.TemporaryName(FileName(id)),
		zstd: with.zstd, limit: FrameSize, known: map[Sum]bool{},
	}
	if w.file, err = fsys.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	if err := w.write(appendSkip(nil, kindPack, 0)); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Add adds a message: its envelope without the newline that ends its file. Messages come in the order of line, by the
// bytes of its id, and position. The error wraps [ErrOrder], [ErrFull], vfs.ErrTooLarge, or message.ErrMalformed or
// message.ErrVersion if b is not an envelope on one line. After such an error Add accepts other messages.
func (w *Writer) Add(b []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(b) > MaxMessage {
		return fmt.Errorf("%w: envelope of %d bytes, a pack takes %d", vfs.ErrTooLarge, len(b), MaxMessage)
	}
	if bytes.IndexByte(b, '\n') >= 0 {
		return fmt.Errorf("%w: envelope of several lines", message.ErrMalformed)
	}
	r, err := rowOf(b)
	if err != nil {
		return err
	}
	if len(w.ids) > 0 && w.last.compare(r.Line, r.Position) >= 0 {
		return fmt.Errorf("%w: line %s, position %d after line %s, position %d", ErrOrder, r.Line, r.Position, w.last.Line, w.last.Position)
	}
	if len(w.ids) == MaxCount {
		return fmt.Errorf("%w: %d messages", ErrFull, len(w.ids))
	}
	if len(w.rows) >= rowsSize || len(w.content) > 0 && len(w.content)+len(b)+1 > w.limit {
		if err := w.endSegment(); err != nil {
			return err
		}
	}
	prev := &w.last
	if len(w.rows) == 0 {
		prev, w.start = nil, r
	}
	w.rows = appendRow(w.rows, &r, prev)
	w.content = append(append(w.content, b...), '\n')
	w.addRow(&r)
	w.last = r
	return nil
}

// AddPayload adds a payload, unless it is there, and returns its name. The error wraps [ErrFull] or vfs.ErrTooLarge.
func (w *Writer) AddPayload(b []byte) (Sum, error) {
	sum := SumOf(b)
	switch {
	case w.err != nil:
		return sum, w.err
	case w.known[sum]:
		return sum, nil
	case len(b) > MaxPayload:
		return sum, fmt.Errorf("%w: payload of %d bytes, a pack takes %d", vfs.ErrTooLarge, len(b), MaxPayload)
	case len(w.known) == MaxCount:
		return sum, fmt.Errorf("%w: %d payloads", ErrFull, len(w.known))
	}
	if w.group.full(len(b), w.limit) {
		if err := w.endGroup(); err != nil {
			return sum, err
		}
	}
	w.group.add(sum, b)
	w.known[sum] = true
	return sum, nil
}

// HasPayload reports whether a payload was added.
func (w *Writer) HasPayload(sum Sum) bool { return w.known[sum] }

// ID returns the pack's id, which is the name of its file.
func (w *Writer) ID() uuid.UUID { return w.id }

// Size returns the number of bytes written so far. It excludes data that waits for its frame to fill.
func (w *Writer) Size() int64 { return w.size }

func (w *Writer) write(b []byte) error {
	if w.err != nil {
		return w.err
	}
	n, err := w.file.Write(b)
	w.size += int64(n)
	if err != nil {
		w.err = err
	}
	return err
}

// endSegment writes the pending messages and their rows.
func (w *Writer) endSegment() error {
	if len(w.rows) == 0 {
		return nil
	}
	s := segment{line: w.start.Line, position: w.start.Position, first: w.first, offset: w.size, content: int64(len(w.content))}
	w.out = w.zstd.EncodeAll(w.content, w.out[:0])
	s.packed = int64(len(w.out))
	w.out = appendSkip(w.out, kindRows, len(w.rows)+sumSize)
	w.out = append(w.out, w.rows...)
	w.out = binary.LittleEndian.AppendUint64(w.out, placedSum(w.out[s.packed+8:], w.size+s.packed))
	s.rows = int64(len(w.out)) - s.packed
	if err := w.write(w.out); err != nil {
		return err
	}
	w.segments = append(w.segments, s)
	w.first = int64(len(w.ids))
	w.content, w.rows = keep(w.content), w.rows[:0]
	w.out = keep(w.out)
	return nil
}

// keep empties a buffer and drops one that a large message enlarged.
func keep(b []byte) []byte {
	if cap(b) > 2*FrameSize {
		return nil
	}
	return b[:0]
}

func (w *Writer) endGroup() error {
	if len(w.group.sums) == 0 {
		return nil
	}
	var frame []byte
	if len(w.group.content) > 0 {
		frame = w.zstd.EncodeAll(w.group.content, nil)
	}
	w.out = w.group.append(w.out[:0], frame)
	for i, sum := range w.group.sums {
		w.payloads = append(w.payloads, payload{sum, w.size, int64(len(w.out)), int64(i)})
	}
	w.group.reset()
	return w.write(w.out)
}

// Commit writes pending data and the tables, syncs the pack, renames it, syncs the folder, and returns the pack's size
// in bytes. If Commit fails, the pack does not exist.
//
// Crash order: the file is complete and synced before it has its name, and the name is durable before Commit returns.
// So a file with a pack's name is complete, and a crash leaves at most a temporary name. Callers refer to a pack, or
// remove what it holds, only after Commit.
func (w *Writer) Commit() (size int64, err error) {
	if w.err != nil {
		w.Abort()
		return 0, w.err
	}
	err = errors.Join(w.endSegment(), w.endGroup())
	if err == nil {
		_, err = w.tables.write(w.size, w.write)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		w.Abort()
		return 0, err
	}
	err = w.file.Close()
	w.file = nil
	name := FileName(w.id)
	if err == nil {
		err = w.fs.RenameNew(w.tmp, name)
	}
	if err != nil {
		_ = w.fs.Remove(w.tmp)
		w.err = err
		return 0, err
	}
	if err = w.fs.SyncDir("."); err != nil {
		_ = w.fs.Remove(name) // no index refers to it yet
		w.err = err
		return 0, err
	}
	w.err = fmt.Errorf("pack %s: %w", w.id, os.ErrClosed)
	return w.size, nil
}

// Abort removes the unfinished pack. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.file == nil {
		return
	}
	_ = w.file.Close()
	w.file = nil
	_ = w.fs.Remove(w.tmp)
	if w.err == nil {
		w.err = fmt.Errorf("pack %s: %w", w.id, os.ErrClosed)
	}
}
