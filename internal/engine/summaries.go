package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
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
	summariesVersion = "summaries/2"
	maxSummaries     = 256 << 20
)

// summaries is the cache that makes a list cheap: for each context what the list shows, and the state of the files from
// which it was read. It can be deleted at any time.
type summaries map[uuid.UUID]*cachedSummary

// listCache is the cache as the last list of an open store left it, with what was too little to replace the file for.
type listCache struct {
	mu    sync.Mutex
	file  fileState // summaries.jsonl when it was read or written; zero for none
	known summaries
}

// maxListCache bounds the contexts that a store keeps in memory for its next list.
const maxListCache = 20_000

// cachedSummary is a summary and the state of its files: the context's folder, metadata.json and the newest journal.
// Every commit changes the journal; every other change of the index, and every new journal, changes the folder.
type cachedSummary struct {
	Context  uuid.UUID         `json:"context"`
	Journal  uint64            `json:"journal"`
	Files    [3]fileState      `json:"files"`
	Title    string            `json:"title"`
	Labels   map[string]string `json:"labels,omitempty"`
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

	stored bool // the file has it; guarded by listCache.mu
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
	r := known[id]
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
		if f != (fileState{}) && time.Since(time.Unix(0, f.At)) < TimeResolution {
			return
		}
	}
	row.cached = &cachedSummary{
		Context: sum.ID, Journal: journal, Files: now,
		Title: sum.Title, Labels: maps.Clone(sum.Labels), Kind: sum.Kind, External: sum.ExternalID, Model: sum.Model,
		Branches: sum.Branches, Active: sum.ActiveBranch, Messages: sum.Messages, Bytes: sum.Bytes, Archived: sum.Archived,
		Created: sum.CreatedAt, Updated: sum.UpdatedAt, Format: string(sum.Format),
	}
}

// readSummaries returns the cache of the last list, unless another one replaced the file since.
func (s *Store) readSummaries() summaries {
	s.listed.mu.Lock()
	defer s.listed.mu.Unlock()
	now := s.summariesFile()
	if s.listed.known == nil || s.listed.file != now {
		s.listed.file, s.listed.known = now, s.parseSummaries()
	}
	return s.listed.known
}

func (s *Store) summariesFile() (now fileState) {
	if info, err := s.FS.Lstat(SummariesFile); err == nil {
		now = fileState{vfs.Number(info), info.Size(), info.ModTime().UnixNano()}
	}
	return now
}

// parseSummaries reads the file. It ignores a damaged one.
func (s *Store) parseSummaries() summaries {
	known := summaries{}
	b, err := vfs.ReadFile(s.FS, SummariesFile, maxSummaries)
	if err != nil {
		return known
	}
	head, rest, _ := bytes.Cut(b, []byte{'\n'})
	if !bytes.Equal(head, s.summariesHead(rest)) {
		return known
	}
	lines := slices.Collect(bytes.Lines(rest))
	decoded := make([]cachedSummary, len(lines))
	inParallel(len(lines), func(i int) {
		if json.Unmarshal(lines[i], &decoded[i]) != nil {
			decoded[i] = cachedSummary{}
		}
	})
	for i := range decoded {
		decoded[i].stored = true
		known[decoded[i].Context] = &decoded[i]
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

// keepSummaries replaces the cache when many entries are new. Nothing is synced: a torn file has the wrong checksum.
// Concurrent lists each write their own file.
func (s *Store) keepSummaries(rows []listRow) {
	s.listed.mu.Lock()
	defer s.listed.mu.Unlock()
	var all []*cachedSummary
	fresh := 0
	known := make(summaries, len(rows))
	for i := range rows {
		if r := rows[i].cached; r != nil {
			all = append(all, r)
			known[r.Context] = r
			if !r.stored {
				fresh++
			}
		}
	}
	s.listed.known = nil
	if len(known) <= maxListCache {
		s.listed.known = known
	}
	if s.ReadOnly || fresh <= len(all)/16 {
		return
	}
	slices.SortFunc(all, func(a, b *cachedSummary) int { return bytes.Compare(a.Context[:], b.Context[:]) })
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
		return
	}
	s.listed.file = s.summariesFile()
	for _, r := range all {
		r.stored = true
	}
}
