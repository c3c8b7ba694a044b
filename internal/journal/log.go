package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Log is an open log. Its reader, and its writer, who holds the lock of the context, call the methods one at a time;
// [Log.SyncTo] may run at the same time as any of them.
type Log struct {
	dir  vfs.FS
	name string
	f    vfs.File
	info fs.FileInfo

	from  Position        // the place from which it goes on
	state json.RawMessage // of the context there; nil if the begin record is damaged
	begin Beginning       // likewise
	first int64           // where the first record after the begin record starts
	torn  bool            // the begin record is, as far as can be told

	at        Position // the place after the last record that was read or written
	end       int64    // where that record ends
	next      string   // the log that continues, from the end record; the log ends with that
	allocated int64    // the file is known to be preallocated up to here
	checked   bool     // the space after end is blank, or was when last read

	sync    *syncer
	suspect *suspectMark

	durable  recordEnd   // every record up to this one is durable; its end is 0 while the begin record may not be
	unproven []recordEnd // the records after it
	covered  bool        // a sync of f covers them
	own      bool        // this process wrote the begin record
}

const (
	prefix = "log-"
	suffix = ".jsonl"
	token  = 8 // hexadecimal digits
)

// NewName returns a name for the log with a number. No other log has it, whatever history it belongs to.
func NewName(number uint64) string {
	var b [token / 2]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:]) + "-" + strconv.FormatUint(number, 10) + suffix
}

// ParseName returns the number of the log with a name. ok is false for other files.
func ParseName(name string) (number uint64, ok bool) {
	s, ok := strings.CutPrefix(name, prefix)
	if ok {
		s, ok = strings.CutSuffix(s, suffix)
	}
	if !ok || len(s) < token+2 || s[token] != '-' {
		return 0, false
	}
	if _, ok := parseHexDigits([]byte(s[:token])); !ok {
		return 0, false
	}
	digits := s[token+1:]
	number, err := strconv.ParseUint(digits, 10, 63)
	return number, err == nil && number > 0 && strconv.FormatUint(number, 10) == digits
}

// ErrBlank means that a log has no record yet. It was preallocated, or a crash tore its first commit.
var ErrBlank = fmt.Errorf("the log has not begun: %w", fs.ErrNotExist)

