package context

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// validate checks what the rest of the program relies on, see [ParseMetadata].
func (m *Metadata) validate() error {
	if err := m.validateMembers(); err != nil {
		return err
	}
	lines := make(map[uuid.UUID]*Line, len(m.Lines))
	var early []*Line // before their parents
	for i := range m.Lines {
		l := &m.Lines[i]
		if _, twice := lines[l.ID]; twice || l.ID == uuid.Nil {
			return errLine(l)
		}
		if i == 0 || l.Folder != m.Lines[i-1].Folder {
			if err := l.validateFolder(); err != nil {
				return err
			}
		}
		if p := lines[l.Parent]; p == nil && l.Parent != uuid.Nil {
			early = append(early, l)
		} else if err := l.continues(p); err != nil {
			return err
		}
		lines[l.ID] = l
	}
	for _, l := range early {
		p, ok := lines[l.Parent]
		if !ok {
			return fmt.Errorf("line %s: parent line %s not found", l.ID, l.Parent)
		}
		if err := l.continues(p); err != nil {
			return err
		}
	}
	if len(early) > 0 { // no line descends from itself if each comes after its parent
		if l, ok := cycle(lines); ok {
			return fmt.Errorf("line %s is its own ancestor", l)
		}
	}
	names := make(map[string]bool, len(m.Branches))
	for i, b := range m.Branches {
		if b.Name == "" || names[b.Name] {
			return errBranch(i)
		}
		names[b.Name] = true
		if lines[b.Line] == nil {
			return errNoLine(b)
		}
	}
	if !names[m.ActiveBranch] {
		return errActive(m)
	}
	return nil
}

// fewRows is how many rows of the tables a change may touch to be checked alone: each of them is compared with all rows.
const fewRows = 16

// validateAfter is validate for metadata that follows was, which is valid. A fork or a rewind of a context with many
// lines checks only its own.
func (m *Metadata) validateAfter(was *Metadata) error {
	lines, branches, ok := m.changedRows(was)
	if !ok {
		return m.validate()
	}
	if err := m.validateMembers(); err != nil {
		return err
	}
	for _, i := range lines {
		l, earlier := &m.Lines[i], Metadata{Lines: m.Lines[:i]}
		if _, twice := earlier.Line(l.ID); twice || l.ID == uuid.Nil {
			return errLine(l)
		}
		if err := l.validateFolder(); err != nil {
			return err
		}
		p, ok := earlier.Line(l.Parent)
		if !ok && l.Parent != uuid.Nil {
			return m.validate() // the parent may come later
		}
		if err := l.continues(p); err != nil {
			return err
		}
	}
	for _, i := range branches {
		b := m.Branches[i]
		other := func(x Branch) bool { return x.Name == b.Name }
		if b.Name == "" || slices.ContainsFunc(m.Branches[:i], other) || slices.ContainsFunc(m.Branches[i+1:], other) {
			return errBranch(i)
		}
		if _, ok := m.Line(b.Line); !ok {
			return errNoLine(b)
		}
	}
	if _, ok := m.Branch(m.ActiveBranch); !ok {
		return errActive(m)
	}
	return nil
}

// changedRows returns the lines and branches of m that was has not, by index. A line that is archived counts as such. It
// returns false if they are not few, or if a line is gone or changed otherwise.
func (m *Metadata) changedRows(was *Metadata) (lines, branches []int, ok bool) {
	if len(m.Lines) < len(was.Lines) {
		return nil, nil, false
	}
	for i := range m.Lines {
		if i < len(was.Lines) {
			a, b := &was.Lines[i], &m.Lines[i]
			if a.ID != b.ID || a.Parent != b.Parent || a.Base != b.Base {
				return nil, nil, false
			}
			if *a == *b {
				continue
			}
		}
		if lines = append(lines, i); len(lines) > fewRows {
			return nil, nil, false
		}
	}
	for i := range m.Branches {
		if i < len(was.Branches) && was.Branches[i].Name == m.Branches[i].Name && was.Branches[i].Line == m.Branches[i].Line {
			continue
		}
		if branches = append(branches, i); len(branches) > fewRows {
			return nil, nil, false
		}
	}
	return lines, branches, true
}

func errLine(l *Line) error { return fmt.Errorf("line %s is a duplicate or has no id", l.ID) }
func errBranch(i int) error { return fmt.Errorf("branch %d has an empty or duplicate name", i) }
func errNoLine(b Branch) error {
	return fmt.Errorf("branch %q: line %s not found", b.Name, b.Line)
}
func errActive(m *Metadata) error {
	return fmt.Errorf("active branch %q not found", m.ActiveBranch)
}

func (l *Line) validateFolder() error {
	if !ValidFolder(l.Folder) {
		return fmt.Errorf("line %s: %q is not a branch folder", l.ID, l.Folder)
	}
	if l.Archived < 0 || l.ArchivedBytes < 0 {
		return fmt.Errorf("line %s: archived %d or archived_bytes %d is negative", l.ID, l.Archived, l.ArchivedBytes)
	}
	return nil
}

// continues returns an error if a line cannot begin on its parent p, nil for none.
func (l *Line) continues(p *Line) error {
	switch {
	case p == nil && l.Base != 0:
		return fmt.Errorf("line %s has base %d but no parent", l.ID, l.Base)
	case p != nil && (l.Base < p.Base || l.Base < 0):
		return fmt.Errorf("line %s: base %d is below the base %d of its parent", l.ID, l.Base, p.Base)
	}
	return nil
}

// validateMembers checks the members other than lines and branches.
func (m *Metadata) validateMembers() error {
	if m.ID == uuid.Nil {
		return fmt.Errorf("the id is missing")
	}
	if !writable(m.CreatedAt) || !writable(m.UpdatedAt) {
		return fmt.Errorf("a time outside the years 0 to 9999")
	}
	return nil
}

// writable reports whether a time can be written in UTC: a year has four digits.
func writable(at time.Time) bool {
	y := at.UTC().Year()
	return 0 <= y && y <= 9999
}

// cycle finds a line that is its own ancestor. It visits every line once.
func cycle(lines map[uuid.UUID]*Line) (uuid.UUID, bool) {
	const walking, done = 1, 2
	state := make(map[uuid.UUID]int, len(lines))
	for id := range lines {
		var path []uuid.UUID
		for id != uuid.Nil && state[id] == 0 {
			state[id] = walking
			path = append(path, id)
			id = lines[id].Parent
		}
		if id != uuid.Nil && state[id] == walking {
			return id, true
		}
		for _, p := range path {
			state[p] = done
		}
	}
	return uuid.Nil, false
}
