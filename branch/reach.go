package branch

import (
	"fmt"
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
		if lines[r.Line] != nil {
			show(r.Line)
		}
	}
	return reach
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

// Purge takes removed lines out of the metadata: those of the entries that go. Lines that nothing reaches any more leave
// the table. It returns the lines of which nothing shows the end now.
func Purge(m *ctxfolder.Metadata, goes func(r *ctxfolder.Removed) bool) (cut []Orphan) {
	m.Removed = slices.DeleteFunc(m.Removed, func(r ctxfolder.Removed) bool { return goes(&r) })
	cut = Orphans(m)
	reach := Reach(m)
	m.Lines = slices.DeleteFunc(m.Lines, func(l ctxfolder.Line) bool {
		_, reached := reach[l.ID]
		return !reached
	})
	return cut
}

// Name gives a line a branch of that name, or of the name and a number where the name is taken, with what its branch had
// before it was removed. It returns the branch's name. A line that already has a branch keeps it.
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
	b := ctxfolder.Branch{Line: line}
	if i := slices.IndexFunc(m.Removed, func(r ctxfolder.Removed) bool { return r.Line == line }); i >= 0 {
		b = m.Removed[i].Branch
		m.Removed = slices.Delete(m.Removed, i, i+1)
	}
	b.Name = free
	m.Branches = append(m.Branches, b)
	return free, nil
}
