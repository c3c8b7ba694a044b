package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	SummariesFile    = "summaries.jsonl" // the cache of [Store.List]
	summariesVersion = "summaries/3"
	maxSummaries     = 256 << 20
)

// summaries is the cache that makes a list cheap: for each context what the list shows, and the state of the files from
// which it was read. It can be deleted at any time.
type summaries map[uuid.UUID]*cachedSummary

// listCache is the cache as the last list of an open store left it, with what was too little to replace the file for.
type listCache struct {
	mu      sync.Mutex
	file    fileState // summaries.jsonl when it was read or written, without its time; zero for none
	known   summaries
	rows    int       // of the file
	folder  fileState // the store's folder when entries was read
	entries []entry   // nil if they have to be read again
	seen    changesSeen
	checked time.Time // the last list that examined all contexts; modification time of the file
}

// maxListCache bounds the contexts that a store keeps in memory for its next list.
const maxListCache = 20_000

// cachedSummary is a summary and the state of its files: the context's folder, metadata.json and the newest journal.
// Every commit changes the journal; every other change of the index, and every new journal, changes the folder.
type cachedSummary struct {
	Context  uuid.UUID         `json:"context"`
	Journal  uint64            `json:"journal"` // 0 for a legacy context
	Labels   map[string]string `json:"labels,omitempty"`
	Files    [3]fileState      `json:"files"`
	Title    string            `json:"title"`
	Kind     string            `json:"kind,omitempty"`
	External string            `json:"external_id,omitempty"`
	Model    string            `json:"model,omitempty"`
	Branches int               `json:"branches"`
	Active   string            `json:"active_branch"`
	Messages int64             `json:"messages"`
	Bytes    int64             `json:"bytes"`
	Archived int64             `json:"archived_bytes,omitempty"`
	Created  time.Time         `json:"created_at"`
	Updated  time.Time         `json:"updated_at"`
	Format   string            `json:"format,omitempty"` // of a legacy context: then the files are it, or its context.json and its pool

	id     uuid.UUID // Context, also before line is decoded
	stored bool      // the file has it; guarded by listCache.mu
	line   []byte    // of the file, nil if the row is not from there
	once   sync.Once // decodes line
	broken bool      // line cannot be decoded
}

// decoded returns the row with all fields set, nil if it cannot be decoded.
func (r *cachedSummary) decoded() *cachedSummary {
	if r == nil || r.line == nil {
		return r
	}
	r.once.Do(func() { r.broken = json.Unmarshal(r.line, r) != nil })
	if r.broken {
		return nil
	}
	return r
}

// fileState is the state of a file.
type fileState struct {
	Number uint64 `json:"n"`
	Size   int64  `json:"size"`
	At     int64  `json:"at"` // modification time, nanoseconds since 1970
}

// TimeResolution is the age from which the time of a change distinguishes it from a later one, on the coarsest clock of
// a file system.
const TimeResolution = 2 * time.Second

// fineResolution is TimeResolution for a time with a fraction of a millisecond, which comes from a clock that ticks every
// 10 ms at least.
const fineResolution = 100 * time.Millisecond

// resolutionOf returns the age from which a time, in nanoseconds since 1970, distinguishes a change from a later one.
func resolutionOf(at int64) time.Duration {
	if at%int64(time.Millisecond) != 0 {
		return fineResolution
	}
	return TimeResolution
}

// isAmbiguous reports whether a later change could still get the same time.
func isAmbiguous(at int64) bool { return time.Since(time.Unix(0, at)) < resolutionOf(at) }

// fileStates returns the present state of a context's files. ok is false when one is missing.
func (s *Store) fileStates(id uuid.UUID, journal uint64) (files [3]fileState, ok bool) {
	infos, err := vfs.LstatIn(s.FS, id.String(), ".", ctxfolder.MetadataFile, ctxfolder.JournalFile(journal))
	if err != nil {
		return files, false
	}
	for i, info := range infos {
		if info == nil || (i == 0) != info.IsDir() || i > 0 && !info.Mode().IsRegular() {
			return files, false
		}
		files[i] = fileState{vfs.Number(info), info.Size(), info.ModTime().UnixNano()}
	}
	return files, true
}

