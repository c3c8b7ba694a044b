package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	indexVersion = "index/2"
	indexBefore  = "index/1"
	maxIndex     = 256 << 20
	// maxJournals bounds the journals that index.json names.
	maxJournals = 1024
)

// indexFile is the content of index.json: the state at the last fold.
type indexFile struct {
	Version   string      `json:"ctxdir"`
	Context   uuid.UUID   `json:"context"`
	Store     uuid.UUID   `json:"store"`
	Seq       uint64      `json:"seq"`
	Chain     string      `json:"chain"`
	Journals  []uint64    `json:"journals"`
	Live      uint64      `json:"live"`
	Offset    int64       `json:"offset,omitempty"` // record Seq begins here in Live; 0: Live begins after that record
	Settled   uint64      `json:"settled"`
	RowWidth  int         `json:"row_width"`
	UpdatedAt time.Time   `json:"updated_at"`
	NewestAt  time.Time   `json:"newest_at,omitzero"` // of the newest message
	Dropped   []uuid.UUID `json:"dropped,omitempty"`  // packs that it no longer names and that are to go

	Metadata json.RawMessage `json:"metadata,omitempty"` // as of Seq
	Lines    []FoldedLine    `json:"lines"`              // the last member: see encode

	chain uint64
	torn  error // why the file is damaged, if nothing was folded yet
}

// packs returns the packs that index.json names.
func (x *indexFile) packs() (ids []uuid.UUID) {
	for i := range x.Lines {
		ids = append(ids, x.Lines[i].Packs...)
	}
	return ids
}

// dropped returns the existing packs that index.json named and x does not. Their messages were moved or collected.
// Without this list, an interrupted removal would leave them looking like packs of another history.
func (x *indexFile) dropped(dir *ctxfolder.Dir) (ids []uuid.UUID) {
	there, err := packIDs(dir)
	if err != nil || len(there) == 0 {
		return nil
	}
	before, err := readIndexFile(dir)
	if err != nil {
		return nil
	}
	named, now := append(before.packs(), before.Dropped...), x.packs()
	return slices.DeleteFunc(there, func(id uuid.UUID) bool { return slices.Contains(now, id) || !slices.Contains(named, id) })
}

// FoldedLine is one line in index.json.
type FoldedLine struct {
	Counts
	Placement
	Folder string `json:"folder,omitempty"` // for people
}

// FoldedLines returns the lines in an intact index.json and the time of that file, for when metadata.json is
// unavailable. It returns none if index.json is not intact.
func FoldedLines(dir *ctxfolder.Dir) (lines []FoldedLine, at time.Time) {
	x, err := readIndexFile(dir)
	if err != nil {
		return nil, at
	}
	return x.Lines, x.UpdatedAt
}

// newest returns the time of the newest message, nanoseconds since 1970; 0 if unknown.
func (x *indexFile) newest() int64 {
	if x.NewestAt.Year() < 1970 || x.NewestAt.Year() > 2261 {
		return 0
	}
	return x.NewestAt.UnixNano()
}

// place returns the place after the last folded record.
func (x *indexFile) place() Spot { return Spot{x.Seq, x.chain} }

// retained returns the folded journals that index.json names.
func (x *indexFile) retained() (gens []uint64) {
	for _, gen := range x.Journals {
		if gen < x.Live {
			gens = append(gens, gen)
		}
	}
	return gens
}

// isFirst reports whether nothing was folded when the file was written. It may not be durable.
func (x *indexFile) isFirst() bool { return x.Seq == 0 && x.Live == firstJournal && len(x.Lines) == 0 }

// unsettled reports whether the message files of some folded records may not be durable.
func (x *indexFile) unsettled() bool { return x.Offset > 0 || x.unsettledJournals() > 0 }

// unsettledJournals returns how many folded journals may have message files that are not durable.
func (x *indexFile) unsettledJournals() (n int) {
	for _, gen := range x.retained() {
		if gen > x.Settled {
			n++
		}
	}
	return n
}

// encode returns index.json, with a row for each member and each line, and the check at the end.
func (x indexFile) encode() ([]byte, error) {
	x.Version, x.Chain = indexVersion, Hex(x.chain)
	lines, metadata := x.Lines, x.Metadata
	x.Lines, x.Metadata = nil, nil
	head, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte(`"lines": null`+"\n}")))
	if metadata != nil {
		b.WriteString(`"metadata": `)
		b.Write(metadata)
		b.WriteString(",\n  ")
	}
	b.WriteString(`"lines": [`)
	for i, l := range lines {
		row, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(row)
	}
	b.WriteString("\n  ],\n  ")
	sum := xxhash.Sum64(b.Bytes())
	fmt.Fprintf(&b, "\"check\": \"%s\"\n}\n", Hex(sum))
	return b.Bytes(), nil
}

