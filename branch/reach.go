package branch

import (
	"fmt"
	"iter"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Whole is the reach of a line at which a branch points: every present and future message.
const Whole = math.MaxInt64

// Reach returns for each line how far a branch, or a removed line in its grace period, shows it: the position behind
// the last shown message. The reach is [Whole] for a line at which a branch points and for a removed line. For another
// line it is the largest base of the reached lines that begin on it. A line from which neither descends is missing from
// the result.
func Reach(m *ctxfolder.Metadata) map[uuid.UUID]int64 {
	lines := byID(m)
	reach := make(map[uuid.UUID]int64, len(m.Lines))
	show := func(line uuid.UUID) {
		_, walked := reach[line]
		reach[line] = Whole
		// What a line shows of its ancestors depends only on its base, so one walk up from each line suffices.
		for l := lines[line]; l != nil && l.Parent != uuid.Nil && !walked; l = lines[l.Parent] {
			var before int64
			before, walked = reach[l.Parent]
			reach[l.Parent] = max(before, l.Base)
		}
	}
	for _, b := range m.Branches {
		show(b.Line)
	}
	for _, r := range m.Removed {
		if r.Why != WhyPurged && lines[r.Line] != nil {
			show(r.Line)
		}
	}
	return reach
}

// Forks yields the lines that prove that their parent had a message at every position below their base. A collection
// cuts nothing within the [Reach] of a line. So a line counts if it is reached, or if its parent is reached as a whole.
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

// Orphan is a line whose end is shown neither by a branch nor by a removed line.
type Orphan struct {
	Line ctxfolder.Line
	From int64 // nothing shows the messages from here on
	Gone bool  // nothing descends from the line: it can leave the table
}

// Orphans returns the lines whose end nothing shows, in the order of the table of lines.
func Orphans(m *ctxfolder.Metadata) (orphans []Orphan) {
	reach := Reach(m)
	for _, l := range m.Lines {
		if to, reached := reach[l.ID]; to != Whole {
			orphans = append(orphans, Orphan{Line: l, From: max(to, l.Base), Gone: !reached})
		}
	}
	return orphans
}

// Purge marks a line without a branch as purged: it shows nothing any more, and cannot be restored.
func Purge(m *ctxfolder.Metadata, line uuid.UUID) {
	i := slices.IndexFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Line == line })
	if i < 0 {
		i, m.Removed = len(m.Removed), append(m.Removed, ctxfolder.Removed{Line: line, At: m.UpdatedAt.UTC()})
	}
	m.Removed[i].Why = WhyPurged
}

// IsPurged reports whether a line is marked as purged.
func IsPurged(m *ctxfolder.Metadata, line uuid.UUID) bool {
	return slices.ContainsFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Line == line && r.Why == WhyPurged })
}

// Forget removes the purged lines from the metadata, except ancestors of lines that stay.
func Forget(m *ctxfolder.Metadata) {
	reach := Reach(m)
	parent := make(map[uuid.UUID]uuid.UUID, len(m.Lines))
	for _, l := range m.Lines {
		parent[l.ID] = l.Parent
	}
	purged := map[uuid.UUID]bool{}
	for _, r := range m.Removed {
		purged[r.Line] = purged[r.Line] || r.Why == WhyPurged
	}
	stays := make(map[uuid.UUID]bool, len(m.Lines))
	for _, l := range m.Lines {
		if _, reached := reach[l.ID]; reached || !purged[l.ID] {
			for id := l.ID; id != uuid.Nil && !stays[id]; id = parent[id] {
				stays[id] = true
			}
		}
	}
	m.Lines = slices.DeleteFunc(m.Lines, func(l ctxfolder.Line) bool { return !stays[l.ID] })
	m.Removed = slices.DeleteFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Why == WhyPurged || !stays[r.Line] })
}

// Return puts a line of an item of the format before back into the table, without a branch. Its folder becomes the
// folder of the name, or that of the item where the name is invalid, with a number where another line has it. ends
// returns the length of a line. Return fails with ErrPosition when the line's parent is missing, ends before the line's
// base or begins behind it.
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
	line.Folder = freeFolder(m, line.Folder)
	m.Lines = append(m.Lines, line)
	return nil
}

// Name gives a line a branch of that name, or of the name and a number where the name is taken. It returns the branch's
// name. A line that already has a branch keeps it.
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
		if n > len(m.Branches)+2 { // one of so many names is free, unless the name is too long for a number
			name, n = "restored", 1
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
	m.Branches = append(m.Branches, ctxfolder.Branch{Name: free, Line: line})
	m.Removed = slices.DeleteFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Line == line })
	return free, nil
}
