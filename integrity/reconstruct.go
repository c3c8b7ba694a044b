package integrity

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// evidence is what messages prove about lines.
type evidence map[uuid.UUID]*lineEvidence

// lineEvidence is what the messages of a line prove about it.
type lineEvidence struct {
	folder    string
	base      int64
	prev      uuid.UUID // of the message at base
	stored    time.Time // of the newest message
	first     time.Time // of the oldest message
	name      string    // of the branch when the newest message was stored
	positions map[uuid.UUID]int64
}

// add notes a message in a folder.
func (v evidence) add(env *message.Envelope, folder string) {
	l := v[env.Line]
	if l == nil {
		l = &lineEvidence{
			folder: folder, base: env.Position, prev: env.Prev, stored: env.StoredAt, first: env.StoredAt, name: env.Branch,
			positions: map[uuid.UUID]int64{},
		}
		v[env.Line] = l
	}
	l.positions[env.ID] = env.Position
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

// dropStrays drops lines of one message that rather belongs to another line in the same folder, which lacks a message
// at its position. A flipped bit in the line's id causes this.
func (v evidence) dropStrays() {
	for id, l := range v {
		if len(l.positions) > 1 {
			continue
		}
		if of := v.lacking(l.base, id); of != uuid.Nil && v[of].folder == l.folder {
			delete(v, id)
		}
	}
}

// lacking returns the only line other than one that lacks the message at a position; uuid.Nil if there are several, or
// none.
func (v evidence) lacking(position int64, but uuid.UUID) (line uuid.UUID) {
	for id, l := range v {
		end, there := l.base, false
		for _, at := range l.positions {
			end, there = max(end, at+1), there || at == position
		}
		if id == but || there || position < l.base || position > end {
			continue
		}
		if line != uuid.Nil {
			return uuid.Nil
		}
		line = id
	}
	return line
}

// reconstruct builds metadata from message files and packs, for when every copy of metadata.json is lost. Branches get
// the names that they had when their newest messages were stored. Title, configuration and branches without messages of
// their own are lost. Without any message, it returns the metadata of an empty context.
func reconstruct(dir *ctxfolder.Dir) (*ctxfolder.Metadata, error) {
	v := evidence{}
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
			v.add(&env, folder)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	v.dropStrays()
	if err := v.addPacks(dir); err != nil {
		return nil, err
	}
	v.addFolded(dir)
	if len(v) == 0 {
		v[firstLine(dir)] = &lineEvidence{folder: ctxfolder.FolderPrefix + "main", stored: time.Now().UTC(), first: time.Now().UTC()}
	}
	return v.metadata(dir.ID)
}

// addPacks notes the messages of packs. An archived message does not name its folder: it is the folder of the line's
// files, else the one in index.json, else the one named after the branch.
func (v evidence) addPacks(dir *ctxfolder.Dir) error {
	folders := map[uuid.UUID]string{}
	known, _ := index.FoldedLines(dir)
	for _, l := range known {
		if ctxfolder.ValidFolder(l.Folder) {
			folders[l.Line] = l.Folder
		}
	}
	for id, l := range v {
		folders[id] = l.folder
	}
	return index.EachArchived(dir, func(env *message.Envelope) {
		folder := folders[env.Line]
		if folder == "" {
			var err error
			if folder, err = branch.Folder(cmp.Or(env.Branch, "main")); err != nil {
				folder = ctxfolder.FolderPrefix + "main"
			}
		}
		v.add(env, folder)
	})
}

// addFolded adds the lines that only index.json knows: none of their messages has a file. It skips a line that
// begins on another line, since nothing names that one.
func (v evidence) addFolded(dir *ctxfolder.Dir) {
	known, at := index.FoldedLines(dir)
	for _, l := range known {
		if v[l.Line] != nil || l.Base != 0 || !ctxfolder.ValidFolder(l.Folder) {
			continue
		}
		v[l.Line] = &lineEvidence{
			folder: l.Folder, stored: at, first: at, name: strings.TrimPrefix(l.Folder, ctxfolder.FolderPrefix),
		}
	}
}

// firstLine is the line of a context of which nothing remains.
func firstLine(dir *ctxfolder.Dir) uuid.UUID { return message.DerivedID(dir.ID, "main") }

// metadata builds metadata from the evidence.
func (v evidence) metadata(id uuid.UUID) (*ctxfolder.Metadata, error) {
	ids := slices.SortedFunc(maps.Keys(v), func(a, b uuid.UUID) int {
		return cmp.Or(cmp.Compare(v[a].base, v[b].base), v[a].first.Compare(v[b].first), compareID(a, b))
	})
	m := &ctxfolder.Metadata{ID: id, Revision: 1, CreatedAt: v[ids[0]].first, UpdatedAt: v[ids[0]].stored}
	for _, line := range ids {
		f := v[line]
		l := ctxfolder.Line{ID: line, Base: f.base, Folder: f.folder}
		for _, parent := range ids {
			if at, ok := v[parent].positions[f.prev]; ok && parent != line && at == f.base-1 {
				l.Parent = parent
			}
		}
		if l.Parent == uuid.Nil && f.base > 0 {
			l.Parent = v.lacking(f.base-1, line)
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
	slices.SortStableFunc(ids, func(a, b uuid.UUID) int { return v[b].stored.Compare(v[a].stored) })
	for _, line := range ids {
		m.Branches = append(m.Branches, ctxfolder.Branch{Name: free(m, cmp.Or(v[line].name, "main")), Line: line})
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
