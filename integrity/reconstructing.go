package integrity

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// strayed reports whether the only message of a line rather belongs to another line in the same folder that lacks a
// message at its position. A flipped bit in the line's id causes this.
func strayed(id uuid.UUID, f *found, lines map[uuid.UUID]*found, positions map[uuid.UUID]map[uuid.UUID]int64) bool {
	of := lacking(f.base, id, lines, positions)
	return of != uuid.Nil && lines[of].folder == f.folder
}

// lacking returns the only line that lacks the message at a position; uuid.Nil if there are several, or none.
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

// found is what the messages of a line prove about it.
type found struct {
	folder string
	base   int64
	prev   uuid.UUID // of the message at base
	stored time.Time // of the newest message
	first  time.Time // of the oldest message
	name   string    // of the branch when the newest message was stored
}

// telling is what messages prove about lines.
type telling struct {
	lines     map[uuid.UUID]*found
	positions map[uuid.UUID]map[uuid.UUID]int64 // of each line's messages
}

// hear takes in a message in a folder.
func (t *telling) hear(env *message.Envelope, folder string) {
	l := t.lines[env.Line]
	if l == nil {
		l = &found{folder: folder, base: env.Position, prev: env.Prev, stored: env.StoredAt, first: env.StoredAt, name: env.Branch}
		t.lines[env.Line], t.positions[env.Line] = l, map[uuid.UUID]int64{}
	}
	t.positions[env.Line][env.ID] = env.Position
	if env.Position < l.base {
		l.base, l.prev = env.Position, env.Prev
	}
	if env.StoredAt.After(l.stored) {
		l.stored, l.name, l.folder = env.StoredAt, env.Branch, folder
	}
	if env.StoredAt.Before(l.first) {
		l.first = env.StoredAt
	}
}

// reconstruct builds metadata from message files and packs, for when every copy of metadata.json is lost. Branches get
// the names that they had when their newest messages were stored. Title, configuration and branches without messages of
// their own are lost. Without any message, it returns the metadata of an empty context.
func reconstruct(dir *ctxfolder.Dir) (*ctxfolder.Metadata, error) {
	t := &telling{map[uuid.UUID]*found{}, map[uuid.UUID]map[uuid.UUID]int64{}}
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
				return nil // reported when the messages are checked
			}
			t.hear(&env, folder)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for id, f := range t.lines {
		if len(t.positions[id]) == 1 && strayed(id, f, t.lines, t.positions) {
			delete(t.lines, id)
		}
	}
	if err := t.hearPacks(dir); err != nil {
		return nil, err
	}
	withoutFiles(dir, t.lines)
	if len(t.lines) == 0 {
		t.lines[firstLine(dir)] = &found{folder: ctxfolder.FolderPrefix + "main", stored: time.Now().UTC(), first: time.Now().UTC()}
	}
	return assemble(dir.ID, t.lines, t.positions)
}

// hearPacks takes in the messages of packs. An archived message does not name its folder: it is the folder of the
// line's files, else the one in index.json, else the one named after the branch.
func (t *telling) hearPacks(dir *ctxfolder.Dir) error {
	folders := map[uuid.UUID]string{}
	known, _ := index.FoldedLines(dir)
	for _, l := range known {
		if ctxfolder.ValidFolder(l.Folder) {
			folders[l.Line] = l.Folder
		}
	}
	for id, f := range t.lines {
		folders[id] = f.folder
	}
	return index.EachArchived(dir, func(env *message.Envelope) {
		folder := folders[env.Line]
		if folder == "" {
			var err error
			if folder, err = branch.Folder(cmp.Or(env.Branch, "main")); err != nil {
				folder = ctxfolder.FolderPrefix + "main"
			}
		}
		t.hear(env, folder)
	})
}

// withoutFiles adds the lines that only index.json knows: none of their messages has a file. It skips a line that
// begins on another line, since nothing names that one.
func withoutFiles(dir *ctxfolder.Dir, lines map[uuid.UUID]*found) {
	known, at := index.FoldedLines(dir)
	for _, l := range known {
		if lines[l.Line] != nil || l.Base != 0 || !ctxfolder.ValidFolder(l.Folder) {
			continue
		}
		lines[l.Line] = &found{folder: l.Folder, stored: at, first: at, name: strings.TrimPrefix(l.Folder, ctxfolder.FolderPrefix)}
	}
}

// firstLine is the line of a context of which nothing remains.
func firstLine(dir *ctxfolder.Dir) uuid.UUID { return message.DerivedID(dir.ID, "main") }

// assemble builds metadata from what is known about lines.
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
			l.Base = 0 // the messages before its first one are lost
		}
		m.Lines = append(m.Lines, l)
		if f.stored.After(m.UpdatedAt) {
			m.UpdatedAt = f.stored
		}
	}
	// The newest line of a name gets it. The others get names derived from it, so that every line stays visible.
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
