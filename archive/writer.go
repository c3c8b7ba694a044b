package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// commonFrame is how many bytes of messages end a frame: with more, reading one message decodes more, and with fewer,
// segments are larger.
const commonFrame = 128 << 10

// Options says how a segment is written.
type Options struct {
	// With compresses the frames; nil stores them.
	With *Compressor
	// Frame is how many bytes of messages end a frame, at most [FrameSize]; 0 for 128 KiB.
	Frame int
	// Edition is that of the segment's name.
	Edition uint32
}

// Writer makes one segment. The segment has a temporary name until Commit. A Writer holds a frame of messages and one of
// other records, each plain and compressed, beside the compressor. The sorted tables take 20 bytes per message.
//
// A Writer is for one goroutine. After a write error every further call returns that error. A rejected message (order,
// size, form) changes nothing.
type Writer struct {
	fs      vfs.FS
	context uuid.UUID
	edition uint32
	tmp     string
	file    vfs.File
	size    int64 // bytes written
	err     error
	with    *Compressor
	out     []byte
	limit   int // of a frame

	content []byte // the envelopes of the block, each with its newline
	rows    []byte
	start   Row // the first row of the block
	last    Row
	first   int64 // rows before the block

	pending  []byte // records that are not messages
	otherSeq uint64 // of the first of them
	lastSeq  uint64 // of the last of them

	tables
}

// Create begins a segment of a context in a folder. End it with Commit or Abort.
func Create(fsys vfs.FS, context uuid.UUID, o Options) (*Writer, error) {
	w := &Writer{
		fs: fsys, context: context, edition: o.Edition, tmp: vfs.TemporaryName("segment" + End), with: o.With, limit: commonFrame,
	}
	if w.with == nil {
		w.with = NewCompressor(Store, 1)
	}
	if o.Frame > 0 {
		w.limit = min(o.Frame, FrameSize)
	}
	var err error
	if w.file, err = fsys.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	if err := w.write(appendSkip(nil, kindSegment, 0)); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Add adds a message: its row without a place, and its envelope without the newline that ends its file, or nil if it is
// gone. Messages come in the order of line, by the bytes of its id, and position. The caller has checked Size and Sum of
// the row. The error wraps [ErrOrder], [ErrFull], vfs.ErrTooLarge, or message.ErrMalformed if b has several lines. After
// such an error Add accepts other messages.
func (w *Writer) Add(r Row, b []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case len(b) > MaxMessage:
		return fmt.Errorf("%w: an envelope of %d bytes exceeds the limit of %d", vfs.ErrTooLarge, len(b), MaxMessage)
	case bytes.IndexByte(b, '\n') >= 0:
		return fmt.Errorf("%w: the envelope contains a line break", message.ErrMalformed)
	case len(w.ids) > 0 && !r.follows(&w.last):
		return fmt.Errorf("%w: line %s, position %d after line %s, position %d", ErrOrder, r.Line, r.Position, w.last.Line, w.last.Position)
	case len(w.ids) == MaxCount:
		return fmt.Errorf("%w: %d messages", ErrFull, len(w.ids))
	}
	if len(w.rows) >= rowsSize || len(w.content) > 0 && len(w.content)+len(b)+1 > w.limit {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if r.Gone != Here {
		r.Size, r.Sum, r.Payloads, b = 0, 0, 0, nil
	}
	prev := &w.last
	if len(w.rows) == 0 {
		prev, w.start = nil, r
	}
	w.rows = appendRow(w.rows, &r, prev)
	if r.Gone == Here {
		w.content = append(append(w.content, b...), '\n')
	}
	w.addRow(&r)
	w.last = r
	return nil
}

// AddOther adds a record that is not a message. Records come in the order of their numbers.
func (w *Writer) AddOther(o Other) error {
	switch {
	case w.err != nil:
		return w.err
	case len(o.Kind) > maxKind || len(o.Body) > maxOthers/2:
		return fmt.Errorf("%w: a record of %d bytes", vfs.ErrTooLarge, len(o.Body))
	case o.Seq <= w.lastSeq:
		return fmt.Errorf("%w: record %d after record %d", ErrOrder, o.Seq, w.lastSeq)
	}
	if len(w.pending) > 0 && len(w.pending)+len(o.Body) > othersSize {
		if err := w.endOthers(); err != nil {
			return err
		}
	}
	before := w.lastSeq
	if len(w.pending) == 0 {
		before, w.otherSeq = 0, o.Seq
	}
	w.pending = o.append(w.pending, before)
	w.lastSeq = o.Seq
	return nil
}

// AddJoint notes a place within the segment at which another one may have ended.
func (w *Writer) AddJoint(at journal.Position) { w.joints = append(w.joints, at) }

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

// endBlock writes the pending messages and their rows.
func (w *Writer) endBlock() error {
	if len(w.rows) == 0 {
		return nil
	}
	s := block{line: w.start.Line, position: w.start.Position, first: w.first, content: int64(len(w.content))}
	w.out = w.out[:0]
	if len(w.content) > 0 {
		w.out = w.with.appendFrame(w.out, w.content)
	}
	err := w.writeBlock(s, w.rows)
	w.content, w.rows = keep(w.content), w.rows[:0]
	return err
}

// writeBlock writes the message frame in w.out and the rows that belong to it.
func (w *Writer) writeBlock(s block, rows []byte) error {
	s.offset, s.packed = w.size, int64(len(w.out))
	sum := xxhash.Sum64(w.out)
	w.out = appendSkip(w.out, kindRows, sumSize+len(rows)+sumSize)
	w.out = le.AppendUint64(w.out, sum)
	w.out = append(w.out, rows...)
	w.out = le.AppendUint64(w.out, placedSum(w.out[s.packed+8:], w.size+s.packed))
	s.rows = int64(len(w.out)) - s.packed
	if err := w.write(w.out); err != nil {
		return err
	}
	w.blocks = append(w.blocks, s)
	w.first = int64(len(w.ids))
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

func (w *Writer) endOthers() error {
	if len(w.pending) == 0 {
		return nil
	}
	at := w.size
	w.out = appendSummed(w.out[:0], kindOthers, w.with, w.pending, at)
	w.others = append(w.others, otherFrame{w.otherSeq, at, int64(len(w.out)), int64(len(w.pending))})
	w.pending = keep(w.pending)
	err := w.write(w.out)
	w.out = keep(w.out)
	return err
}

// Commit writes pending data, the state of the context after the last record, and the tables; it syncs the segment,
// renames it, and syncs the folder. The segment then has the records between two places. It returns its name and its
// size in bytes. If Commit fails, the segment may exist nevertheless.
//
// Crash order: the file is complete and synced before it has its name, and the name is durable before Commit returns.
// So a file with a segment's name is complete, and a crash leaves at most a temporary name. Callers remove what the
// segment holds only after Commit.
func (w *Writer) Commit(from, to journal.Position, state []byte) (name string, size int64, err error) {
	if w.err == nil && (from.Seq >= to.Seq || len(w.pending) > 0 && w.lastSeq > to.Seq) {
		w.err = fmt.Errorf("%w: records %d to %d", ErrOrder, from.Seq+1, to.Seq)
	}
	if w.err != nil {
		w.Abort()
		return "", 0, w.err
	}
	err = errors.Join(w.endBlock(), w.endOthers())
	foot := footer{context: w.context, from: from, to: to, state: w.size}
	if err == nil {
		err = w.write(appendSummed(nil, kindState, w.with, slices.Concat(foot.place(nil), state), w.size))
	}
	if err == nil {
		_, err = w.tables.write(foot, w.size, w.write)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		w.Abort()
		return "", 0, err
	}
	err = w.file.Close()
	w.file = nil
	as := NameOf(from, to)
	as.Edition = w.edition
	name = as.File()
	if err == nil {
		err = w.fs.Rename(w.tmp, name)
	}
	if err != nil {
		_ = w.fs.Remove(w.tmp)
		w.err = err
		return "", 0, err
	}
	if err = w.fs.SyncDir("."); err != nil {
		_ = w.fs.Remove(name) // no process may rely on it
		w.err = err
		return "", 0, err
	}
	w.err = fmt.Errorf("segment %s: %w", name, os.ErrClosed)
	return name, w.size, nil
}

// Abort removes the unfinished segment. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.file == nil {
		return
	}
	_ = w.file.Close()
	w.file = nil
	_ = w.fs.Remove(w.tmp)
	if w.err == nil {
		w.err = fmt.Errorf("segment: %w", os.ErrClosed)
	}
}

