package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Item is one record to write.
type Item struct {
	Kind Kind
	Body []byte // one line of JSON
	Was  int64  // of a replace: the size of the previous version
}

// Prepare makes the log ready for a write: its unproven records are covered, and blank space follows the last one. The
// caller holds the lock of the context, has read all records, and says whether what follows them is torn and may go; cut
// receives those bytes before they go. The errors are those of [Log.Cover], and of a sync.
//
// Crash order: a copy of a torn tail is durable first. Until the cut is durable, the next writer finds the same tail
// again; after that it finds blank space.
func (l *Log) Prepare(cut func(tail []byte) error) error {
	if err := l.sync.err(); err != nil {
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	if err := l.Cover(); err != nil {
		return err
	}
	if l.Unchanged() {
		return nil
	}
	blank, err := l.isBlank(l.end)
	if err == nil && !blank {
		err = l.cutTail(cut)
	}
	l.checked = err == nil
	return err
}

// maxTail bounds how much of a torn tail is kept.
const maxTail = 64 << 20

func (l *Log) cutTail(keep func(tail []byte) error) error {
	tail, err := vfs.ReadData(l.f, l.end, maxTail)
	if err == nil && len(tail) > 0 {
		err = keep(tail)
	}
	if err != nil {
		return err
	}
	if err := l.cut(l.end); err != nil {
		return err
	}
	blank := blankSpace(space(l.end))
	l.markSuspect()
	if _, err := l.f.WriteAt(blank, l.end); err != nil {
		return err
	}
	if err := l.SyncTo(l.end); err != nil {
		return err
	}
	l.allocated = l.end + int64(len(blank))
	return nil
}

// cut truncates the log but keeps one byte after a record, which a newline then replaces. A full disk may have no room
// for a new byte, and a log that ends right after a record looks cut short.
func (l *Log) cut(end int64) error {
	if err := l.f.Truncate(end + 1); err != nil {
		return err
	}
	l.allocated = end + 1
	return nil
}

// isFull reports whether a record that ends at end leaves no preallocated space. Another process may have extended the
// file.
func (l *Log) isFull(end int64) bool {
	if end >= l.allocated {
		if size, err := vfs.Size(l.f); err == nil {
			l.allocated = size
		}
	}
	return end >= l.allocated
}

// Write writes records for the items after the last record, in one write, and returns them. The caller holds the lock of
// the context, has called Prepare, and acknowledges nothing before SyncTo(end) returns nil. With group the items belong
// together: all of them are written, or none. Otherwise err may come with the first ones.
//
// Crash order: with durably, there is a suspect mark before the file becomes longer, until a sync has succeeded. A failed write
// is cut off at once, so that the next record follows a whole one. The cut touches nothing that was synced. If the cut
// fails, no sync of this log succeeds any more, and the next writer replaces it.
func (l *Log) Write(items []Item, group, durably bool) (written []Record, end int64, err error) {
	if l.next != "" {
		return nil, l.end, fmt.Errorf("%w: %s has ended", ErrDamaged, l.name)
	}
	records, b := l.encode(items, group)
	n, err := l.write(b, durably)
	if err != nil {
		k := 0
		for !group && k < len(records) && records[k].Off+records[k].Size() <= l.end+int64(n) {
			k++
		}
		records = records[:k]
	}
	for i := range records {
		r := &records[i]
		l.at, l.end = r.Position(), r.Off+r.Size()
		l.pass(recordEnd{r.Seq, l.end}, r.Mark)
	}
	if err != nil {
		l.cutBack()
	}
	return records, l.end, err
}

// encode returns the records of items, and their bytes with room for blank space.
func (l *Log) encode(items []Item, group bool) (records []Record, b []byte) {
	mark, at := l.Durable(), l.at
	size := 0
	for _, it := range items {
		size += headSize + len(it.Body) + tailSize
	}
	if end := l.end + int64(size); end >= l.allocated {
		size += space(end) // write adds it
	}
	b, records = make([]byte, 0, size), make([]Record, 0, len(items))
	for i, it := range items {
		h := Head{Seq: at.Seq, Mark: mark, Prev: at.Chain, Kind: it.Kind, Len: int64(len(it.Body)), Was: it.Was, Sum: message.Sum(it.Body)}
		if it.Kind != End {
			h.Seq++
		}
		if h.More = group && i+1 < len(items); h.More {
			h.Mark = 0
		}
		off := l.end + int64(len(b))
		b = appendRecord(b, &h, it.Body)
		records = append(records, Record{h, off, it.Body})
		at = h.Position()
	}
	return records, b
}

// write writes bytes after the last record, and blank space if they leave none. It returns how many were written.
func (l *Log) write(b []byte, durably bool) (n int, err error) {
	size := len(b)
	if end := l.end + int64(size); l.isFull(end) { // a log without blank space after its last record counts as cut short
		if durably {
			l.markSuspect()
		}
		b = append(b, blankSpace(space(end))...)
	}
	n, err = l.f.WriteAt(b, l.end)
	if n >= size { // at most preallocated space is missing
		l.allocated = max(l.allocated, l.end+int64(n))
		return n, nil
	}
	return n, fmt.Errorf("writing %s: %w", l.name, cmp.Or(err, io.ErrShortWrite))
}

// cutBack removes what a failed write may have left. There may be a rest even where nothing was counted: os.File.WriteAt
// does not count a part before the part that failed.
func (l *Log) cutBack() {
	before := l.allocated
	if err := l.cut(l.end); err != nil {
		l.sync.fail(err)
	} else if l.end < before && l.sync.covers(l.end) {
		l.suspect.remove(l.dir) // the file is not longer; a full disk may have no room for a copy
	}
	_, _ = l.f.WriteAt([]byte{'\n'}, l.end)
}

// Preallocate makes a blank log with room for size bytes, durably. It does not count until it begins.
func Preallocate(dir vfs.FS, name string, size int64) error {
	err := create(dir, name, func(f vfs.File) error {
		_, err := f.Write(blankSpace(int((max(size, page) + page - 1) / page * page)))
		return err
	})
	if err == nil {
		err = dir.SyncDir(".")
	}
	return err
}

// EndWith writes the end record, which names the log that continues, and syncs. The caller holds the lock of the context,
// has called Prepare, and has preallocated that log.
//
// Crash order: the next log is there before its name is. Nothing is written to it before this log is durable, so each of
// its records has all earlier ones before it. Until it begins, it counts as empty.
func (l *Log) EndWith(next string) error {
	body, err := json.Marshal(ending{next})
	if err != nil {
		return err
	}
	_, end, err := l.Write([]Item{{Kind: End, Body: body}}, false, true)
	if err != nil {
		return err
	}
	l.next = next
	return l.SyncTo(end)
}

// BeginAt begins a log at a place: it writes the begin record into the preallocated file, or into a new one if there is
// none. The record becomes durable with the next one. The caller holds the lock of the context.
//
// Crash order: nothing in the log was acknowledged. Whatever a crash leaves of the record, the next writer begins anew.
func BeginAt(dir vfs.FS, name string, b Beginning, at Position) (*Log, error) {
	record, err := b.encode(at)
	if err != nil {
		return nil, err
	}
	if err := begin(dir, name, record); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l, err := Open(dir, name)
	if err != nil {
		return nil, err
	}
	l.checked, l.own = true, true
	return l, nil
}

func begin(dir vfs.FS, name string, record []byte) error {
	content := append(bytes.Clone(record), blankSpace(space(int64(len(record))))...)
	suspects, err := Suspects(dir, name)
	if err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && len(suspects) == 0 && info.Mode().IsRegular() && info.Size() > int64(len(record)) {
		l, err := openBlank(dir, name)
		if err == nil {
			_, err = l.WriteAt(record, 0)
			return errors.Join(err, l.Close())
		}
		if !errors.Is(err, errNotBlank) {
			return err
		}
	}
	if err := create(dir, name, func(f vfs.File) error { _, err := f.Write(content); return err }); err != nil {
		return err
	}
	if err := dir.SyncDir("."); err != nil {
		return err
	}
	for _, name := range suspects {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Start makes the first log of a context, which has a folder for itself, with its first commit. It syncs the log, and not
// its name.
//
// Crash order: nobody knows of the context yet.
func Start(dir vfs.FS, name string, b Beginning, items []Item) error {
	record, err := b.encode(Position{})
	if err != nil {
		return err
	}
	l := &Log{end: int64(len(record))}
	_, first := l.encode(items, true)
	record = append(record, first...)
	return vfs.WriteSynced(dir, name, append(record, blankSpace(space(int64(len(record))))...))
}

var errNotBlank = errors.New("the log is not blank")

func openBlank(dir vfs.FS, name string) (vfs.File, error) {
	f, err := dir.OpenFile(name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	blank, err := (&Log{f: f}).isBlank(0)
	if err == nil && !blank {
		err = errNotBlank
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Number returns the number of the log.
func (l *Log) Number() uint64 {
	n, _ := ParseName(l.name)
	return n
}

// Of reports whether the log says that it belongs to a context of a store.
func (b *Beginning) Of(context, store uuid.UUID) bool {
	return b.Context == context && b.Store == store
}
