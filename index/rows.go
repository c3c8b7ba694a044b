package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/cespare/xxhash/v2"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// rowWidth is the width of a row this program writes. index.json tells that of the rows there are.
const rowWidth = 224

const rowCheck = `,"check":"`

// appendRow appends the row of an entry, rowWidth bytes.
func appendRow(b []byte, e *Entry) []byte {
	start := len(b)
	b = fmt.Appendf(b, `{"pos":%d,"id":"%s","size":%d,"at":%d,"sum":"%s"`, e.Position, e.ID, e.Size, e.At, Hex(e.Sum))
	if e.File != uuid.Nil && e.File != e.ID {
		b = fmt.Appendf(b, `,"file":"%s"`, e.File)
	}
	if e.Lost != "" {
		// The reason is for people: what does not fit is cut.
		const rest = len(`,"lost":""`) + len(rowCheck) + len(`01234567"}`) + 1
		reason := []byte(e.Lost)
		for i, c := range reason {
			if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
				reason[i] = '?'
			}
		}
		if room := rowWidth - (len(b) - start) - rest; len(reason) > room {
			reason = reason[:max(room, 0)]
		}
		b = append(append(append(b, `,"lost":"`...), reason...), '"')
	}
	check := uint32(xxhash.Sum64(b[start:]))
	b = fmt.Appendf(b, rowCheck+`%08x"}`, check)
	for len(b)-start < rowWidth-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// parseRow reads a row and makes sure that it is the one of this position.
func parseRow(b []byte, position int64) (Entry, error) {
	bad := func() (Entry, error) {
		return Entry{}, fmt.Errorf("%w: index row of position %d", ErrDamaged, position)
	}
	b = bytes.TrimRight(b, " \n")
	i := bytes.LastIndex(b, []byte(rowCheck))
	if i < 0 || string(b[i:]) != fmt.Sprintf(rowCheck+`%08x"}`, uint32(xxhash.Sum64(b[:i]))) {
		return bad()
	}
	// The check says that these are bytes of appendRow: they need no general parser.
	e := Entry{Position: position, Lost: string(rowText(b, `,"lost":"`))}
	good := rowInt(b, `{"pos":`, &e.Position) && e.Position == position &&
		rowInt(b, `,"size":`, &e.Size) && rowInt(b, `,"at":`, &e.At)
	id, err := uuid.ParseBytes(rowText(b, `,"id":"`))
	sum, ok := parseHex(rowText(b, `,"sum":"`))
	if !good || !ok || err != nil {
		return bad()
	}
	e.ID, e.Sum = id, sum
	if file := rowText(b, `,"file":"`); file != nil {
		if e.File, err = uuid.ParseBytes(file); err != nil {
			return bad()
		}
	}
	return e, nil
}

// rowText returns what stands between key and the next quotation mark, nil without the key.
func rowText(b []byte, key string) []byte {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil
	}
	b = b[i+len(key):]
	return b[:max(bytes.IndexByte(b, '"'), 0)]
}

func rowInt(b []byte, key string, into *int64) bool {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return false
	}
	b = b[i+len(key):]
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(b[:n]), 10, 64)
	*into = v
	return err == nil
}

// readRows returns the entries of the positions [from, to) of a line whose rows are width bytes wide.
// A row that is harmed or missing gives an error that wraps ErrDamaged.
func readRows(dir *ctxfolder.Dir, line uuid.UUID, base, from, to int64, width int) ([]Entry, error) {
	if from >= to {
		return nil, nil
	}
	f, err := dir.FS.OpenFile(ctxfolder.RowsFile(line), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || err != nil && !regular(dir, ctxfolder.RowsFile(line)) {
		return nil, fmt.Errorf("%w: row file of line %s is missing", ErrDamaged, line)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Allocate for the rows there are, not for what was asked.
	if have := base + info.Size()/int64(width); have < to || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: row file of line %s ends at position %d", ErrDamaged, line, have)
	}
	b := make([]byte, (to-from)*int64(width))
	if _, err := f.ReadAt(b, (from-base)*int64(width)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	entries := make([]Entry, 0, to-from)
	for p := from; p < to; p++ {
		e, err := parseRow(b[:width], p)
		if err != nil {
			return nil, fmt.Errorf("line %s: %w", line, err)
		}
		entries = append(entries, e)
		b = b[width:]
	}
	return entries, nil
}

// regular reports whether a regular file lies at a path of the context's folder. Where it does not, an error of
// opening it is damage, and no reason to give up.
func regular(dir *ctxfolder.Dir, path string) bool {
	info, err := dir.FS.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// rowsWriter puts rows in their places, in one write for each run of positions.
type rowsWriter struct {
	f    vfs.File
	base int64
	run  []byte
	at   int64 // position of the first row in run
	next int64
}

func openRows(dir *ctxfolder.Dir, line uuid.UUID, base int64) (*rowsWriter, error) {
	if info, err := dir.FS.Lstat(ctxfolder.RowsFolder); err == nil && !info.IsDir() {
		if err := dir.SetAside(ctxfolder.RowsFolder); err != nil {
			return nil, err
		}
	}
	if err := dir.FS.Mkdir(ctxfolder.RowsFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := dir.MakeWay(ctxfolder.RowsFile(line)); err != nil {
		return nil, err
	}
	f, err := dir.FS.OpenFile(ctxfolder.RowsFile(line), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &rowsWriter{f: f, base: base}, nil
}

func (w *rowsWriter) put(e *Entry) error {
	if len(w.run) > 0 && (e.Position != w.next || len(w.run) >= 1<<20) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(w.run) == 0 {
		w.at = e.Position
	}
	w.run = appendRow(w.run, e)
	w.next = e.Position + 1
	return nil
}

func (w *rowsWriter) flush() error {
	if len(w.run) == 0 {
		return nil
	}
	_, err := w.f.WriteAt(w.run, (w.at-w.base)*rowWidth)
	w.run = w.run[:0]
	return err
}

// close flushes, syncs when asked to, and closes.
func (w *rowsWriter) close(sync bool) error {
	err := w.flush()
	if err == nil && sync {
		err = w.f.Datasync()
	}
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	return err
}
