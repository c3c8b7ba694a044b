package index

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// The fields of a row, one line, have fixed offsets, so that reading one needs no parser:
//
//	{"check":"01234567","pos":              7,"id":"UUID","size":       812,"at":1795240427441899000,
//	"sum":"0123456789abcdef","gen":         3,"off":     70687,"payloads":    2,"file":"UUID"}
//
// "file" is present if it differs from "id"; in its place "lost" says why there is no message. Spaces fill the row.
const (
	rowCheck = `{"check":"`
	rowPos   = `","pos":`
	rowID    = `,"id":"`
	rowSize  = `","size":`
	rowAt    = `,"at":`
	rowSum   = `,"sum":"`
	rowGen   = `","gen":`
	rowOff   = `,"off":`
	rowBlobs = `,"payloads":`
	rowFile  = `,"file":"`
	rowLost  = `,"lost":"`

	checkWidth = 8
	uuidWidth  = 36
	timeWidth  = 19
	manyWidth  = 5

	atRowPos   = len(rowCheck) + checkWidth
	atRowID    = atRowPos + len(rowPos) + seqWidth
	atRowSize  = atRowID + len(rowID) + uuidWidth
	atRowAt    = atRowSize + len(rowSize) + lenWidth
	atRowSum   = atRowAt + len(rowAt) + timeWidth
	atRowGen   = atRowSum + len(rowSum) + sumWidth
	atRowOff   = atRowGen + len(rowGen) + lenWidth
	atRowBlobs = atRowOff + len(rowOff) + lenWidth
	atRowFile  = atRowBlobs + len(rowBlobs) + manyWidth

	// rowWidth is the width of a row that this program writes. index.json records the width of existing rows.
	rowWidth = 256
)

// appendRow appends the row of an entry, rowWidth bytes.
func appendRow(b []byte, e *Entry) []byte {
	start := len(b)
	b = append(append(b, rowCheck...), "00000000"...)
	b = appendPadded(append(b, rowPos...), e.Position, seqWidth)
	b = appendID(append(b, rowID...), e.ID)
	b = appendPadded(append(b, rowSize...), e.Size, lenWidth)
	b = appendPadded(append(b, rowAt...), e.At, timeWidth)
	b = appendHex(append(b, rowSum...), e.Sum)
	gen, off := int64(e.gen), e.off
	if gen > maxLen || off > maxLen {
		gen, off = 0, 0 // the journal is only the faster of two copies
	}
	b = appendPadded(append(b, rowGen...), gen, lenWidth)
	b = appendPadded(append(b, rowOff...), off, lenWidth)
	b = appendPadded(append(b, rowBlobs...), min(int64(e.Payloads), 99999), manyWidth)
	switch {
	case e.Lost != "":
		// The reason is for people: cut it to fit.
		b = append(b, rowLost...)
		for _, c := range []byte(e.Lost[:min(len(e.Lost), rowWidth-atRowFile-len(rowLost)-3)]) {
			if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
				c = '?'
			}
			b = append(b, c)
		}
		b = append(b, '"')
	case e.File != uuid.Nil && e.File != e.ID:
		b = append(appendID(append(b, rowFile...), e.File), '"')
	}
	b = append(b, '}')
	for len(b)-start < rowWidth-1 {
		b = append(b, ' ')
	}
	b = append(b, '\n')
	check := appendHex(nil, rowSumOf(b[start:]))
	copy(b[start+len(rowCheck):], check[sumWidth-checkWidth:])
	return b
}

// rowSumOf returns the checksum of the bytes after the check.
func rowSumOf(row []byte) uint64 { return xxhash.Sum64(row[atRowPos:]) & 0xffffffff }

func appendID(b []byte, id uuid.UUID) []byte {
	var text [uuidWidth]byte
	t, _ := id.MarshalText()
	copy(text[:], t)
	return append(b, text[:]...)
}

// parseRow parses a row.
func parseRow(b []byte) (Entry, error) {
	bad := func() (Entry, error) {
		return Entry{}, fmt.Errorf("%w: row of the index", ErrDamaged)
	}
	if len(b) != rowWidth || string(b[:len(rowCheck)]) != rowCheck {
		return bad()
	}
	check, ok := parseHexDigits(b[len(rowCheck):atRowPos])
	if !ok || check != rowSumOf(b) {
		return bad()
	}
	// The check proves that these are bytes of appendRow, so the text between the fields needs no look.
	var e Entry
	var gen, payloads int64
	var good [7]bool
	e.Position, good[0] = parsePadded(b[atRowPos+len(rowPos) : atRowID])
	e.Size, good[1] = parsePadded(b[atRowSize+len(rowSize) : atRowAt])
	e.At, good[2] = parsePadded(b[atRowAt+len(rowAt) : atRowSum])
	e.Sum, good[3] = parseHex(b[atRowSum+len(rowSum) : atRowGen])
	gen, good[4] = parsePadded(b[atRowGen+len(rowGen) : atRowOff])
	e.off, good[5] = parsePadded(b[atRowOff+len(rowOff) : atRowBlobs])
	payloads, good[6] = parsePadded(b[atRowBlobs+len(rowBlobs) : atRowFile])
	id, err := uuid.ParseBytes(b[atRowID+len(rowID) : atRowSize])
	if err != nil || good != [7]bool{true, true, true, true, true, true, true} {
		return bad()
	}
	e.ID, e.gen, e.Payloads = id, uint64(gen), int(payloads)
	rest := b[atRowFile:]
	switch {
	case bytes.HasPrefix(rest, []byte(rowFile)):
		e.File, err = uuid.ParseBytes(rest[len(rowFile) : len(rowFile)+uuidWidth])
		if err != nil {
			return bad()
		}
	case bytes.HasPrefix(rest, []byte(rowLost)):
		rest = rest[len(rowLost):]
		e.Lost = string(rest[:max(bytes.IndexByte(rest, '"'), 0)])
	}
	return e, nil
}

