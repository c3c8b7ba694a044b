package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// openMetadata reads the metadata. It stays nil if nothing has it.
func (x *examination) openMetadata() error {
	return x.reportConfirmed(func() ([]problem, error) {
		m, is, why := x.effective()
		if why != nil && !errors.Is(why, ctxfolder.ErrMetadata) {
			return nil, why
		}
		x.metadata = m
		p, err := x.judgeMetadata(m, is, why)
		if err != nil || p == nil {
			return nil, err
		}
		return []problem{*p}, nil
	})
}

// judgeMetadata returns the problem of metadata.json, nil if it has none. A file that is behind is none: the next writer
// replaces it.
func (c *Context) judgeMetadata(m *ctxfolder.Metadata, is ctxfolder.Projection, why error) (*problem, error) {
	p := repairable(KindMetadata, SeverityInfo, ctxfolder.MetadataFile, "")
	switch is {
	case ctxfolder.ProjectionEdited:
		p.Detail = "it was edited by hand"
	case ctxfolder.ProjectionAltered:
		p.Detail = "it differs from what was written; the difference is ignored"
	case ctxfolder.ProjectionUnknown:
		p.Severity = SeverityWarning
		p.Detail = "it was edited, but is older than the newest change and does not record what was edited: its edits are ignored"
	case ctxfolder.ProjectionNewer:
		committed, err := c.Index.Metadata()
		if err != nil {
			return nil, err
		}
		p.Severity, p.Detail = SeverityWarning, "the metadata is missing from logs and segments"
		if committed != nil {
			p.Detail = fmt.Sprintf("revision %d is missing from logs and segments", m.Revision)
		}
	case ctxfolder.ProjectionUnusable:
		p.Severity, p.Detail = SeverityWarning, why.Error()
		if m == nil {
			p.Severity, p.Repairable = SeverityError, false
			p.Detail += "; the metadata is missing from logs and segments"
		}
	default:
		return nil, nil
	}
	return &p, nil
}

// maxSummary bounds what is read of index.json, in bytes.
const maxSummary = 64 << 20

// summary examines index.json. It may be missing, or older than the newest records.
func (x *examination) summary() error {
	return x.reportConfirmed(func() ([]problem, error) {
		b, err := vfs.ReadFile(x.Dir.FS, ctxfolder.IndexFile, maxSummary)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && index.IsSummary(b):
			return nil, nil
		case vfs.IsShortage(err):
			return nil, err
		}
		return []problem{repairable(KindIndex, SeverityWarning, ctxfolder.IndexFile, "it differs from what was written; no reader uses it")}, nil
	})
}

// structure compares the table of lines with what is committed.
func (x *examination) structure() error {
	return x.reportConfirmed(x.wrongLines)
}

func (x *examination) wrongLines() (problems []problem, err error) {
	all, _, err := x.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	add := func(line uuid.UUID, mends bool, format string, args ...any) {
		p := repairable(KindStructure, SeverityError, ctxfolder.MetadataFile, fmt.Sprintf(format, args...))
		p.line, p.Repairable = line, mends
		problems = append(problems, p)
	}
	reach := branch.Reach(x.metadata)
	for i := range x.metadata.Lines {
		l := &x.metadata.Lines[i]
		own := all[l.ID]
		if own.Count > 0 && own.Base != l.Base {
			add(l.ID, false, "line %s has base %d, but its messages begin at position %d", l.ID, l.Base, own.Base)
		}
		p, ok := x.metadata.Line(l.Parent)
		if _, shown := reach[l.ID]; !ok || !shown {
			continue // a collection may have cut the parent, and stopped before it removed both from the metadata
		}
		if end := endOf(all, p); l.Base > end {
			add(l.ID, own.Count == 0, "line %s has base %d, beyond the end %d of its parent", l.ID, l.Base, end)
		}
	}
	for id, c := range all {
		if _, ok := x.metadata.Line(id); !ok && c.Count > 0 {
			add(id, true, "line %s is missing from the metadata: %d messages are not shown", id, c.Count)
		}
	}
	slices.SortFunc(problems, comparePlaces)
	return problems, nil
}

func endOf(all map[uuid.UUID]index.Counts, l *ctxfolder.Line) int64 {
	return max(all[l.ID].End(), l.Base)
}