// tables is the content of the tables of a segment. It takes 20 bytes per message.
type tables struct {
	blocks []block
	ids    []idRow // of each row
	spans  []Span
	joints []journal.Position
	others []otherFrame
	bytes  int64 // of the envelopes
}

// idRow is an id and the number of its row.
type idRow struct {
	id  uuid.UUID
	row uint32
}

// addRow adds the table data of the segment's next row.
func (t *tables) addRow(r *Row) {
	t.ids = append(t.ids, idRow{r.ID, uint32(len(t.ids))})
	t.bytes += r.Size
	if n := len(t.spans); n == 0 || t.spans[n-1].Line != r.Line {
		t.spans = append(t.spans, Span{r.Line, r.Position, r.Position + 1, r.ID, r.ID})
	} else {
		t.spans[n-1].add(r)
	}
}

// write sorts the tables and writes their frame at an offset: the tables, then the footer, which write completes.
func (t *tables) write(f footer, at int64, write func([]byte) error) (footer, error) {
	f.counts = [tableCount]int64{
		directory: int64(len(t.blocks)), ids: int64(len(t.ids)), spans: int64(len(t.spans)),
		joints: int64(len(t.joints)), others: int64(len(t.others)),
	}
	f.bytes, f.tables = t.bytes, at
	all, end := f.layout()
	f.size = end + footerSize
	if err := write(appendSkip(nil, kindTables, int(f.size-f.tables-skipHead))); err != nil {
		return f, err
	}
	slices.SortFunc(t.ids, func(a, b idRow) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.row, b.row))
	})
	id := func(b []byte, i int64) []byte { return append(b, t.ids[i].id[:]...) }
	return f, errors.Join(
		all[directory].write(write, nil, func(b []byte, i int64) []byte { return t.blocks[i].append(b) }),
		all[ids].write(write, id, func(b []byte, i int64) []byte { return appendIDEntry(b, &t.ids[i].id, t.ids[i].row) }),
		all[spans].write(write, nil, func(b []byte, i int64) []byte { return t.spans[i].append(b) }),
		all[joints].write(write, nil, func(b []byte, i int64) []byte { return appendPosition(b, t.joints[i]) }),
		all[others].write(write, nil, func(b []byte, i int64) []byte { return t.others[i].append(b) }),
		write(f.append(nil)),
	)
}

// write writes the pages of a table. head appends the head of a page, entry appends an entry.
func (t *table) write(write func([]byte) error, head, entry func(b []byte, i int64) []byte) error {
	var b []byte
	for n := range t.pages() {
		at, _, entries := t.page(n)
		start := len(b)
		first := n * t.shape.each
		if head != nil {
			b = head(b, first)
		}
		for i := first; i < first+entries; i++ {
			b = entry(b, i)
		}
		b = le.AppendUint64(b, placedSum(b[start:], at))
		if len(b) >= FrameSize || n == t.pages()-1 {
			if err := write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}