// Open opens a log of a context's folder and reads its begin record. The error wraps fs.ErrNotExist, [ErrBlank],
// [ErrVersion], or [ErrDamaged] if there is nothing to read. Without a whole begin record, the first record says where the
// log goes on: see [Log.IsTorn].
func Open(dir vfs.FS, name string) (*Log, error) {
	f, err := dir.OpenFile(name, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = dir.OpenFile(name, os.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, name: name, f: f, sync: &syncer{}, suspect: &suspectMark{}}
	if l.info, err = f.Stat(); err == nil && !l.info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %w", ErrDamaged, vfs.ErrNotRegular)
	}
	if err == nil {
		err = l.readBeginning()
	}
	for range again {
		if !errors.Is(err, ErrDamaged) {
			break
		}
		runtime.Gosched()
		err = l.readBeginning()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return l, nil
}

// again is how often a damaged begin record is read once more: its writer may be writing it.
const again = 8

func (l *Log) readBeginning() error {
	size := l.info.Size()
	h, body, err := l.readBody(0, size)
	switch {
	case err == nil && h.Kind == Begin:
		b, err := parseBeginning(body)
		if err != nil {
			return err
		}
		l.from, l.state, l.begin, l.first, l.torn = b.at, b.State, b, h.Size(), false
	case err == nil || errors.Is(err, ErrDamaged):
		if err := l.findBeginning(size); err != nil {
			return err
		}
	default:
		return err
	}
	l.at, l.end, l.allocated = l.from, l.first, size
	l.durable = recordEnd{seq: l.from.Seq}
	return nil
}

// findBeginning begins at the first whole record, since there is no whole begin record.
func (l *Log) findBeginning(size int64) error {
	r := &reader{f: l.f, size: size}
	rec, ok, err := r.whole(0)
	if ok && rec.Kind == Begin { // its writer wrote it meanwhile
		return l.readBeginning()
	}
	if err == nil && !ok {
		rec, ok, err = r.resync(0, 0)
	}
	if err != nil {
		return err
	}
	if ok {
		// A power cut may leave a whole record without the begin record, before a sync covers both. A mark says that one did.
		damaged, err := r.damaged(0, rec, rec.before())
		l.from, l.first, l.torn = Position{rec.before(), rec.Prev}, rec.Off, !damaged
		return err
	}
	torn, err := r.torn(0, size)
	switch {
	case err != nil:
		return err
	case torn:
		return ErrBlank
	}
	return fmt.Errorf("%w: no intact record", ErrDamaged)
}

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

// Name returns the name of the file.
func (l *Log) Name() string { return l.name }

// From returns the place from which the log goes on.
func (l *Log) From() Position { return l.from }

// At returns the place after the last record that was read or written.
func (l *Log) At() Position { return l.at }

// IsTorn reports whether the begin record is missing, and nothing says that it ever was on the disk. Such a log counts where it
// goes on from the end of another one, whose last chain it has; elsewhere it is blank.
func (l *Log) IsTorn() bool { return l.torn }

// State returns the state of the context where the log begins; nil if that is damaged or torn.
func (l *Log) State() json.RawMessage { return l.state }

// Next returns the name of the log that continues this one; empty if none does.
func (l *Log) Next() string { return l.next }

// End returns where the last record that was read or written ends in the file, for [Log.SyncTo].
func (l *Log) End() int64 { return l.end }

// Of returns the context and the store to which the log belongs, as its begin record says; zero if that is damaged.
func (l *Log) Of() (context, store uuid.UUID) { return l.begin.Context, l.begin.Store }

// Len returns the length of the records after the begin record, in bytes.
func (l *Log) Len() int64 { return l.end - l.first }

// Tail says what follows the last whole commit of a log.
type Tail int

// The values of Tail.
const (
	Clean   Tail = iota // blank space
	Torn                // what an interrupted write may have left
	Damaged             // something else
)

// Read calls f for each record after the last known one, and gap where some are missing. A commit of several records
// counts whole, or not at all if it is the last one and torn. Read ends with the end record, for which
// it does not call f.
func (l *Log) Read(f func(Record) error, gap func(lost uint64)) (Tail, error) {
	size, err := vfs.Size(l.f)
	if err != nil {
		return Damaged, err
	}
	r := &reader{f: l.f, size: size}
	defer r.giveBack(r.borrow())
	var commit []Record // a part of one
	end, clean, err := r.scan(l.end, l.at, l.checked, func(rec Record) error {
		if l.next != "" {
			return fmt.Errorf("%w: record %d follows the end of %s", ErrDamaged, rec.Seq, l.name)
		}
		if rec.More {
			rec.Body = bytes.Clone(rec.Body)
			commit = append(commit, rec)
			return nil
		}
		if err := l.takeAll(commit, f); err != nil {
			return err
		}
		commit = nil
		return l.take(rec, f)
	}, gap)
	l.allocated, l.checked = max(l.allocated, size), clean && commit == nil
	if err != nil || l.checked {
		return Clean, err
	}
	if torn, err := r.torn(end, size); err != nil || torn {
		return Torn, err
	}
	return Damaged, l.takeAll(commit, f) // its last record was there
}

func (l *Log) takeAll(records []Record, f func(Record) error) error {
	for _, rec := range records {
		if err := l.take(rec, f); err != nil {
			return err
		}
	}
	return nil
}

// take passes a record on and makes it the last known one.
func (l *Log) take(rec Record, f func(Record) error) error {
	if rec.Kind == End {
		var e ending
		if err := jsonv2.Unmarshal(rec.Body, &e, message.Verbatim...); err != nil {
			return fmt.Errorf("%w: end record: %w", ErrDamaged, err)
		}
		if _, ok := ParseName(e.Next); !ok {
			return fmt.Errorf("%w: %s names the invalid successor %q", ErrDamaged, l.name, e.Next)
		}
		l.next = e.Next
	} else if err := f(rec); err != nil {
		return err
	}
	l.at, l.end = rec.Position(), rec.Off+rec.Size()
	l.pass(recordEnd{rec.Seq, l.end}, rec.Mark)
	return nil
}

// Unchanged reports whether nothing was written since the log was last read or written. One byte shows it: each writer
// begins at the end of the previous record and leaves blank space after its own.
func (l *Log) Unchanged() bool {
	var b [1]byte
	if !l.checked {
		return false
	}
	n, _ := l.f.ReadAt(b[:], l.end)
	return n == 1 && b[0] == '\n'
}

// IsThere reports whether the folder still has this file under its name.
func (l *Log) IsThere() bool {
	is, _ := vfs.IsAt(l.dir, l.name, l.info)
	return is
}

// firstRead is how many bytes of a record are read before its length is known: all of most records.
const firstRead = 2 << 10

// ReadBody returns the body of the record at an offset. The error wraps [ErrDamaged] if there is no whole record.
func (l *Log) ReadBody(off int64) ([]byte, error) {
	size, err := vfs.Size(l.f)
	if err != nil {
		return nil, err
	}
	_, b, err := l.readBody(off, size)
	return b, err
}

func (l *Log) readBody(off, size int64) (Head, []byte, error) {
	h, b, err := l.readRecord(off, size)
	if err != nil {
		return h, nil, err
	}
	b = b[headSize:]
	return h, b[:h.Len:h.Len], nil
}

// readRecord returns a whole record, head included.
func (l *Log) readRecord(off, size int64) (Head, []byte, error) {
	bad := func() error { return fmt.Errorf("%w: %s has no intact record at byte %d", ErrDamaged, l.name, off) }
	b := make([]byte, max(min(size-off, firstRead), 0))
	n, err := l.f.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return Head{}, nil, err
	}
	b = b[:n]
	h, ok := parseHead(b)
	if !ok || off+h.Size() > size || vfs.HasHole(l.f, off, off+h.Size()) { // do not allocate by an unchecked length
		return h, nil, bad()
	}
	if rest := h.Size() - int64(n); rest > 0 {
		b = append(b, make([]byte, rest)...)
		if m, err := l.f.ReadAt(b[n:], off+int64(n)); int64(m) < rest {
			if err != nil && !errors.Is(err, io.EOF) {
				return h, nil, err
			}
			return h, nil, bad()
		}
	}
	b = b[:h.Size():h.Size()]
	if body := b[headSize:]; !ended(body[h.Len:]) || message.Sum(body[:h.Len]) != h.Sum {
		return h, nil, bad()
	}
	return h, b, nil
}

