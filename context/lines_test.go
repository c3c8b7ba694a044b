package context

import (
	"errors"
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
		{"descends from itself", []Line{line(1, 0, 0), line(2, 2, 0)}},
		{"descends from itself", []Line{line(1, 0, 0), line(2, 4, 0), line(3, 2, 0), line(4, 3, 0)}},
		{"is missing", []Line{line(1, 0, 0), line(2, 9, 0)}},
		{"below its parent's", []Line{line(1, 0, 0), line(2, 1, 4), line(3, 2, 3)}},
		{"below its parent's", []Line{line(1, 0, 0), line(2, 1, -1)}},
		{"and no parent", []Line{line(1, 0, 2)}},
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
