package engine

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	SummariesFile    = "summaries.jsonl" // the cache of [Store.List]
	summariesVersion = "summaries/4"
	maxSummaries     = 256 << 20
)

// summariesHead is the first line of the file. A list writes it over the old one if only the line changed: unlike a new
// file, that leaves the store's folder as it is.
type summariesHead struct {
	check   uint64    // of the rest of the file
	checked int64     // the last list that examined all contexts, nanoseconds since 1970
	missed  uint64    // rows that processes had when they closed the store, and the file has not
	folder  fileState // of the store, when it held the contexts of the file and no others; zero if that is not known
}

// encode returns the line. Its length is always the same.
func (h *summariesHead) encode(store uuid.UUID) []byte {
	return fmt.Appendf(nil, `{"ctxdir":%q,"store":%q,"check":%q,"checked":"%016x","missed":"%016x","folder":%q}`,
		summariesVersion, store, hexSum(h.check), uint64(h.checked), h.missed, appendStates(nil, h.folder))
}

// decodeHead returns the head that encodes as a line.
func decodeHead(line []byte, store uuid.UUID) (h summariesHead, ok bool) {
	_, text, _ := strings.Cut(string(line), `"check":`)
	var checked, size, at uint64
	_, err := fmt.Sscanf(text, `"%16x","checked":"%16x","missed":"%16x","folder":"%16x%16x%16x"}`,
		&h.check, &checked, &h.missed, &h.folder.Number, &size, &at)
	h.checked, h.folder.Size, h.folder.At = int64(checked), int64(size), int64(at)
	return h, err == nil && bytes.Equal(line, h.encode(store))
}

// readSummaries gives an examination the cache of the last list, or the file if another process replaced that.
func (s *Store) readSummaries(x *examination) (seen changesSeen) {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := s.summariesFile(); c.known == nil || c.file != now {
		c.file, c.saved = now, true
		c.known, c.seen, c.head = s.parseSummaries()
	}
	x.known, x.saved, x.head = c.known, c.saved, c.head
	return c.seen
}

func (s *Store) summariesFile() (now fileState) {
	if info, err := s.FS.Lstat(SummariesFile); err == nil {
		now = fileState{Number: vfs.Number(info), Size: info.Size()}
	}
	return now
}

// parseSummaries reads the file. It ignores a damaged one.
func (s *Store) parseSummaries() (known summaries, seen changesSeen, head summariesHead) {
	known = summaries{}
	b, err := vfs.ReadFile(s.FS, SummariesFile, maxSummaries)
	if err != nil {
		return known, seen, head
	}
	line, rest, _ := bytes.Cut(b, []byte{'\n'})
	first, lines, _ := bytes.Cut(rest, []byte{'\n'})
	head, ok := decodeHead(line, s.id)
	if !ok || head.check != xxhash.Sum64(rest) || json.Unmarshal(first, &seen) != nil {
		return known, changesSeen{}, summariesHead{}
	}
	rows := make([]cachedSummary, bytes.Count(lines, []byte{'\n'}))
	known = make(summaries, 0, len(rows))
	for i := range rows {
		line, lines, _ = bytes.Cut(lines, []byte{'\n'})
		if r := &rows[i]; r.cut(line) {
			r.stored = true
			known = append(known, r)
		}
	}
	if !slices.IsSortedFunc(known, byID) { // another program wrote it
		slices.SortFunc(known, byID)
		known = slices.CompactFunc(known, func(a, b *cachedSummary) bool { return a.id == b.id })
	}
	return known, seen, head
}

// cut sets the row's line, and decodes the context and no more. ok is false if the line does not begin as it must.
func (r *cachedSummary) cut(line []byte) (ok bool) {
	const before, after = `{"context":"`, `","log":`
	const text, log = len(before), len(before) + 36 + len(after)
	if len(line) < log || string(line[:text]) != before || string(line[text+36:log]) != after {
		return false
	}
	r.line, r.rest = line, log+bytes.IndexByte(line[log:], ',')+1
	return r.id.UnmarshalText(line[text:text+36]) == nil
}

// RowsPerRead is how many rows of the cache are written in the time in which one context is read, about.
const RowsPerRead = 30

// keepSummaries keeps the rows of a list, and replaces the file if that is due. Nothing is synced: a torn file has the
// wrong checksum. Concurrent lists each write their own file.
func (s *Store) keepSummaries(x *examination, rows []listRow) {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	all, changed := x.left, false
	for i := range rows {
		if r := rows[i].cached; r != nil {
			all = append(all, r)
			changed = changed || r != rows[i].known
		}
	}
	if changed = changed || len(all) != len(x.known); changed {
		slices.SortFunc(all, byID)
	} else {
		all = x.known
	}
	isFile := c.head.check == x.head.check
	if isFile && x.folder != (fileState{}) {
		c.head.folder = x.folder
	}
	c.known, c.seen, c.head.checked, c.saved = all, x.seen, x.checked, isFile && x.saved && !changed
	switch {
	case s.ReadOnly:
	case !c.saved && (x.all || c.head.missed+all.fresh() > uint64(len(all)/RowsPerRead)):
		s.writeSummaries()
	case c.head != x.head:
		s.writeHead()
	}
	if len(all) > maxListCache {
		c.known = nil
	}
}

// fresh returns how many rows the file does not have. The caller holds listed.mu.
func (known summaries) fresh() (n uint64) {
	for _, r := range known {
		if !r.stored {
			n++
		}
	}
	return n
}

// closeSummaries notes in the file how many rows go with this process. The next one reads them again; once processes
// have read so many that the file could have been replaced for that, keepSummaries replaces it.
func (s *Store) closeSummaries() {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	if fresh := c.known.fresh(); fresh > 0 && !s.ReadOnly {
		c.head.missed += fresh
		s.writeHead()
	}
}

// writeSummaries replaces the file. The caller holds listed.mu.
func (s *Store) writeSummaries() {
	c := s.listed
	rest, err := json.Marshal(c.seen)
	if err != nil {
		return
	}
	for _, r := range c.known {
		rest = append(append(rest, '\n'), r.line...)
	}
	rest = append(rest, '\n')
	if info, err := s.FS.Lstat(SummariesFile); err == nil && !info.Mode().IsRegular() {
		return
	}
	head := summariesHead{check: xxhash.Sum64(rest), checked: c.head.checked}
	tmp := "." + SummariesFile + "." + uuid.NewString() + ".tmp"
	if err := vfs.CreateFile(s.FS, tmp, append(append(head.encode(s.id), '\n'), rest...), time.Now()); err != nil ||
		s.FS.Rename(tmp, SummariesFile) != nil {
		_ = s.FS.Remove(tmp)
		return
	}
	c.file, c.head, c.saved = s.summariesFile(), head, true
	for _, r := range c.known {
		r.stored = true
	}
}

// writeHead writes the first line anew, unless another list replaced the file. The caller holds listed.mu.
func (s *Store) writeHead() {
	f, err := s.FS.OpenFile(SummariesFile, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	line := s.listed.head.encode(s.id)
	there := make([]byte, len(line))
	if n, _ := f.ReadAt(there, 0); n < len(there) {
		return
	}
	if now, ok := decodeHead(there, s.id); ok && now.check == s.listed.head.check {
		_, _ = f.WriteAt(line, 0)
	}
}

// hexSum formats a sum as the file has it.
func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }
