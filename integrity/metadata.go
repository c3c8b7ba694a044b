package integrity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// wrongLines compares the table of lines with what is committed. A line's base is told by where its own messages begin, and its
// parent by what the first of them says was before it; a line without any cannot begin beyond its parent's end. fixed is the
// metadata set right.
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
			wrong = append(wrong, fmt.Sprintf("line %s begins at %d by its messages, and at %d by metadata.json", l.ID, own.Base, l.Base))
			l.Base = own.Base
		}
	}
	for i := range fixed.Lines {
		l := &fixed.Lines[i]
		p, ok := fixed.Line(l.Parent)
		if !ok {
			continue
		}
		if end := max(all[p.ID].End(), p.Base); l.Base > end && all[l.ID].Count == 0 {
			wrong = append(wrong, fmt.Sprintf("line %s begins at %d, beyond the end %d of its parent", l.ID, l.Base, end))
			l.Base = end
		}
	}
	more, err := wrongParents(fixed, dir, log)
	return append(wrong, more...), fixed, err
}

// wrongParents sets right the parents of lines: the message before a line's first own one is on the parent's line, or inherited
// by it. Where no line has that message nothing can be said.
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
		env, perr := message.Parse(raw)
		if is != index.FileExact || perr != nil || env.Prev == uuid.Nil {
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
				wrong = append(wrong, fmt.Sprintf("line %s goes on from line %s by its messages, and from %s by metadata.json", l.ID, p.ID, l.Parent))
				l.Parent = p.ID
				break
			}
		}
	}
	return wrong, nil
}

// descends reports whether a line is another one or comes from it.
func descends(m *ctxfolder.Metadata, line, from uuid.UUID) bool {
	lines, err := branch.Lines(m, line, 0)
	return err != nil || slices.ContainsFunc(lines, func(s branch.Segment) bool { return s.Line == from })
}

// copied returns the metadata of another context whose folder was copied under this one's name, nil when that is not so.
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

// completed adds the lines to an older copy of metadata that messages and index.json tell of and it does not. Those that were
// collected since are none of them.
func completed(m *ctxfolder.Metadata, dir *ctxfolder.Dir) *ctxfolder.Metadata {
	told, err := reconstruct(dir)
	if err != nil {
		return m
	}
	more := m.Clone()
	for _, b := range told.Branches {
		l, ok := told.Line(b.Line)
		if _, known := m.Line(b.Line); known || !ok || b.Line == firstLine(dir) || collected(dir, b.Line) {
			continue
		}
		if slices.ContainsFunc(m.Lines, func(other ctxfolder.Line) bool { return other.Folder == l.Folder }) {
			continue // more likely a message of that line, with a damaged id
		}
		b.Name = free(more, b.Name)
		more.Lines, more.Branches = append(more.Lines, *l), append(more.Branches, b)
	}
	raw, err := more.Encode()
	if err != nil {
		return m
	}
	if more, err = ctxfolder.ParseMetadata(raw); err != nil {
		return m // they contradict what the copy says
	}
	return more
}

// collected reports whether the end of a line is in the context's trash.
func collected(dir *ctxfolder.Dir, line uuid.UUID) bool {
	for t, err := range ctxfolder.EachTrash(dir.FS, func(_ uuid.UUID, folder bool) bool { return folder }) {
		if err != nil {
			return false
		}
		if t.Problem == nil && t.Item.Kind == ctxfolder.TrashLine && t.Item.Line == line {
			return true
		}
	}
	return false
}

// free returns a name that no branch has, made from one.
func free(m *ctxfolder.Metadata, name string) string {
	if _, err := branch.Folder(name); err != nil {
		name = "recovered"
	}
	for n, stem := 2, name; branch.Taken(m, name); n++ {
		name = fmt.Sprintf("%.200s (%d)", stem, n)
	}
	return name
}

// strayed reports whether the one message of a line is rather that of another line in the same folder, which lacks one at its
// position: then a bit of the line's id was flipped.
func strayed(id uuid.UUID, f *found, lines map[uuid.UUID]*found, positions map[uuid.UUID]map[uuid.UUID]int64) bool {
	of := lacking(f.base, id, lines, positions)
	return of != uuid.Nil && lines[of].folder == f.folder
}

// lacking returns the one line of which the message at a position is missing; uuid.Nil when there are more of them, or none.
func lacking(position int64, but uuid.UUID, lines map[uuid.UUID]*found, positions map[uuid.UUID]map[uuid.UUID]int64) (line uuid.UUID) {
	for id, f := range lines {
		end, there := f.base, false
		for _, at := range positions[id] {
			end, there = max(end, at+1), there || at == position
		}
		if id == but || there || position < f.base || position > end {
			continue
		}
		if line != uuid.Nil {
			return uuid.Nil
		}
		line = id
	}
	return line
}

