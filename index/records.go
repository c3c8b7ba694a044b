package index

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/held"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// journalSet holds the folded journals that still exist: the only durable copy of their messages until these are
// settled, and the fast copy. Each is opened on first read.
type journalSet struct {
	gens  []uint64
	live  uint64 // the live journal is folded up to the record at offset; 0 for none
	last  int64  // that offset
	files openFiles[uint64]

	mu       sync.Mutex
	ids      map[lineID]int64  // positions of the messages in the searched journals
	payloads map[Sum]payloadAt // of the searched journals, too
	records  map[bodyKey]payloadAt
	known    map[uint64]int64 // how far the journals were searched
}

// bodyKey identifies the body of a record.
type bodyKey struct {
	len int64
	sum uint64
}

type lineID struct{ line, id uuid.UUID }

// file returns the file of one of these journals, which the caller releases, or nil for any other.
func (k *journalSet) file(dir *ctxfolder.Dir, gen uint64) *openFile {
	if !slices.Contains(k.gens, gen) {
		return nil
	}
	f, err := k.files.Get(gen, func() (*openFile, error) { return openRegular(dir.FS, ctxfolder.JournalFile(gen)) })
	if err != nil {
		return nil
	}
	return f
}

// find returns the position of a message, according to the journals.
func (k *journalSet) find(dir *ctxfolder.Dir, line, id uuid.UUID) (position int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.search(dir)
	position, ok = k.ids[lineID{line, id}]
	return position, ok
}

// payload returns where a journal has a payload.
func (k *journalSet) payload(dir *ctxfolder.Dir, sum Sum) (at payloadAt, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.search(dir)
	at, ok = k.payloads[sum]
	return at, ok
}

// locate returns where a record is that is not where its entry says: bytes were inserted or removed before it.
func (k *journalSet) locate(dir *ctxfolder.Dir, e *Entry) (at payloadAt, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.search(dir)
	at, ok = k.records[bodyKey{e.Size, e.Sum}]
	return at, ok
}

// search reads each folded record once.
func (k *journalSet) search(dir *ctxfolder.Dir) {
	if k.known == nil {
		k.known, k.ids, k.payloads, k.records = map[uint64]int64{}, map[lineID]int64{}, map[Sum]payloadAt{}, map[bodyKey]payloadAt{}
	}
	for _, gen := range k.gens {
		k.searchUpTo(dir, gen, math.MaxInt64)
	}
	if k.last > 0 {
		k.searchUpTo(dir, k.live, k.last+1)
	}
}

// searchUpTo reads a journal up to an offset, or beyond.
func (k *journalSet) searchUpTo(dir *ctxfolder.Dir, gen uint64, end int64) {
	from := k.known[gen]
	if from >= end {
		return
	}
	found, err := salvage(dir, gen, from)
	if !vfs.IsShortage(err) {
		k.known[gen] = end
	}
	for _, c := range found.changes {
		switch c.kind {
		case KindAppend, KindReplace:
			k.ids[lineID{c.address.Line, c.address.ID}] = c.address.Position
			k.records[bodyKey{c.len, c.sum}] = payloadAt{gen, c.off, c.len, c.sum}
		case KindPayload:
			k.payloads[c.payload] = payloadAt{gen, c.off, c.len, c.sum}
		}
		k.known[gen] = max(k.known[gen], c.off+c.size())
	}
}

// only forgets all journals but those that an index.json says are folded.
func (k *journalSet) only(x *indexFile) {
	k.gens, k.live, k.last = x.retained(), x.Live, x.Offset
	k.files.Clear()
}

// openFiles are files that are read repeatedly.
type openFiles[K comparable] = held.Table[K, *openFile]

type openFile struct {
	held.Use
	vfs.File
}

// openRegular opens a regular file for reading.
func openRegular(fsys vfs.FS, name string) (*openFile, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: name, Err: vfs.ErrNotRegular})
	}
	return &openFile{File: f}, nil
}

