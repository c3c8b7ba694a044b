package integrity

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// wrongLines compares the table of lines with what is committed. A line's own messages prove its base, and the first of
// them names the message before it, which proves the parent. A line without messages cannot begin beyond its parent's
// end. fixed is the corrected metadata.
func wrongLines(m *ctxfolder.Metadata, dir *ctxfolder.Dir, log *index.Log) (wrong []string, fixed *ctxfolder.Metadata, err error) {
	all, _, err := log.AllCounts()
	if err != nil {
		return nil, nil, err
	}
	fixed = m.Clone()
	for i := range fixed.Lines {
		l := &fixed.Lines[i]
		own := all[l.ID]
		if own.Count > 0 && own.Base != l.Base {
			wrong = append(
				wrong,
				fmt.Sprintf("line %s begins at %d according to its messages, and at %d according to metadata.json", l.ID, own.Base, l.Base),
			)
			l.Base = own.Base
		}
	}
	reach := branch.Reach(fixed)
	for i := range fixed.Lines {
		l := &fixed.Lines[i]
		p, ok := fixed.Line(l.Parent)
		if _, shown := reach[l.ID]; !ok || !shown {
			continue // a collection may have cut the parent, and stopped before it removed both from metadata.json
		}
		if end := max(all[p.ID].End(), p.Base); l.Base > end && all[l.ID].Count == 0 {
			wrong = append(wrong, fmt.Sprintf("line %s begins at %d, beyond the end %d of its parent", l.ID, l.Base, end))
			l.Base = end
		}
	}
	more, err := wrongParents(fixed, dir, log)
	return append(wrong, more...), fixed, err
}

// wrongParents corrects the parents of lines: the parent holds or inherits the message before a line's first own one.
// If no line has that message, the parent stays.
func wrongParents(m *ctxfolder.Metadata, dir *ctxfolder.Dir, log *index.Log) (wrong []string, err error) {
	before := func(line uuid.UUID, base int64) (id uuid.UUID, own bool, err error) {
		segments, err := branch.Lines(m, line, base)
		if err != nil {
			return id, false, nil //nolint:nilerr // a line that is not there has no message
		}
		for _, seg := range segments {
			if seg.From < base {
				entries, err := log.Entries(seg.Line, base-1, base)
				if err != nil || len(entries) == 0 {
					return id, false, err
				}
				return entries[0].ID, seg.Line == line, nil
			}
		}
		return id, false, nil
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		if l.Base == 0 {
			continue
		}
		first, err := log.Entries(l.ID, l.Base, l.Base+1)
		if err != nil {
			return wrong, err
		}
		if len(first) == 0 {
			continue
		}
		raw, is, _ := first[0].ReadFile(dir, l.Folder)
		if !is.Whole() {
			raw, _ = log.ReadRecord(&first[0]) // it is in a pack or a journal
		}
		env, perr := message.Parse(raw)
		if perr != nil || env.Prev == uuid.Nil {
			continue
		}
		if id, _, err := before(l.Parent, l.Base); err != nil || id == env.Prev {
			if err != nil {
				return wrong, err
			}
			continue
		}
		for _, p := range m.Lines {
			id, own, err := before(p.ID, l.Base)
			if err != nil {
				return wrong, err
			}
			if own && id == env.Prev && !descends(m, p.ID, l.ID) {
				wrong = append(
					wrong,
					fmt.Sprintf("line %s continues line %s according to its messages, and %s according to metadata.json", l.ID, p.ID, l.Parent),
				)
				l.Parent = p.ID
				break
			}
		}
	}
	return wrong, nil
}

// descends reports whether a line is another one or descends from it.
func descends(m *ctxfolder.Metadata, line, from uuid.UUID) bool {
	lines, err := branch.Lines(m, line, 0)
	return err != nil || slices.ContainsFunc(lines, func(s branch.Segment) bool { return s.Line == from })
}

// copied returns the metadata of another context if its folder was copied under this one's name, else nil.
func copied(dir *ctxfolder.Dir) *ctxfolder.Metadata {
	raw, err := vfs.ReadFile(dir.FS, ctxfolder.MetadataFile, ctxfolder.MaxMetadata)
	if err != nil {
		return nil
	}
	m, err := ctxfolder.ParseMetadata(raw)
	if err != nil || m.ID == dir.ID {
		return nil
	}
	m.ID = dir.ID
	return m
}

