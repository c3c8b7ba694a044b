package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// summary is the content of index.json. It is for people and other programs: nothing here reads it.
type summary struct {
	Version   string           `json:"ctxdir"`
	Context   uuid.UUID        `json:"context"`
	Seq       uint64           `json:"seq"` // of the newest record that is summed up
	Chain     string           `json:"chain"`
	Segments  []string         `json:"segments"`
	Logs      []string         `json:"logs"`
	Lines     []summarisedLine `json:"lines"`
	NewestAt  time.Time        `json:"newest_at,omitzero"` // of the newest message
	UpdatedAt time.Time        `json:"updated_at"`
}

type summarisedLine struct {
	Counts
	Folder string `json:"folder,omitempty"`
}

const summaryVersion = "index/1"

// Summary returns the content of index.json: which files the history is in, and how many messages each line has.
func (ix *Index) Summary() ([]byte, error) {
	x := summary{Version: summaryVersion, Context: ix.dir.Context, UpdatedAt: Now(), Segments: []string{}, Logs: []string{}}
	err := ix.view(func(s *state) {
		x.Seq, x.Chain = s.at.Seq, fmt.Sprintf("%016x", s.at.Chain)
		for _, o := range s.segments.all {
			x.Segments = append(x.Segments, ctxfolder.Segments+"/"+o.name.File())
		}
		for _, o := range s.logs {
			x.Logs = append(x.Logs, o.Name())
		}
		for id, ln := range s.lines {
			of := summarisedLine{Counts: ln.Counts}
			if s.metadata.m != nil {
				if l, ok := s.metadata.m.Line(id); ok {
					of.Folder = l.Folder
				}
			}
			x.Lines = append(x.Lines, of)
		}
		if s.newestAt > 0 {
			x.NewestAt = time.UnixMicro(s.newestAt).UTC()
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(x.Lines, func(a, b summarisedLine) int { return bytes.Compare(a.Line[:], b.Line[:]) })
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte("\n}"))
	return fmt.Appendf(b, summarySum, message.Sum(b)), nil
}

// summarySum is how index.json ends: with the sum of the bytes before.
const summarySum = ",\n  \"sum\": \"%016x\"\n}\n"

// IsSummary reports whether these bytes are what [Index.Summary] once returned.
func IsSummary(b []byte) bool {
	n := len(b) - len(fmt.Sprintf(summarySum, 0))
	return n > 0 && string(b[n:]) == fmt.Sprintf(summarySum, message.Sum(b[:n]))
}
