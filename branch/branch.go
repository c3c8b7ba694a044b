// Package branch is a part of the engine and promises nothing to other modules. It models lines and branches in
// memory: how fork, rewind, rename and remove change a context's metadata, and which line owns a position.
//
// A line is an append-only sequence of messages. It begins empty or at a position of another line. A branch is a name
// that points at a line. No operation changes what another branch shows, and none drops a line: a line that loses its
// name stays in the list of removed lines.
package branch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Reasons for which a line lost its name.
const (
	WhyRemoved = "removed"
	WhyRewound = "rewound"
	WhyUnnamed = "unnamed" // nothing says how the line lost its name
)

// Segment is a run of positions that one line owns.
type Segment struct {
	Line     uuid.UUID
	From, To int64 // [From, To)
}

// Segments splits the positions [from, to) of a line's history by the lines that own them, in order.
func Segments(m *ctxfolder.Metadata, line uuid.UUID, from, to int64) ([]Segment, error) {
	var out []Segment
	for from < to {
		l, ok := m.Line(line)
		if !ok {
			return nil, fmt.Errorf("%w: %s", errDescent, line)
		}
		if to > l.Base {
			out = append(out, Segment{line, max(from, l.Base), to})
			to = l.Base
		}
		if from < to && l.Parent == uuid.Nil {
			return nil, fmt.Errorf("%w: %d of line %s", errNoSegment, from, line)
		}
		line = l.Parent
	}
	slices.Reverse(out)
	return out, nil
}

// Lines returns a line and its ancestors, the line first, each with the end of the part that the line shows.
func Lines(m *ctxfolder.Metadata, line uuid.UUID, end int64) ([]Segment, error) {
	var out []Segment
	for line != uuid.Nil {
		l, ok := m.Line(line)
		if !ok {
			return nil, fmt.Errorf("%w: %s", errDescent, line)
		}
		out = append(out, Segment{line, l.Base, end})
		line, end = l.Parent, l.Base
	}
	return out, nil
}

// Get returns a branch by name. It fails with ErrNotExist.
func Get(m *ctxfolder.Metadata, name string) (*ctxfolder.Branch, error) {
	b, ok := m.Branch(name)
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNotExist, name)
	}
	return b, nil
}

// New adds a branch with an empty line. It fails with ErrName or ErrExist.
func New(m *ctxfolder.Metadata, name string, id uuid.UUID) (*ctxfolder.Branch, error) {
	return add(m, name, ctxfolder.Line{ID: id})
}

// Fork adds a branch with the system prompt of another branch. Its line begins with the first at of that branch's
// length messages. It fails with ErrName, ErrExist, ErrNotExist or ErrPosition.
func Fork(m *ctxfolder.Metadata, name, from string, at, length int64, id uuid.UUID) (*ctxfolder.Branch, error) {
	b, err := Get(m, from)
	if err != nil {
		return nil, err
	}
	line, err := begin(m, b.Line, at, length, id)
	if err != nil {
		return nil, fmt.Errorf("branch %q: %w", from, err)
	}
	of := *b
	added, err := add(m, name, line)
	if err == nil {
		added.SystemPrompt = of.SystemPrompt
		for _, key := range []string{ctxfolder.BranchState, ctxfolder.BranchKind} {
			added.Extra.Set(key, of.Extra.Get(key))
		}
	}
	return added, err
}

// Begin adds a branch that begins with the first at messages of a line, or empty unless inherits is set. It fails with
// ErrName, ErrExist or ErrPosition.
func Begin(m *ctxfolder.Metadata, name string, of uuid.UUID, at int64, id uuid.UUID, inherits bool) error {
	line := ctxfolder.Line{ID: id}
	if inherits {
		var err error
		if line, err = begin(m, of, at, at, id); err != nil {
			return err
		}
	}
	_, err := add(m, name, line)
	return err
}

// begin makes a line that begins with the first at messages of another line. Its parent is the line that owns the last
// of them, which keeps chains flat.
func begin(m *ctxfolder.Metadata, of uuid.UUID, at, length int64, id uuid.UUID) (ctxfolder.Line, error) {
	if at < 0 || at > length {
		return ctxfolder.Line{}, fmt.Errorf("%w: %d of a branch with %d messages", ErrPosition, at, length)
	}
	line := ctxfolder.Line{ID: id, Base: at}
	if at > 0 {
		owner, err := Segments(m, of, at-1, at)
		if err != nil {
			return line, err
		}
		line.Parent = owner[0].Line
	}
	return line, nil
}