// found is what the messages of a line tell of it.
type found struct {
	folder string
	base   int64
	prev   uuid.UUID // of the message at base
	stored time.Time // of the newest
	first  time.Time // of the oldest
	name   string    // of the branch at that time
}

// reconstruct makes metadata from message files, for when every copy of it is lost. Names are those the branches had when
// their newest messages were stored. Title, configuration and branches without messages of their own are gone. Without any message
// it is that of an empty context.
func reconstruct(dir *ctxfolder.Dir) (*ctxfolder.Metadata, error) {
	lines := map[uuid.UUID]*found{}
	positions := map[uuid.UUID]map[uuid.UUID]int64{} // of each line's messages
	folders, err := dir.Folders()
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		err := dir.MessageIDs(folder, func(file uuid.UUID) error {
			raw, _, err := dir.ReadMessage(folder, file)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			env, perr := message.Parse(raw)
			if err != nil || perr != nil || env.FileID() != file || env.Line == uuid.Nil {
				return nil // it is told when the messages are looked at
			}
			l := lines[env.Line]
			if l == nil {
				l = &found{folder: folder, base: env.Position, prev: env.Prev, stored: env.StoredAt, first: env.StoredAt, name: env.Branch}
				lines[env.Line], positions[env.Line] = l, map[uuid.UUID]int64{}
			}
			positions[env.Line][env.ID] = env.Position
			if env.Position < l.base {
				l.base, l.prev = env.Position, env.Prev
			}
			if env.StoredAt.After(l.stored) {
				l.stored, l.name, l.folder = env.StoredAt, env.Branch, folder
			}
			if env.StoredAt.Before(l.first) {
				l.first = env.StoredAt
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for id, f := range lines {
		if len(positions[id]) == 1 && strayed(id, f, lines, positions) {
			delete(lines, id)
		}
	}
	withoutFiles(dir, lines)
	if len(lines) == 0 {
		lines[firstLine(dir)] = &found{folder: ctxfolder.FolderPrefix + "main", stored: time.Now().UTC(), first: time.Now().UTC()}
	}
	return assemble(dir.ID, lines, positions)
}

// withoutFiles adds the lines that index.json alone tells of: none of their messages has a file. Where such a line began on
// another one nothing tells which that was.
func withoutFiles(dir *ctxfolder.Dir, lines map[uuid.UUID]*found) {
	known, at := index.FoldedLines(dir)
	for _, l := range known {
		if lines[l.Line] != nil || l.Base != 0 || !ctxfolder.ValidFolder(l.Folder) {
			continue
		}
		lines[l.Line] = &found{folder: l.Folder, stored: at, first: at, name: strings.TrimPrefix(l.Folder, ctxfolder.FolderPrefix)}
	}
}

// firstLine is the line of a context of which nothing is left.
func firstLine(dir *ctxfolder.Dir) uuid.UUID { return message.DerivedID(dir.ID, "main") }

// assemble puts metadata together from what lines are known by.
func assemble(id uuid.UUID, lines map[uuid.UUID]*found, positions map[uuid.UUID]map[uuid.UUID]int64) (*ctxfolder.Metadata, error) {
	ids := make([]uuid.UUID, 0, len(lines))
	for line := range lines {
		ids = append(ids, line)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int {
		return cmp.Or(cmp.Compare(lines[a].base, lines[b].base), lines[a].first.Compare(lines[b].first), compareID(a, b))
	})
	m := &ctxfolder.Metadata{ID: id, Revision: 1, CreatedAt: lines[ids[0]].first, UpdatedAt: lines[ids[0]].stored}
	for _, line := range ids {
		f := lines[line]
		l := ctxfolder.Line{ID: line, Base: f.base, Folder: f.folder}
		for _, parent := range ids {
			if at, ok := positions[parent][f.prev]; ok && parent != line && at == f.base-1 {
				l.Parent = parent
			}
		}
		if l.Parent == uuid.Nil && f.base > 0 {
			l.Parent = lacking(f.base-1, line, lines, positions)
		}
		if l.Parent == uuid.Nil {
			l.Base = 0 // what is missing before its first message is lost
		}
		m.Lines = append(m.Lines, l)
		if f.stored.After(m.UpdatedAt) {
			m.UpdatedAt = f.stored
		}
	}
	// The newest line of a name gets it; the others are named after it, so that nothing is out of sight.
	slices.SortStableFunc(ids, func(a, b uuid.UUID) int { return lines[b].stored.Compare(lines[a].stored) })
	for _, line := range ids {
		m.Branches = append(m.Branches, ctxfolder.Branch{Name: free(m, cmp.Or(lines[line].name, "main")), Line: line})
	}
	m.ActiveBranch = m.Branches[0].Name
	if _, ok := m.Branch("main"); ok {
		m.ActiveBranch = "main"
	}
	raw, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return ctxfolder.ParseMetadata(raw)
}
