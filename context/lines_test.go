package context

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestLines reads tables of lines that cannot be, in any order of the lines.
func TestLines(t *testing.T) {
	line := func(n, parent int, base int64) Line {
		l := Line{ID: numbered(n), Base: base, Folder: "branch-main"}
		if parent > 0 {
			l.Parent = numbered(parent)
		}
		return l
	}
	noFolder := line(2, 1, 4)
	noFolder.Folder = "main"
	for _, c := range []struct {
		why   string // part of the error; none for lines that can be
		lines []Line
	}{
		{"", []Line{line(1, 0, 0), line(2, 1, 4), line(3, 2, 4), line(4, 1, 0)}},
		{"its own ancestor", []Line{line(1, 0, 0), line(2, 2, 0)}},
		{"its own ancestor", []Line{line(1, 0, 0), line(2, 4, 0), line(3, 2, 0), line(4, 3, 0)}},
		{"not found", []Line{line(1, 0, 0), line(2, 9, 0)}},
		{"of its parent", []Line{line(1, 0, 0), line(2, 1, 4), line(3, 2, 3)}},
		{"of its parent", []Line{line(1, 0, 0), line(2, 1, -1)}},
		{"but no parent", []Line{line(1, 0, 2)}},
		{"is a duplicate", []Line{line(1, 0, 0), line(2, 1, 4), line(2, 1, 4)}},
		{"has no id", []Line{line(1, 0, 0), {Folder: "branch-main"}}},
		{"not a branch folder", []Line{line(1, 0, 0), noFolder, line(3, 1, 0)}},
	} {
		rapid.Check(t, func(t *rapid.T) {
			lines := rapid.Permutation(slices.Clone(c.lines)).Draw(t, "lines")
			m := &Metadata{ID: uuid.New(), Lines: lines, ActiveBranch: "main", Branches: []Branch{{Name: "main", Line: numbered(1)}}}
			_, err := ParseMetadata(RawMetadata(m))
			if c.why == "" && err != nil || c.why != "" && (!errors.Is(err, ErrMetadata) || !strings.Contains(err.Error(), c.why)) {
				t.Fatalf("%v: %v, want %q", lines, err, c.why)
			}
		})
	}
}

// TestRowsAlone checks metadata by what differs from valid metadata before. It finds what a check of everything finds.
func TestRowsAlone(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		was := drawMetadata(t, 7)
		m := was.Clone()
		line := func(i int) uuid.UUID { return numbered(10 + i) }
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, len(m.Lines)-1).Draw(t, "line")
			b := rapid.IntRange(0, len(m.Branches)-1).Draw(t, "branch")
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0, 1:
				m.Lines = append(m.Lines, Line{
					ID: line(rapid.IntRange(-10, 12).Draw(t, "id")), Parent: line(rapid.IntRange(0, 12).Draw(t, "parent")),
					Base: int64(rapid.IntRange(-1, 4).Draw(t, "base")), Folder: rapid.SampledFrom([]string{"branch-main", "other"}).Draw(t, "folder"),
				})
			case 2:
				m.Branches = append(m.Branches, Branch{
					Name: rapid.SampledFrom([]string{"", "new", m.Branches[b].Name}).Draw(t, "name"), Line: line(rapid.IntRange(0, 12).Draw(t, "of")),
				})
			case 3:
				m.Branches[b].Line = line(rapid.IntRange(0, 12).Draw(t, "of"))
			case 4:
				other := rapid.IntRange(0, len(m.Branches)-1).Draw(t, "other")
				m.Branches[b].Name = rapid.SampledFrom([]string{"", "new", m.Branches[other].Name}).Draw(t, "name")
			case 5:
				m.Lines[i].Folder = rapid.SampledFrom([]string{"branch-new", "branch-of 70", "other"}).Draw(t, "folder")
			case 6:
				m.Lines[i].Base = int64(rapid.IntRange(-1, 4).Draw(t, "base"))
			case 7:
				m.ActiveBranch = rapid.SampledFrom([]string{"", "new", m.Branches[b].Name}).Draw(t, "active")
			}
		}
		all, alone := m.validate(), m.validateAfter(was)
		if (all == nil) != (alone == nil) {
			t.Fatalf("all rows: %v; alone: %v", all, alone)
		}
		if all != nil {
			refused++
		}
	})
	if refused < 10 {
		t.Errorf("%d refused", refused)
	}
}

// TestManyRows changes more rows than are checked alone.
func TestManyRows(t *testing.T) {
	was := &Metadata{ID: uuid.New(), ActiveBranch: "0"}
	for i := range 2 * fewRows {
		l := Line{ID: numbered(i + 1), Folder: "branch-main"}
		was.Lines, was.Branches = append(was.Lines, l), append(was.Branches, Branch{Name: fmt.Sprint(i), Line: l.ID})
	}
	if err := was.validateAfter(&Metadata{}); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(m *Metadata){
		"a line of many": func(m *Metadata) { m.Lines[fewRows+3].ID = m.Lines[2].ID },
		"a branch of many": func(m *Metadata) {
			for i := range m.Branches {
				m.Branches[i].Name = fmt.Sprint("new ", i%(2*fewRows-1))
			}
			m.ActiveBranch = "new 0"
		},
		"a line is gone": func(m *Metadata) { m.Lines = m.Lines[1:] },
	} {
		m := was.Clone()
		change(m)
		if err := m.validateAfter(was); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
