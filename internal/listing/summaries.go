package listing

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// summaries is the cache that makes a list cheap: for each context what the list shows, and the state of the files from
// which it was read. The rows are ordered by id. The cache can be deleted at any time.
type summaries []*cachedSummary

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func byID(a, b *cachedSummary) int { return compareIDs(a.id, b.id) }

// maxListCache bounds the contexts that a Lister keeps in memory for its next list.
const maxListCache = 20_000

// cachedSummary is a row of the cache. Most rows that a list leaves out are never decoded.
type cachedSummary struct {
	id     uuid.UUID
	line   []byte                     // of summaries.jsonl, without the newline
	rest   int                        // the offset in line of the third member
	stored bool                       // the file has it; guarded by Lister.mu
	row    atomic.Pointer[summaryRow] // line, decoded; nil until a list needs it
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

// summaryRow is a summary and the state of its files: the context's folder, metadata.json and the newest log. Every commit
// changes the log, and every new log the folder.
type summaryRow struct {
	Context  uuid.UUID         `json:"context"`
	Log      string            `json:"log"` // empty for a legacy context
	Labels   map[string]string `json:"labels,omitempty"`
	Files    string            `json:"files"` // see appendStates
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
	Commit   string            `json:"commit,omitempty"`
	Format   string            `json:"format,omitempty"` // of a legacy context: then the files are it, or its context.json and its pool
}

func (r *cachedSummary) isDecoded() bool { return r != nil && r.row.Load() != nil }

// decoded returns the row, nil if it cannot be decoded.
func (r *cachedSummary) decoded() *summaryRow {
	if r == nil {
		return nil
	}
	row := r.row.Load()
	if row == nil {
		row = &summaryRow{}
		if json.Unmarshal(r.line, row) != nil {
			row = &summaryRow{}
		}
		r.row.Store(row) // concurrent lists store the same
	}
	if row.Context != r.id {
		return nil
	}
	return row
}

// statesLen is the length of the states of three files.
const statesLen = 3 * 48

// appendStates appends the states of files as hexadecimal digits, which decode faster than numbers.
func appendStates(b []byte, files ...freshness.FileState) []byte {
	var state [24]byte
	for _, f := range files {
		binary.BigEndian.PutUint64(state[:], f.Number)
		binary.BigEndian.PutUint64(state[8:], uint64(f.Size))
		binary.BigEndian.PutUint64(state[16:], uint64(f.At))
		b = hex.AppendEncode(b, state[:])
	}
	return b
}

// isOf reports whether the row was read when its files had these states.
func (r *summaryRow) isOf(files [3]freshness.FileState) bool {
	return string(appendStates(make([]byte, 0, statesLen), files[:]...)) == r.Files
}

// isAmbiguous reports whether a later change could still get the same time.
func isAmbiguous(at int64) bool { return time.Since(time.Unix(0, at)) < freshness.ResolutionOf(at) }

// current returns the row, nil if there is none or the context's files changed.
func (r *cachedSummary) current(s *engine.Store) *summaryRow {
	row := r.decoded()
	if row == nil || row.Format != "" {
		return nil
	}
	if now, ok := freshness.FilesOf(s, row.Context, row.Log); !ok || !row.isOf(now) {
		return nil
	}
	return row
}

func (r *summaryRow) summary() Summary {
	return Summary{
		ID: r.Context, Title: r.Title, Labels: r.Labels, Kind: r.Kind, ExternalID: r.External, Model: r.Model,
		Branches: r.Branches, ActiveBranch: r.Active, Messages: r.Messages, Bytes: r.Bytes, Archived: r.Archived,
		CreatedAt: r.Created, UpdatedAt: r.Updated, Format: engine.LegacyFormat(r.Format),
		Commit: r.Commit,
	}
}
