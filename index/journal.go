package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// The versions of a journal. A journal/3 has no change records. A metadata record of it commits; before, metadata.json
// did. The records of a journal/1 have no marks. Writers append to a journal/4 only.
const (
	journalVersion = "journal/4"
	journalThree   = "journal/3"
	journalTwo     = "journal/2"
	journalOne     = "journal/1"
)

// begin is the body of a journal's first record: the state that the other records continue.
type begin struct {
	Version    string          `json:"ctxdir"`
	Context    uuid.UUID       `json:"context"`
	Store      uuid.UUID       `json:"store"`
	Generation uint64          `json:"generation"`
	Seq        uint64          `json:"seq"`
	Chain      string          `json:"chain"`
	Lines      []Counts        `json:"lines"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	CreatedAt  time.Time       `json:"created_at"`

	chain uint64
}

// place returns the place where the journal begins.
func (b *begin) place() Spot { return Spot{b.Seq, b.chain} }

// encodeBegin returns a journal with only a begin record and blank space.
func encodeBegin(dir *ctxfolder.Dir, gen uint64, at Spot, lines []Counts, metadata json.RawMessage) ([]byte, error) {
	lines = slices.SortedFunc(slices.Values(lines), func(a, b Counts) int { return compareIDs(a.Line, b.Line) })
	body, err := json.Marshal(begin{
		Version: journalVersion, Context: dir.ID, Store: dir.Store, Generation: gen, Seq: at.Seq, Chain: Hex(at.Chain),
		Lines: append([]Counts{}, lines...), Metadata: metadata, CreatedAt: time.Now().UTC(),
	})
	if err != nil {
		return nil, err
	}
	h := head{prev: at.Chain, seq: at.Seq, kind: KindBegin, len: int64(len(body)), sum: bodySum(body)}
	out, _ := appendRecord(nil, h, body)
	return append(out, bytes.Repeat([]byte{'\n'}, space(int64(len(out))))...), nil
}

// decodeBegin parses the body of a begin record of any context.
func decodeBegin(body []byte) (b begin, err error) {
	if err := jsonv2.Unmarshal(body, &b, message.Verbatim...); err != nil {
		return b, fmt.Errorf("%w: begin record: %w", ErrDamaged, err)
	}
	if !slices.Contains([]string{journalVersion, journalThree, journalTwo, journalOne}, b.Version) {
		return b, fmt.Errorf("%w: journal is %q, wanted %q or an earlier version", ctxfolder.ErrVersion, b.Version, journalVersion)
	}
	if b.Seq > maxSeq {
		return b, fmt.Errorf("%w: begin record has the impossible number %d", ErrDamaged, b.Seq)
	}
	for _, c := range b.Lines {
		if !c.sane() {
			return b, fmt.Errorf("%w: begin record has impossible counts %+v of line %s", ErrDamaged, c, c.Line)
		}
	}
	if b.chain, err = parseHexString(b.Chain); err != nil {
		err = fmt.Errorf("%w: begin record: %w", ErrDamaged, err)
	}
	return b, err
}

// parseBegin parses the body of the begin record of a context's journal.
func parseBegin(body []byte, dir *ctxfolder.Dir, generation uint64) (begin, error) {
	b, err := decodeBegin(body)
	if err != nil {
		return b, err
	}
	if b.Context != dir.ID || b.Store != dir.Store || b.Generation != generation {
		return b, fmt.Errorf("%w: journal %d is of context %s in store %s, generation %d",
			ErrDamaged, generation, b.Context, b.Store, b.Generation)
	}
	return b, nil
}

// journal is an open journal file.
type journal struct {
	gen       uint64
	dir       *ctxfolder.Dir
	f         vfs.File
	info      fs.FileInfo
	begin     begin
	first     int64 // where the first record after the begin record starts
	end       int64 // after the last whole record that was read or written
	last      int64 // where that record begins; 0 for the begin record
	allocated int64 // the file is known to be preallocated up to here
	replaced  int64 // after the last record that replaces something: a message, or the metadata
	seq       uint64
	chain     uint64 // of the last record before end

	checked bool  // the space after end is blank, or was when last read
	tornAt  int64 // an interrupted write left what follows this offset: no file proves otherwise
	sync    *syncer
	doubt   *doubt

	// See durable.go. Log.advance guards these fields.
	durable  recordEnd   // every record up to this one is durable; its end is 0 while the begin record may not be
	unproven []recordEnd // the records after it
	covered  bool        // a sync of f covers them
}

// record is a whole record of a journal.
type record struct {
	head
	off  int64
	body []byte // all of it, or the first bytes of a large one
}

const (
	// window is how many bytes of a journal are read at once.
	window = 256 << 10
	// newsWindow is how many are read at once for what others appended: much of it is preallocated space.
	newsWindow = 16 << 10
	// bodyHead is how many bytes of a large body are kept to read its envelope's head.
	bodyHead = 4 << 10
)

// openJournal opens a journal and reads its begin record. If that record is damaged, the error wraps ErrDamaged. If one
// of held has the file open already, openJournal reuses it: commits may be waiting for its sync.
func openJournal(dir *ctxfolder.Dir, generation uint64, held []*journal) (*journal, error) {
	name := ctxfolder.JournalFile(generation)
	for _, h := range held {
		if h.gen != generation {
			continue
		}
		if h.exists(dir) != nil {
			break
		}
		j := &journal{gen: generation, dir: dir, f: h.f, sync: h.sync, doubt: h.doubt, covered: h.covered}
		if err := j.readBegin(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return j, nil
	}
	f, err := dir.FS.OpenFile(name, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = dir.FS.OpenFile(name, os.O_RDONLY)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !regular(dir, name) {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	j := &journal{gen: generation, dir: dir, f: f, sync: &syncer{}, doubt: &doubt{}}
	err = j.readBegin(dir)
	if errors.Is(err, ErrDamaged) {
		if j.unbegun() {
			return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}, f.Close())
		}
		err = j.readBegin(dir) // a writer may have begun it in between
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return j, nil
}

// unbegun reports whether a journal is preallocated and its begin record is missing, or torn by a crash. Such a journal
// holds no record and counts as missing.
func (j *journal) unbegun() bool {
	size, err := j.size()
	if err != nil || size == 0 {
		return false
	}
	found := false
	err = eachRecord(j.f, 0, func(rec record) bool {
		found = rec.kind != KindBegin
		return !found
	})
	if err != nil || found {
		return false
	}
	torn, err := (&reader{f: j.f, size: size}).torn(0, size)
	return err == nil && torn
}

func (j *journal) readBegin(dir *ctxfolder.Dir) error {
	info, err := j.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %w", ErrDamaged, vfs.ErrNotRegular)
	}
	j.info = info
	h, body, err := j.readWhole(0, info.Size())
	if err != nil {
		return err
	}
	if h.kind != KindBegin {
		return fmt.Errorf("%w: its first record is not a begin record", ErrDamaged)
	}
	if j.begin, err = parseBegin(body, dir, j.gen); err != nil {
		return err
	}
	j.first, j.end, j.allocated = h.size(), h.size(), info.Size()
	j.seq, j.chain = j.begin.Seq, j.begin.chain
	j.durable = recordEnd{seq: j.begin.Seq}
	return nil
}

// skipFolded moves to the end of the records that have rows, if the journal has the last one where index.json says.
// index.json counts a record only when it is durable. Otherwise the journal is read from its beginning.
func (j *journal) skipFolded(x *indexFile) {
	b := make([]byte, headSize)
	n, _ := j.f.ReadAt(b, x.Offset)
	h, ok := parseHead(b[:n])
	end := x.Offset + h.size()
	if x.Offset < j.first || !ok || h.seq != x.Seq || h.chain != x.chain || end > j.allocated {
		return
	}
	j.last, j.end, j.seq, j.chain = x.Offset, end, x.Seq, x.chain
	j.durable = recordEnd{x.Seq, end}
}

// readWhole reads the record at off with its whole body. The error wraps ErrDamaged when the record is not whole.
func (j *journal) readWhole(off, size int64) (head, []byte, error) {
	h, b, err := j.readRecord(off, size)
	if err != nil {
		return h, nil, err
	}
	b = b[h.width:]
	return h, b[:h.len:h.len], nil
}

// firstRead is how many bytes of a record are read before its length is known: all of most records.
const firstRead = 2 << 10

// readRecord is readWhole, but returns the whole record, head included.
func (j *journal) readRecord(off, size int64) (head, []byte, error) {
	bad := func() error {
		return fmt.Errorf("%w: journal %d has no whole record at byte %d", ErrDamaged, j.gen, off)
	}
	b := make([]byte, max(min(size-off, firstRead), 0))
	n, err := j.f.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, nil, err
	}
	b = b[:n]
	h, ok := parseHead(b)
	if !ok || off+h.size() > size || vfs.HasHole(j.f, off, off+h.size()) { // do not allocate by an unchecked length
		return h, nil, bad()
	}
	if rest := h.size() - int64(n); rest > 0 {
		b = append(b, make([]byte, rest)...)
		if m, err := j.f.ReadAt(b[n:], off+int64(n)); int64(m) < rest {
			if err != nil && !errors.Is(err, io.EOF) {
				return h, nil, err
			}
			return h, nil, bad()
		}
	}
	b = b[:h.size():h.size()]
	if body := b[h.width:]; !ended(body[h.len:]) || bodySum(body[:h.len]) != h.sum {
		return h, nil, bad()
	}
	return h, b, nil
}

// exists fails with fs.ErrNotExist when the journal is no longer in the folder. A caller that found no next journal
// must ask. Journals go in order of their numbers: while this one exists, there was no next one. If this one has gone,
// a next one may have existed and gone too.
func (j *journal) exists(dir *ctxfolder.Dir) error {
	name := ctxfolder.JournalFile(j.gen)
	now, err := vfs.LstatNumbers(dir.FS, name)
	if err == nil && !j.isAt(now[0]) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return err
}

func (j *journal) isAt(now fs.FileInfo) bool { return now != nil && vfs.SameFile(now, j.info) }

// isLast reports whether the folder has the journal and no file of the next one: see exists. A file of the next one may
// be blank.
func (j *journal) isLast(dir *ctxfolder.Dir) bool {
	now, err := vfs.LstatNumbers(dir.FS, ctxfolder.JournalFile(j.gen+1), ctxfolder.JournalFile(j.gen))
	return err == nil && now[0] == nil && j.isAt(now[1])
}

// size returns the current length of the file.
func (j *journal) size() (int64, error) { return vfs.Size(j.f) }

// isFull reports whether a record that ends at end leaves no preallocated space. Another process may have extended the
// file.
func (j *journal) isFull(end int64) bool {
	if end >= j.allocated {
		if size, err := j.size(); err == nil {
			j.allocated = size
		}
	}
	return end >= j.allocated
}

// unchanged reports whether nothing was written since the journal was last read or written. One byte shows it: each
// writer begins at the end of the previous record and leaves blank space after its own.
func (j *journal) unchanged() bool { return j.checked && j.endsBlank() }

// endsBlank reports whether no record follows the last known one.
func (j *journal) endsBlank() bool {
	var b [1]byte
	n, _ := j.f.ReadAt(b[:], j.end)
	return n == 1 && b[0] == '\n'
}

// blankBehind reports whether the file has nothing but newlines from off to its end.
func (j *journal) blankBehind(off int64) (bool, error) {
	size, err := j.size()
	if err != nil {
		return false, err
	}
	r := &reader{f: j.f, size: size}
	defer r.giveBack(r.borrow())
	return r.blank(off)
}

// maxSpace bounds how many bytes are preallocated at once. An append that makes the file longer waits for the file
// system's journal, so that it is slower than the others. With half of this, one append in 85 does, and with the long
// messages they were more than one in a hundred: the 99th percentile was 1.3 times SQLite's instead of 0.9. Opening a
// context reads the space, at 10 GB/s.
const maxSpace = 512 << 10

// page is how many bytes a file system writes whole or not at all, or a part of that number.
const page = 4 << 10

// space returns how many newlines to preallocate after a journal that will end at end. It doubles the journal, within
// bounds: a small context's journal stays small, and a large one seldom changes its size. It fills the last page: a
// crash that takes back a later write's growth of the file then leaves the file's end there, too (see torn).
func space(end int64) int {
	laid := end + min(max(end, page), maxSpace)
	return int((laid+page-1)/page*page - end)
}