// record returns the file of a journal that still exists, which the caller releases, or nil for any other.
func (s *state) record(gen uint64) *openFile {
	for _, j := range s.journals {
		if j.gen == gen {
			return &openFile{File: j.f}
		}
	}
	if f := s.folded.file(s.dir, gen); f != nil {
		return f
	}
	return s.all.file(s.dir, gen)
}

const (
	// maxGap is how far apart two records may be to be read at once, in bytes: less than the cost of a second call.
	maxGap = 16 << 10
	// maxRun is how many bytes are read at once: the copies of the envelopes then come from the processor's cache.
	maxRun = 128 << 10
)

// ReadRecords adds to out the envelopes of entries that it does not have, from the journals that committed them. It
// leaves nil where a record is missing or damaged. It reads neighbours at once.
func (l *Log) ReadRecords(entries []Entry, out [][]byte) {
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.gen != 0 }) {
		return
	}
	_ = l.view(func(s *state) { // the view keeps the files open
		pooled := runBuffers.Get().(*[]byte)
		defer runBuffers.Put(pooled)
		buf := *pooled
		for i := 0; i < len(entries); {
			n := neighbours(entries[i:])
			if f := s.record(entries[i].gen); f != nil {
				buf, _ = readRun(f.File, entries[i:i+n], out[i:i+n], buf)
				f.Release()
				s.readDisplaced(entries[i:i+n], out[i:i+n])
			}
			i += n
		}
		if cap(buf) <= maxRun+window {
			*pooled = buf
		}
	})
}

// runBuffers holds runs of records while their envelopes are copied.
var runBuffers = sync.Pool{New: func() any { return new([]byte) }}

// readDisplaced reads the records of folded journals that are not where their entries say.
func (s *state) readDisplaced(entries []Entry, out [][]byte) {
	for i := range entries {
		if e := entries[i]; out[i] == nil && slices.Contains(s.folded.gens, e.gen) {
			at, _ := s.folded.locate(s.dir, &e)
			if f := s.folded.file(s.dir, at.gen); f != nil {
				e.off = at.off
				_, _ = readRun(f.File, []Entry{e}, out[i:i+1], nil)
				f.Release()
			}
		}
	}
}

// ReadRecord returns the envelope of an entry from its journal or pack. ok is false if neither has it intact.
func (l *Log) ReadRecord(e *Entry) (envelope []byte, ok bool) {
	entry, out := []Entry{*e}, make([][]byte, 1)
	l.ReadPacked(entry, out)
	l.ReadRecords(entry, out)
	return out[0], out[0] != nil
}

// neighbours returns how many of the entries, from the first on, are close together in one journal.
func neighbours(entries []Entry) int {
	first := &entries[0]
	n := 1
	for n < len(entries) {
		e, before := &entries[n], &entries[n-1]
		if e.gen != first.gen || e.off <= before.off || e.off-before.end() > maxGap || e.end()-first.off > maxRun {
			break
		}
		n++
	}
	return n
}

// readRun reads a run of neighbours. It returns the buffer for the next one. It fails if the system could not read, but
// not if the data is damaged.
func readRun(f vfs.File, run []Entry, out [][]byte, buf []byte) ([]byte, error) {
	from, size := run[0].off, run[len(run)-1].end()-run[0].off
	if from < 0 || size < 0 {
		return buf, nil
	}
	if size > maxRun { // do not allocate that much by an unchecked entry
		end, err := vfs.Size(f)
		if size = min(end-from, size); err != nil || size < 0 || vfs.HasHole(f, from, from+size) {
			return buf, err
		}
	}
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	n, err := f.ReadAt(buf[:size], from)
	if err != nil && !errors.Is(err, io.EOF) {
		return buf, err
	}
	buf = buf[:n]
	for i := range run {
		e := &run[i]
		b := buf[min(max(e.off-from, 0), int64(n)):]
		b = b[min(headWidth(b), len(b)):]
		if e.Size >= 0 && e.Size <= int64(len(b)) && bodySum(b[:e.Size]) == e.Sum {
			b = b[:e.Size]
			// Each envelope gets separate memory: a kept one must not keep its neighbours.
			out[i] = slices.Clone(b)
		}
	}
	return buf, nil
}