// isNewest reports whether a context has no newer journal, not even a blank one: a journal can begin in blank space
// without a change of the folder.
func (s *Store) isNewest(id uuid.UUID, journal uint64) bool {
	_, err := s.FS.Lstat(id.String() + "/" + ctxfolder.JournalFile(journal+1))
	return errors.Is(err, fs.ErrNotExist)
}

// cachedSummary returns what the cache has of a context, nil if it has nothing or the files changed.
func (s *Store) cachedSummary(known summaries, id uuid.UUID) *cachedSummary {
	r := known[id].decoded()
	if r == nil || r.Format != "" {
		return nil
	}
	if now, ok := s.fileStates(id, r.Journal); !ok || now != r.Files {
		return nil
	}
	return r
}

func (r *cachedSummary) summary() Summary {
	return Summary{
		ID: r.Context, Title: r.Title, Labels: r.Labels, Kind: r.Kind, ExternalID: r.External, Model: r.Model,
		Branches: r.Branches, ActiveBranch: r.Active, Messages: r.Messages, Bytes: r.Bytes, Archived: r.Archived,
		CreatedAt: r.Created, UpdatedAt: r.Updated, Format: LegacyFormat(r.Format),
	}
}

// legacyFileStates is fileStates for a legacy context. It misses an edit of a node's file, which the list does not
// show.
func (s *Store) legacyFileStates(name string) (files [3]fileState, ok bool) {
	names := []string{name}
	if !strings.HasSuffix(name, ".json") {
		names = []string{name + "/" + legacy.ContextFile, name + "/" + legacy.PoolFolder}
	}
	for i, n := range names {
		info, err := s.FS.Lstat(n)
		if err != nil {
			return files, false
		}
		files[i] = fileState{vfs.Number(info), info.Size(), info.ModTime().UnixNano()}
	}
	return files, true
}

// keep caches a row, unless its files changed meanwhile, or so recently that a later change could look the same.
func (row *listRow) keep(before, now [3]fileState, ok bool, journal uint64) {
	sum := row.sum
	if !ok || now != before || sum.Problem != nil {
		return
	}
	for _, f := range now {
		if f != (fileState{}) && isAmbiguous(f.At) {
			return
		}
	}
	row.cached = &cachedSummary{
		id: sum.ID, Context: sum.ID, Journal: journal, Files: now,
		Title: sum.Title, Labels: maps.Clone(sum.Labels), Kind: sum.Kind, External: sum.ExternalID, Model: sum.Model,
		Branches: sum.Branches, Active: sum.ActiveBranch, Messages: sum.Messages, Bytes: sum.Bytes, Archived: sum.Archived,
		Created: sum.CreatedAt, Updated: sum.UpdatedAt, Format: string(sum.Format),
	}
}

// readSummaries returns the cache of the last list, unless another one replaced the file since.
func (s *Store) readSummaries() (known summaries, seen changesSeen, checked time.Time) {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	now, at := s.summariesFile()
	if c.known == nil || c.file != now {
		c.file, c.checked = now, at
		c.known, c.seen = s.parseSummaries()
		c.rows = len(c.known)
	}
	return c.known, c.seen, c.checked
}

func (s *Store) summariesFile() (now fileState, at time.Time) {
	if info, err := s.FS.Lstat(SummariesFile); err == nil {
		now, at = fileState{Number: vfs.Number(info), Size: info.Size()}, info.ModTime()
	}
	return now, at
}

// parseSummaries reads the file. It ignores a damaged one.
func (s *Store) parseSummaries() (known summaries, seen changesSeen) {
	known = summaries{}
	b, err := vfs.ReadFile(s.FS, SummariesFile, maxSummaries)
	if err != nil {
		return known, seen
	}
	head, rest, _ := bytes.Cut(b, []byte{'\n'})
	first, rows, _ := bytes.Cut(rest, []byte{'\n'})
	if !bytes.Equal(head, s.summariesHead(rest)) || json.Unmarshal(first, &seen) != nil {
		return known, changesSeen{}
	}
	decoded := make([]cachedSummary, bytes.Count(rows, []byte{'\n'}))
	for i := range decoded {
		r := &decoded[i]
		r.line, rows, _ = bytes.Cut(rows, []byte{'\n'})
		if id, _, ok := cutSummary(r.line); ok {
			r.id, r.stored = id, true
			known[id] = r
		}
	}
	return known, seen
}