func add(m *ctxfolder.Metadata, name string, line ctxfolder.Line) (*ctxfolder.Branch, error) {
	folder, err := freeName(m, name, "")
	if err != nil {
		return nil, err
	}
	line.Folder = freeFolder(m, folder)
	m.Lines = append(m.Lines, line)
	m.Branches = append(m.Branches, ctxfolder.Branch{Name: name, Line: line.ID})
	return &m.Branches[len(m.Branches)-1], nil
}

// freeName checks that a branch can have a name and returns its folder. It ignores the branch except, which is about
// to lose its name.
func freeName(m *ctxfolder.Metadata, name, except string) (folder string, err error) {
	if folder, err = Folder(name); err != nil {
		return "", err
	}
	for _, b := range m.Branches {
		if b.Name != except && alike(b.Name, name) {
			if b.Name == name {
				return "", fmt.Errorf("%w: %q", ErrExist, name)
			}
			return "", fmt.Errorf("%w: %q, which some file systems cannot distinguish from %q", ErrExist, b.Name, name)
		}
	}
	return folder, nil
}

// Taken reports whether another branch has the name, or a name that some file system takes for it.
func Taken(m *ctxfolder.Metadata, name string) bool {
	return slices.ContainsFunc(m.Branches, func(b ctxfolder.Branch) bool { return alike(b.Name, name) })
}

// Rewind makes a branch show only its first to messages. The branch gets a new line, and the old line stays without a
// name. Rewind reports whether anything changed.
func Rewind(m *ctxfolder.Metadata, name string, to, length int64, id uuid.UUID, now time.Time) (bool, error) {
	b, err := Get(m, name)
	if err != nil {
		return false, err
	}
	line, err := begin(m, b.Line, to, length, id)
	if err != nil || to == length {
		return false, err
	}
	folder, err := Folder(name)
	if err != nil {
		return false, err
	}
	line.Folder = freeFolder(m, folder)
	old := ctxfolder.Removed{Branch: *b, At: now.UTC(), Why: WhyRewound}
	old.Extra.Set(ctxfolder.BranchState, nil) // the branch keeps its state
	m.Removed = append(m.Removed, old)
	m.Lines = append(m.Lines, line)
	b.Line = line.ID
	return true, nil
}

// Remove removes a branch's name. It fails with ErrActive for the active branch.
func Remove(m *ctxfolder.Metadata, name string, now time.Time) error {
	b, err := Get(m, name)
	if err != nil {
		return err
	}
	if name == m.ActiveBranch {
		return fmt.Errorf("%w: %q; switch to another branch first", ErrActive, name)
	}
	m.Removed = append(m.Removed, ctxfolder.Removed{Branch: *b, At: now.UTC(), Why: WhyRemoved})
	m.Branches = slices.DeleteFunc(m.Branches, func(b ctxfolder.Branch) bool { return b.Name == name })
	return nil
}

// Switch makes a branch the active one. It fails with ErrKind for a branch with a kind.
func Switch(m *ctxfolder.Metadata, name string) error {
	b, err := Get(m, name)
	if err != nil {
		return err
	}
	if kind := b.Extra.Text(ctxfolder.BranchKind); kind != "" {
		return fmt.Errorf("%w: %q has the kind %q", ErrKind, name, kind)
	}
	m.ActiveBranch = name
	return nil
}

// Rename renames a branch. The folder of its line keeps its name.
func Rename(m *ctxfolder.Metadata, name, to string) error {
	b, err := Get(m, name)
	if err != nil || name == to {
		return err
	}
	if _, err := freeName(m, to, name); err != nil {
		return err
	}
	b.Name = to
	if m.ActiveBranch == name {
		m.ActiveBranch = to
	}
	return nil
}

// freeFolder returns the name of a folder for a new line: folder, or with a number behind it if another line has that. A
// folder belongs to one line.
func freeFolder(m *ctxfolder.Metadata, folder string) string {
	stem, taken := fold(folder), make([]bool, len(m.Lines)+3) // by number, 1 for none: at least one from 2 on stays free
	for _, l := range m.Lines {
		ending, ok := strings.CutPrefix(fold(l.Folder), stem)
		digits, numbered := strings.CutPrefix(ending, "~")
		if n, err := strconv.Atoi(digits); ok && numbered && err == nil && 0 < n && n < len(taken) {
			taken[n] = true
		} else if ok && ending == "" {
			taken[1] = true
		}
	}
	if !taken[1] {
		return folder
	}
	n := 2 + slices.Index(taken[2:], false)
	if free := fmt.Sprintf("%s~%d", folder, n); len(free) <= maxFolder {
		return free
	}
	return freeFolder(m, ctxfolder.FolderPrefix+"long")
}