// openRowFile opens a line's row file, which the caller releases.
func (s *state) openRowFile(ln *line) (*openFile, error) {
	name := ctxfolder.RowsFile(ln.Line, ln.Rows)
	f, err := s.rows.Get(name, func() (*openFile, error) { return openRegular(s.dir.FS, name) })
	if errors.Is(err, fs.ErrNotExist) || err != nil && !regular(s.dir, name) {
		return nil, fmt.Errorf("%w: the row file of line %s is missing", ErrDamaged, ln.Line)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// hasRows fails if a line's row file has fewer rows.
func hasRows(f *openFile, ln *line, rows int64) error {
	size, err := vfs.Size(f.File)
	if err == nil && size/rowWidth < rows {
		err = fmt.Errorf("%w: the row file of line %s has only %d rows", ErrDamaged, ln.Line, size/rowWidth)
	}
	return err
}

// rowBuffers holds the bytes of rows while they are parsed.
var rowBuffers = sync.Pool{New: func() any { return new([]byte) }}

// readDense is readRows for positions that all have rows.
func (s *state) readDense(ln *line, from, to int64) ([]Entry, error) {
	if from >= to {
		return nil, nil
	}
	r, err := s.openRowFile(ln)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	first := ln.first(ln.Base)
	if to-from > pageRows { // allocate for the existing rows, not for the request
		if err := hasRows(r, ln, to-first); err != nil {
			return nil, err
		}
	}
	pooled := rowBuffers.Get().(*[]byte)
	defer rowBuffers.Put(pooled)
	b := slices.Grow((*pooled)[:0], int(to-from)*rowWidth)[:(to-from)*rowWidth]
	if len(b) <= pageRows*rowWidth {
		*pooled = b
	}
	if n, err := r.ReadAt(b, (from-first)*rowWidth); errors.Is(err, io.EOF) && n < len(b) {
		return nil, fmt.Errorf("%w: the row file of line %s ends before position %d", ErrDamaged, ln.Line, to)
	} else if err != nil && n < len(b) {
		return nil, err
	}
	entries := make([]Entry, 0, to-from)
	for p := from; p < to; p++ {
		e, err := parseRow(b[:rowWidth])
		if err == nil && e.Position != p {
			err = fmt.Errorf("%w: the row states position %d", ErrDamaged, e.Position)
		}
		if err != nil {
			return nil, fmt.Errorf("line %s, position %d: %w", ln.Line, p, err)
		}
		entries = append(entries, e)
		b = b[rowWidth:]
	}
	return entries, nil
}

// regular reports whether a path of the context's folder is, or may be, a regular file. If it is not, an error from opening it is
// damage, and no reason to give up.
func regular(dir *ctxfolder.Dir, path string) bool {
	info, err := dir.FS.Lstat(path)
	return err == nil && info.Mode().IsRegular() || vfs.IsFault(err)
}

// rowsWriter writes rows in their places, with one write for each run of them.
type rowsWriter struct {
	f     vfs.File
	made  bool  // the file is new
	first int64 // the position that row 0 has, or would have
	run   []byte
	at    int64 // number of the first row in run
	next  int64
}

func openRows(dir *ctxfolder.Dir, name string, first int64) (*rowsWriter, error) {
	if info, err := dir.FS.Lstat(ctxfolder.RowsFolder); err == nil && !info.IsDir() {
		if err := dir.SetAside(ctxfolder.RowsFolder); err != nil {
			return nil, err
		}
	}
	if err := dir.FS.Mkdir(ctxfolder.RowsFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := dir.MakeWay(name); err != nil {
		return nil, err
	}
	f, err := dir.FS.OpenFile(name, os.O_RDWR)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = dir.FS.OpenFile(name, os.O_RDWR|os.O_CREATE)
	}
	if err != nil {
		return nil, err
	}
	return &rowsWriter{f: f, first: first, made: made}, nil
}

// put writes the row of an entry in the dense part.
func (w *rowsWriter) put(e *Entry) error { return w.putAt(e.Position-w.first, e) }

// putAt writes row number n.
func (w *rowsWriter) putAt(n int64, e *Entry) error {
	if len(w.run) > 0 && (n != w.next || len(w.run) >= 1<<20) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(w.run) == 0 {
		w.at = n
	}
	w.run = appendRow(w.run, e)
	w.next = n + 1
	return nil
}

func (w *rowsWriter) flush() error {
	if len(w.run) == 0 {
		return nil
	}
	_, err := w.f.WriteAt(w.run, w.at*rowWidth)
	w.run = w.run[:0]
	return err
}

// end truncates the file after that many rows.
//
// Crash order: the record that cut the line is in a journal, so surplus rows mean nothing. They are durably gone before
// that journal goes: a rebuild would believe them.
func (w *rowsWriter) end(rows int64) error {
	if err := w.flush(); err != nil {
		return err
	}
	size, err := vfs.Size(w.f)
	if err != nil || size <= rows*rowWidth {
		return err
	}
	return w.f.Truncate(rows * rowWidth)
}

// close flushes the rows, makes them durable, and closes the file.
func (w *rowsWriter) close() error {
	err := w.flush()
	if err == nil {
		err = w.f.Datasync()
	}
	return cmp.Or(err, w.f.Close())
}
