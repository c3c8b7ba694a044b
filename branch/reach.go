package branch

import (
	"fmt"
	"iter"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Whole is the reach of a line that a branch points at: every message it has and will get.
const Whole = math.MaxInt64

// Reach returns how far each line is shown by some branch: the position behind the last message that one shows. It is
// [Whole] for a line that a branch points at; for another one it is the largest base of the lines that begin on it and are
// reached themselves. A line that is missing from the result is not reached at all: no branch descends from it.
func Reach(m *ctxfolder.Metadata) map[uuid.UUID]int64 {
	lines := byID(m)
	reach := make(map[uuid.UUID]int64, len(m.Lines))
	for _, b := range m.Branches {
		_, walked := reach[b.Line]
		reach[b.Line] = Whole
		// What a line shows of its ancestors depends on its base alone, so each is walked up from once.
		for l := lines[b.Line]; l != nil && l.Parent != uuid.Nil && !walked; l = lines[l.Parent] {
			var before int64
			before, walked = reach[l.Parent]
			reach[l.Parent] = max(before, l.Base)
		}
	}
	return reach
}

// Forks yields the lines that prove that the line on which they begin had a message at every position below their base. A collection cuts neither what
// a branch shows nor a line at which a branch points, so a line counts if some branch descends from it, or if a branch points at its parent.
func Forks(m *ctxfolder.Metadata) iter.Seq[*ctxfolder.Line] {
	return func(yield func(*ctxfolder.Line) bool) {
		reach := Reach(m)
		for i := range m.Lines {
			l := &m.Lines[i]
			if _, reached := reach[l.ID]; l.Parent != uuid.Nil && (reached || reach[l.Parent] == Whole) && !yield(l) {
				return
			}
		}
	}
}

// Showing returns how many branches show the message at one of a line's own positions.
func Showing(m *ctxfolder.Metadata, line uuid.UUID, position int64) (branches int) {
	lines := byID(m)
	shows := map[uuid.UUID]bool{line: true}
	for _, b := range m.Branches {
		var path []uuid.UUID
		is, known := shows[b.Line]
		for l := lines[b.Line]; l != nil && !known; l = lines[l.Parent] {
			path = append(path, l.ID)
			if is, known = shows[l.Parent]; l.Parent == line {
				is = l.Base > position
			}
		}
		for _, id := range path {
			shows[id] = is
		}
		if is {
			branches++
		}
	}
	return branches
}

func byID(m *ctxfolder.Metadata) map[uuid.UUID]*ctxfolder.Line {
	lines := make(map[uuid.UUID]*ctxfolder.Line, len(m.Lines))
	for i := range m.Lines {
		lines[m.Lines[i].ID] = &m.Lines[i]
	}
	return lines
}

// Orphan is a line of which no branch shows the end.
type Orphan struct {
	Line ctxfolder.Line
	From int64  // what lies from here on is shown by no branch
	Gone bool   // no branch descends from the line: it can leave the table
	Name string // the branch's name that it lost last
	Why  string // how it lost it
}

// Orphans returns the lines whose end no branch shows, in the order of the table of lines.
func Orphans(m *ctxfolder.Metadata) (orphans []Orphan) {
	reach := Reach(m)
	lost := make(map[uuid.UUID]ctxfolder.Removed, len(m.Removed))
	for _, r := range m.Removed {
		lost[r.Line] = r
	}
	for _, l := range m.Lines {
		to, reached := reach[l.ID]
		if to == Whole {
			continue
		}
		r := lost[l.ID]
		orphans = append(orphans, Orphan{Line: l, From: max(to, l.Base), Gone: !reached, Name: r.Name, Why: r.Why})
	}
	return orphans
}

// Forget takes lines that no branch descends from out of the metadata. It leaves others, and those that a line begins on that
// stays.
func Forget(m *ctxfolder.Metadata, lines map[uuid.UUID]bool) {
	reach := Reach(m)
	parent := make(map[uuid.UUID]uuid.UUID, len(m.Lines))
	for _, l := range m.Lines {
		parent[l.ID] = l.Parent
	}
	stays := make(map[uuid.UUID]bool, len(m.Lines))
	for _, l := range m.Lines {
		if _, reached := reach[l.ID]; reached || !lines[l.ID] {
			for id := l.ID; id != uuid.Nil && !stays[id]; id = parent[id] {
				stays[id] = true
			}
		}
	}
	m.Lines = slices.DeleteFunc(m.Lines, func(l ctxfolder.Line) bool { return !stays[l.ID] })
	m.Removed = slices.DeleteFunc(m.Removed, func(r ctxfolder.Removed) bool { return !stays[r.Line] })
}

// Return puts a line that was forgotten back into the table, without a branch. Its folder becomes the one that bears the name,
// or where that cannot be the one it had. It fails with ErrPosition when its parent, of which ends tells the length, is missing, or ends before
// the line's base or begins behind it.
func Return(m *ctxfolder.Metadata, line ctxfolder.Line, name string, ends func(uuid.UUID) (int64, error)) error {
	if _, there := m.Line(line.ID); there {
		return nil
	}
	if line.Parent != uuid.Nil {
		parent, ok := m.Line(line.Parent)
		if !ok {
			return fmt.Errorf("%w: line %s, which it begins on, is not there", ErrPosition, line.Parent)
		}
		if line.Base < parent.Base {
			return fmt.Errorf("%w: line %s, which it begins on at %d, begins at %d", ErrPosition, line.Parent, line.Base, parent.Base)
		}
		end, err := ends(parent.ID)
		if err != nil {
			return err
		}
		if end < line.Base {
			return fmt.Errorf("%w: line %s, which it begins on at %d, ends at %d", ErrPosition, line.Parent, line.Base, end)
		}
	}
	if folder, err := Folder(name); err == nil {
		line.Folder = folder
	}
	if taken, ok := folderLike(m, line.Folder); ok {
		line.Folder = taken
	}
	m.Lines = append(m.Lines, line)
	return nil
}

// Name gives a line without a branch one: of that name, or where it is taken of one with a number behind it. It returns the
// name, that of the branch which the line has already.
func Name(m *ctxfolder.Metadata, line uuid.UUID, name string) (string, error) {
	for _, b := range m.Branches {
		if b.Line == line {
			return b.Name, nil
		}
	}
	if _, ok := m.Line(line); !ok {
		return "", fmt.Errorf("%w: %s", errDescent, line)
	}
	if _, err := Folder(name); err != nil {
		name = "restored"
	}
	free := name
	for n := 2; ; n++ {
		_, err := freeName(m, free, "")
		if err == nil {
			break
		}
		if n > len(m.Branches)+2 { // one of so many is free, unless the name is too long for a number
			name, n = "restored", 1
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
	m.Branches = append(m.Branches, ctxfolder.Branch{Name: free, Line: line})
	m.Removed = slices.DeleteFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Line == line })
	return free, nil
}
