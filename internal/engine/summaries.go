package engine

import (
	"bytes"
	"maps"
	"slices"
	"strings"
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
	summariesVersion = "summaries/1"
	maxSummaries     = 256 << 20
)

// summaries is the cache that makes a list cheap: for each context what the list shows, and the state of the files from
// which it was read. It can be deleted at any time.
type summaries struct {
	known map[uuid.UUID]*cachedSummary
	fresh int // number of entries that the file does not have
}

// cachedSummary is a summary and the state of its files: metadata.json, index.json and the newest journal. No newer
// journal existed.
type cachedSummary struct {
	Context  uuid.UUID    `json:"context"`
	Journal  uint64       `json:"journal"`
	Files    [3]fileState `json:"files"`
	Title    string       `json:"title"`
	Branches int          `json:"branches"`
	Active   string       `json:"active_branch"`
	Messages int64        `json:"messages"`
	Bytes    int64        `json:"bytes"`
	Archived int64        `json:"archived_bytes,omitempty"`
	Created  time.Time    `json:"created_at"`
	Updated  time.Time    `json:"updated_at"`
	Format   string       `json:"format,omitempty"` // of a legacy context: then the files are it, or its context.json and its pool

	used bool
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

// fileStates returns the present state of a context's files. ok is false when a file is missing or a newer journal
// exists.
func (s *Store) fileStates(id uuid.UUID, journal uint64) (files [3]fileState, ok bool) {
	infos, err := vfs.LstatIn(s.FS, id.String(), ctxfolder.MetadataFile, ctxfolder.IndexFile,
		ctxfolder.JournalFile(journal), ctxfolder.JournalFile(journal+1))
	if err != nil || infos[3] != nil {
		return files, false
	}
	for i := range files {
		if infos[i] == nil || !infos[i].Mode().IsRegular() {
			return files, false
		}
		files[i] = fileState{vfs.Number(infos[i]), infos[i].Size(), infos[i].ModTime().UnixNano()}
	}
	return files, true
}

// cachedSummary returns the cached summary of a context if its files are unchanged.
func (s *Store) cachedSummary(known *summaries, id uuid.UUID) (Summary, bool) {
	r := known.known[id]
	if r == nil || r.Format != "" {
		return Summary{}, false
	}
	r.used = true
	if now, ok := s.fileStates(id, r.Journal); !ok || now != r.Files {
		return Summary{}, false
	}
	return r.summary(), true
}

func (r *cachedSummary) summary() Summary {
	return Summary{
		ID: r.Context, Title: r.Title, Branches: r.Branches, ActiveBranch: r.Active, Messages: r.Messages, Bytes: r.Bytes, Archived: r.Archived,
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

// cacheSummary caches a new summary, unless its files changed meanwhile, or so recently that a later change could look
// the same.
func (s *Store) cacheSummary(known *summaries, before [3]fileState, journal uint64, sum Summary) {
	delete(known.known, sum.ID)
	now, ok := s.fileStates(sum.ID, journal)
	s.cacheSummaryAt(known, before, now, ok, journal, sum)
}

// cacheSummaryAt is cacheSummary with the present state of the files.
func (s *Store) cacheSummaryAt(known *summaries, before, now [3]fileState, ok bool, journal uint64, sum Summary) {
	if !ok || now != before || sum.Problem != nil {
		return
	}
	for _, f := range now {
		if f != (fileState{}) && time.Since(time.Unix(0, f.At)) < TimeResolution {
			return
		}
	}
	known.fresh++
	known.known[sum.ID] = &cachedSummary{
		Context:  sum.ID,
		Journal:  journal,
		Files:    now,
		Title:    sum.Title,
		Branches: sum.Branches,
		Active:   sum.ActiveBranch,
		Messages: sum.Messages,
		Bytes:    sum.Bytes,
		Archived: sum.Archived,
		Created:  sum.CreatedAt,
		Updated:  sum.UpdatedAt,
		Format:   string(sum.Format),
		used:     true,
	}
}

// readSummaries reads the cache. It ignores a damaged one.
func (s *Store) readSummaries() *summaries {
	known := &summaries{known: map[uuid.UUID]*cachedSummary{}}
	b, err := vfs.ReadFile(s.FS, SummariesFile, maxSummaries)
	if err != nil {
		return known
	}
	head, rest, _ := bytes.Cut(b, []byte{'\n'})
	if !bytes.Equal(head, s.summariesHead(rest)) {
		return known
	}
	for line := range bytes.Lines(rest) {
		var r cachedSummary
		if err := json.Unmarshal(line, &r); err != nil {
			return known
		}
		known.known[r.Context] = &r
	}
	return known
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

// writeSummaries replaces the cache when many entries are new. Nothing is synced: a torn file has the wrong checksum.
// Concurrent lists each write their own file.
func (s *Store) writeSummaries(known *summaries) {
	maps.DeleteFunc(known.known, func(_ uuid.UUID, r *cachedSummary) bool { return !r.used })
	if s.ReadOnly || known.fresh <= len(known.known)/16 {
		return
	}
	all := slices.SortedFunc(maps.Values(known.known), func(a, b *cachedSummary) int { return bytes.Compare(a.Context[:], b.Context[:]) })
	var rest []byte
	for _, r := range all {
		line, err := json.Marshal(r)
		if err != nil {
			return
		}
		rest = append(append(rest, line...), '\n')
	}
	if info, err := s.FS.Lstat(SummariesFile); err == nil && !info.Mode().IsRegular() {
		return
	}
	tmp := "." + SummariesFile + "." + uuid.NewString() + ".tmp"
	if err := vfs.CreateFile(s.FS, tmp, append(append(s.summariesHead(rest), '\n'), rest...), time.Now()); err != nil ||
		s.FS.Rename(tmp, SummariesFile) != nil {
		_ = s.FS.Remove(tmp)
	}
}