// isBlank reports whether the file has nothing but newlines from an offset to its end.
func (l *Log) isBlank(off int64) (bool, error) {
	size, err := vfs.Size(l.f)
	if err != nil {
		return false, err
	}
	r := &reader{f: l.f, size: size}
	defer r.giveBack(r.borrow())
	return r.blank(off)
}

// recordEnd is where a record ends in its log.
type recordEnd struct {
	seq uint64
	end int64
}

// suspectMark is the file that tells other processes that blocks of the log may not keep what is written to them: a sync since
// this process made the file longer has not succeeded yet, or has failed. Each descriptor has a name of its own, so that
// no process removes the suspect mark of another one.
type suspectMark struct {
	mu   sync.Mutex
	name string // empty if there is none
	left int    // how often the process had a reason for it
}

// pass appends a record to the unproven ones and applies its mark.
func (l *Log) pass(p recordEnd, mark uint64) {
	l.unproven = append(l.unproven, p)
	l.advanceDurable(func(p recordEnd) bool { return p.seq <= mark })
}

// advanceDurable moves the durable records out of unproven.
func (l *Log) advanceDurable(durable func(recordEnd) bool) {
	n := 0
	for n < len(l.unproven) && durable(l.unproven[n]) {
		l.durable = l.unproven[n]
		n++
	}
	l.unproven = l.unproven[n:]
}
