package listing

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	SummariesFile    = "summaries.jsonl" // the cache of [Lister.List]
	summariesVersion = "summaries/1"
	maxSummaries     = 256 << 20
)

// head is the first line of the file. A list writes it over the old one if only the line changed: unlike a new file,
// that leaves the store's folder as it is.
type head struct {
	check   uint64              // of the rest of the file
	checked int64               // the last list that examined all contexts, nanoseconds since 1970
	missed  uint64              // rows that processes had when they closed the store, and the file has not
	folder  freshness.FileState // of the store, when it held the contexts of the file and no others; zero if that is not known
}

// encode returns the line. Its length is always the same.
func (h *head) encode(store uuid.UUID) []byte {
	return fmt.Appendf(nil, `{"ctxdir":%q,"store":%q,"check":%q,"checked":"%016x","missed":"%016x","folder":%q}`,
		summariesVersion, store, hexSum(h.check), uint64(h.checked), h.missed, appendStates(nil, h.folder))
}

// hexSum formats a sum as the file has it.
func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// decodeHead returns the head that encodes as a line.
func decodeHead(line []byte, store uuid.UUID) (h head, ok bool) {
	_, text, _ := strings.Cut(string(line), `"check":`)
	var checked, size, at uint64
	_, err := fmt.Sscanf(text, `"%16x","checked":"%16x","missed":"%16x","folder":"%16x%16x%16x"}`,
		&h.check, &checked, &h.missed, &h.folder.Number, &size, &at)
	h.checked, h.folder.Size, h.folder.At = int64(checked), int64(size), int64(at)
	return h, err == nil && bytes.Equal(line, h.encode(store))
}

// fileNow returns the current state of the file, without its time, zero without the file.
func fileNow(s *engine.Store) (now freshness.FileState) {
	if info, err := s.FS.Lstat(SummariesFile); err == nil {
		now = freshness.FileState{Number: vfs.Number(info), Size: info.Size()}
	}
	return now
}

// readFile reads the file. It ignores a damaged one.
func readFile(s *engine.Store) (known summaries, seen changesSeen, h head) {
	known = summaries{}
	b, err := vfs.ReadFile(s.FS, SummariesFile, maxSummaries)
	if err != nil {
		return known, seen, h
	}
	line, rest, _ := bytes.Cut(b, []byte{'\n'})
	first, lines, _ := bytes.Cut(rest, []byte{'\n'})
	h, ok := decodeHead(line, s.ID())
	if !ok || h.check != xxhash.Sum64(rest) || json.Unmarshal(first, &seen) != nil {
		return known, changesSeen{}, head{}
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
	return known, seen, h
}

// replaceFile replaces the file, and returns its head. Nothing is synced: a torn file has the wrong checksum. Concurrent
// lists each write their own file.
func replaceFile(s *engine.Store, known summaries, seen changesSeen, checked int64) (h head, ok bool) {
	rest, err := json.Marshal(seen)
	if err != nil {
		return h, false
	}
	for _, r := range known {
		rest = append(append(rest, '\n'), r.line...)
	}
	rest = append(rest, '\n')
	if info, err := s.FS.Lstat(SummariesFile); err == nil && !info.Mode().IsRegular() {
		return h, false
	}
	h = head{check: xxhash.Sum64(rest), checked: checked}
	tmp := "." + SummariesFile + "." + uuid.NewString() + ".tmp"
	if err := vfs.CreateFile(s.FS, tmp, append(append(h.encode(s.ID()), '\n'), rest...), time.Now()); err != nil ||
		s.FS.Rename(tmp, SummariesFile) != nil {
		_ = s.FS.Remove(tmp)
		return h, false
	}
	return h, true
}

// writeHead rewrites the first line, unless another list replaced the file.
func writeHead(s *engine.Store, h *head) {
	f, err := s.FS.OpenFile(SummariesFile, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	line := h.encode(s.ID())
	there := make([]byte, len(line))
	if n, _ := f.ReadAt(there, 0); n < len(there) {
		return
	}
	if now, ok := decodeHead(there, s.ID()); ok && now.check == h.check {
		_, _ = f.WriteAt(line, 0)
	}
}