// cutSummary returns the context of a line, and what follows its first two members, without decoding it.
func cutSummary(line []byte) (id uuid.UUID, rest []byte, ok bool) {
	text, ok := bytes.CutPrefix(line, []byte(`{"context":"`))
	if !ok || len(text) < 36 {
		return id, nil, false
	}
	id, err := uuid.ParseBytes(text[:36])
	_, rest, ok = bytes.Cut(text[36:], []byte(`","journal":`))
	_, rest, _ = bytes.Cut(rest, []byte(","))
	return id, rest, ok && err == nil
}

// summariesHead returns the first line of the file, with a checksum of the rest.
func (s *Store) summariesHead(rest []byte) []byte {
	b, err := json.Marshal(struct {
		Version string    `json:"ctxdir"`
		Store   uuid.UUID `json:"store"`
		Check   string    `json:"check"`
	}{summariesVersion, s.id, index.Hex(xxhash.Sum64(rest))})
	if err != nil {
		return nil
	}
	return b
}

// keepSummaries keeps the rows of a list, and replaces the file when many are new. Nothing is synced: a torn file has
// the wrong checksum. Concurrent lists each write their own file.
func (s *Store) keepSummaries(x *examination, rows []listRow) {
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*cachedSummary, 0, len(rows))
	fresh, changed := 0, false
	for i := range rows {
		if r := rows[i].cached; r != nil {
			all = append(all, r)
			changed = changed || r != x.known[r.id]
			if !r.stored {
				fresh++
			}
		}
	}
	c.known, c.seen, c.checked = x.known, x.seen, x.checked
	if changed || len(all) != len(x.known) {
		c.known = make(summaries, len(all))
		for _, r := range all {
			c.known[r.id] = r
		}
	}
	if len(all) > maxListCache {
		c.known = nil
	}
	switch same := fresh == 0 && len(all) == c.rows; {
	case s.ReadOnly:
	case same && x.all:
		s.touchSummaries()
	case fresh > len(all)/16, x.all:
		s.writeSummaries(all)
	}
}

// writeSummaries replaces the file. The caller holds listed.mu.
func (s *Store) writeSummaries(all []*cachedSummary) {
	c := s.listed
	slices.SortFunc(all, func(a, b *cachedSummary) int { return bytes.Compare(a.id[:], b.id[:]) })
	rest, err := json.Marshal(c.seen)
	for i := 0; i < len(all) && err == nil; i++ {
		line := all[i].line
		if line == nil {
			line, err = json.Marshal(all[i])
		}
		rest = append(append(rest, '\n'), line...)
	}
	if err != nil {
		return
	}
	rest = append(rest, '\n')
	if info, err := s.FS.Lstat(SummariesFile); err == nil && !info.Mode().IsRegular() {
		return
	}
	tmp := "." + SummariesFile + "." + uuid.NewString() + ".tmp"
	if err := vfs.CreateFile(s.FS, tmp, append(append(s.summariesHead(rest), '\n'), rest...), c.checked); err != nil ||
		s.FS.Rename(tmp, SummariesFile) != nil {
		_ = s.FS.Remove(tmp)
		return
	}
	c.rows = len(all)
	c.file, _ = s.summariesFile()
	for _, r := range all {
		r.stored = true
	}
}

// touchSummaries gives the file the time of the last full check. The caller holds listed.mu.
func (s *Store) touchSummaries() {
	if now, _ := s.summariesFile(); now != s.listed.file || now == (fileState{}) {
		return // another process replaced it
	}
	if f, err := s.FS.OpenFile(SummariesFile, os.O_WRONLY); err == nil {
		_ = f.SetModTime(s.listed.checked)
		_ = f.Close()
	}
}
