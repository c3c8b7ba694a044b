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

// wrongBases compares the table of lines with what is committed. A line's base is told by where its own messages begin; a
// line without any cannot begin beyond its parent's end. fixed is the metadata set right.
func wrongBases(m *ctxfolder.Metadata, log *index.Log) (wrong []string, fixed *ctxfolder.Metadata, err error) {
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
	return wrong, fixed, nil
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
	withoutFiles(dir, lines)
	if len(lines) == 0 {
		lines[message.DerivedID(dir.ID, "main")] = &found{folder: ctxfolder.FolderPrefix + "main", stored: time.Now().UTC(), first: time.Now().UTC()}
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
		name := cmp.Or(lines[line].name, "main")
		if _, err := branch.Folder(name); err != nil {
			name = "recovered"
		}
		for n, stem := 2, name; branch.Taken(m, name); n++ {
			name = fmt.Sprintf("%.200s (%d)", stem, n)
		}
		m.Branches = append(m.Branches, ctxfolder.Branch{Name: name, Line: line})
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