// readIndexFile reads index.json. A crash may tear the first one; while there are no rows, its content is known. An
// error that wraps ErrDamaged means that the index has to be rebuilt.
func readIndexFile(dir *ctxfolder.Dir) (*indexFile, error) {
	b, err := vfs.ReadFile(dir.FS, ctxfolder.IndexFile, maxIndex)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrTooLarge) || !regular(dir, ctxfolder.IndexFile) {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, err
	}
	x, err := parseIndexFile(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", ctxfolder.IndexFile, err)
	}
	if errors.Is(err, ErrDamaged) && neverFolded(dir) {
		return &indexFile{
			Context: dir.ID, Store: dir.Store, Journals: []uint64{firstJournal}, Live: firstJournal, RowWidth: rowWidth, torn: err,
		}, nil
	}
	if err != nil {
		return nil, err
	}
	if x.Context != dir.ID || x.Store != dir.Store {
		return nil, fmt.Errorf("%w: %s is of context %s in store %s", ErrDamaged, ctxfolder.IndexFile, x.Context, x.Store)
	}
	return x, nil
}

// neverFolded reports whether a context has no rows, but its first journal.
func neverFolded(dir *ctxfolder.Dir) bool {
	_, rows := dir.FS.Lstat(ctxfolder.RowsFolder)
	_, journal := dir.FS.Lstat(ctxfolder.JournalFile(firstJournal))
	return errors.Is(rows, fs.ErrNotExist) && journal == nil
}

func parseIndexFile(b []byte) (*indexFile, error) {
	i := bytes.LastIndex(b, []byte(`"check"`))
	if i < 0 {
		return nil, fmt.Errorf("%w: the checksum is missing", ErrDamaged)
	}
	var x struct {
		indexFile
		Check string `json:"check"`
	}
	if err := jsonv2.Unmarshal(b, &x, message.Verbatim...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if x.Check != Hex(xxhash.Sum64(b[:i])) {
		return nil, fmt.Errorf("%w: checksum mismatch", ErrDamaged)
	}
	if x.Version != indexVersion && x.Version != indexBefore {
		return nil, fmt.Errorf("%w: index is %q, wanted %q", ctxfolder.ErrVersion, x.Version, indexVersion)
	}
	var err error
	if x.chain, err = parseHexString(x.Chain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if x.RowWidth != rowWidth || len(x.Journals) == 0 || len(x.Journals) > maxJournals || !slices.Contains(x.Journals, x.Live) ||
		x.Settled >= x.Live || x.Seq > maxSeq || x.Offset < 0 {
		return nil, fmt.Errorf("%w: its values are impossible", ErrDamaged)
	}
	for _, l := range x.Lines {
		if !l.Counts.sane() || !l.Placement.sane(&l.Counts) {
			return nil, fmt.Errorf("%w: the counts of line %s are impossible", ErrDamaged, l.Line)
		}
	}
	return &x.indexFile, nil
}

// countsOf returns the counts of lines.
func countsOf(lines []FoldedLine) []Counts {
	counts := make([]Counts, 0, len(lines))
	for i := range lines {
		counts = append(counts, lines[i].Counts)
	}
	return counts
}

// firstJournal is the number of a context's first journal.
const firstJournal = 1

// beginFiles returns the first journal and index.json of a context whose messages, if any, all have rows.
func beginFiles(
	dir *ctxfolder.Dir, m *ctxfolder.Metadata, seq uint64, lines []FoldedLine, newestAt int64,
) (journal, index []byte, err error) {
	journal, err = encodeBegin(dir, firstJournal, Spot{Seq: seq}, countsOf(lines), ctxfolder.RawMetadata(m))
	if err != nil {
		return nil, nil, err
	}
	index, err = indexFile{
		Context: dir.ID, Store: dir.Store, Seq: seq, Journals: []uint64{firstJournal}, Live: firstJournal, RowWidth: rowWidth,
		UpdatedAt: time.Now().UTC(), NewestAt: timeOrZero(newestAt), Metadata: ctxfolder.RawMetadata(m), Lines: lines,
	}.encode()
	return journal, index, err
}

// BeginFiles returns this package's files of a new context: the first journal, and an index without folded entries.
func BeginFiles(m *ctxfolder.Metadata, store uuid.UUID) (b ctxfolder.Begin, err error) {
	j, x, err := beginFiles(&ctxfolder.Dir{ID: m.ID, Store: store}, m, 0, nil, 0)
	return ctxfolder.Begin{Files: map[string][]byte{ctxfolder.JournalFile(firstJournal): j, ctxfolder.IndexFile: x}}, err
}