// completed adds lines to an older copy of metadata: those that messages and index.json prove and the copy lacks.
func completed(m *ctxfolder.Metadata, dir *ctxfolder.Dir) *ctxfolder.Metadata {
	proven, err := reconstruct(dir)
	if err != nil {
		return m
	}
	more := m.Clone()
	for _, b := range proven.Branches {
		l, ok := proven.Line(b.Line)
		if _, known := m.Line(b.Line); known || !ok || b.Line == firstLine(dir) {
			continue
		}
		if slices.ContainsFunc(m.Lines, func(other ctxfolder.Line) bool { return other.Folder == l.Folder }) {
			continue // more likely a message of that line with a damaged id
		}
		b.Name = free(more, b.Name)
		more.Lines, more.Branches = append(more.Lines, *l), append(more.Branches, b)
	}
	raw, err := more.Encode()
	if err != nil {
		return m
	}
	if more, err = ctxfolder.ParseMetadata(raw); err != nil {
		return m // the added lines contradict the copy
	}
	return more
}

// free returns a name that no branch has, derived from name.
func free(m *ctxfolder.Metadata, name string) string {
	if _, err := branch.Folder(name); err != nil {
		name = "recovered"
	}
	for n, stem := 2, name; branch.Taken(m, name); n++ {
		name = fmt.Sprintf("%.200s (%d)", stem, n)
	}
	return name
}

// openMetadata reads metadata.json or its best substitute. Without either, metadata stays nil.
func (x *examination) openMetadata() error {
	m, source, err := x.usableMetadata()
	if err == nil {
		x.metadata = m
		if why := x.metadataDiffers(); why != "" {
			return x.report(repairable(KindMetadata, SeverityWarning, ctxfolder.MetadataFile, why))
		}
		return nil
	}
	if !errors.Is(err, ctxfolder.ErrMetadata) {
		return err
	}
	p := problem{Finding: Finding{
		Kind: KindMetadata, Severity: SeverityError, Path: ctxfolder.MetadataFile, Detail: err.Error(), Repairable: m != nil,
	}}
	if m != nil {
		p.Detail += "; recoverable from " + source
	}
	if committed, cerr := x.Log.Committed(); cerr == nil && committed != nil && !committed.IsBefore() {
		p.Severity = SeverityWarning // a crash can have torn it: nothing is lost
	}
	x.metadata = m
	x.Dir.Assume(m)
	return x.report(p)
}

// metadataDiffers says how metadata.json differs from what the engine would have written; "" if it does not, or is only
// behind.
func (c *Context) metadataDiffers() string {
	switch _, is, _, _ := c.Log.Metadata(); is {
	case ctxfolder.ProjectionEdited:
		return "it was edited by hand"
	case ctxfolder.ProjectionAltered:
		return "it is not what was written, and the difference does not count"
	case ctxfolder.ProjectionUnknown:
		return "it was edited, but the file is older than the newest change and does not say what was edited: none of its edits count"
	default:
		return ""
	}
}

// usableMetadata returns metadata.json, or its best substitute with the source and the error of metadata.json.
func (c *Context) usableMetadata() (m *ctxfolder.Metadata, source string, err error) {
	var is ctxfolder.Projection
	for try := range usualTries {
		c.wait(try)
		m, is, _, err = c.Log.Metadata()
		if err == nil && is != ctxfolder.ProjectionUnusable {
			return m, "", nil
		}
	}
	if !errors.Is(err, ctxfolder.ErrMetadata) {
		return nil, "", err
	}
	if committed, cerr := c.Log.Committed(); cerr == nil && committed != nil {
		return completed(committed, c.Dir), "the journal", err
	}
	if m := copied(c.Dir); m != nil {
		return m, "the context that it was copied from", err
	}
	m, rerr := reconstruct(c.Dir)
	if rerr != nil {
		return nil, "", errors.Join(err, rerr)
	}
	return m, "the messages", err
}
