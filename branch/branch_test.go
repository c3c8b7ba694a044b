package branch

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"pgregory.net/rapid"
)

func TestFolder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"main":           "branch-main",
		"a/b":            "branch-a%2Fb",
		"..":             "branch-.%2E",
		"100%":           "branch-100%25",
		" x ":            "branch-%20x%20",
		"a\tb":           "branch-a%09b",
		`c:\d`:           "branch-c%3A%5Cd",
		"🧪 ünï":          "branch-🧪 ünï",
		"con":            "branch-con",
		"a\x7f":          "branch-a%7F",
		`<>:"|?*`:        "branch-%3C%3E%3A%22%7C%3F%2A",
		"dot.in.between": "branch-dot.in.between",
	} {
		if got, err := Folder(name); got != want || err != nil {
			t.Errorf("Folder(%q) = %q, %v; wanted %q", name, got, err, want)
		} else if !ctxfolder.ValidFolder(got) {
			t.Errorf("Folder(%q) = %q, which is no valid folder", name, got)
		}
	}
	for _, bad := range []string{"", "a\x00", "\xff", strings.Repeat("x", 249), strings.Repeat("/", 83)} {
		if got, err := Folder(bad); !errors.Is(err, ErrName) {
			t.Errorf("Folder(%q) = %q, %v", bad, got, err)
		}
	}
	if _, err := Folder(strings.Repeat("x", 248)); err != nil {
		t.Error(err)
	}
}

func FuzzFolder(f *testing.F) {
	f.Add("main", "Main")
	f.Add("a%2F", "a/")
	f.Fuzz(func(t *testing.T, a, b string) {
		fa, erra := Folder(a)
		fb, errb := Folder(b)
		if erra != nil || errb != nil {
			return
		}
		if !ctxfolder.ValidFolder(fa) {
			t.Fatalf("%q gives the folder %q", a, fa)
		}
		if (fa == fb) != (a == b) {
			t.Fatalf("%q and %q give the folders %q and %q", a, b, fa, fb)
		}
		if !alike(a, b) && alike(fa, fb) {
			t.Fatalf("%q and %q differ, their folders %q and %q may not", a, b, fa, fb)
		}
	})
}

func TestNamesThatLookAlike(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"Main", "main"}, {"STRASSE", "straße"}, {"e\u0301", "é"}, {"Ǆ", "ǆ"}, {"ﬁ", "FI"},
	} {
		if !alike(pair[0], pair[1]) {
			t.Errorf("%q and %q are not taken for one", pair[0], pair[1])
		}
	}
	for a := range rune(utf8.RuneSelf) { // compared and folded in a shorter way
		if x := string(a); fold(x) != cases.Fold().String(x) {
			t.Errorf("%q is folded to %q", x, fold(x))
		}
		for b := range rune(utf8.RuneSelf) {
			if x, y := string(a), string(b); alike(x, y) != (fold(x) == fold(y)) {
				t.Errorf("%q and %q", x, y)
			}
		}
	}
	if alike("a", "b") || alike("é", "e") {
		t.Error("different names are taken for one")
	}
}

// TestLines holds the table of lines against messages in memory: forks of forks, rewinds, removals.
func TestLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "0"}
		own := map[uuid.UUID][]int{} // the messages of each line
		views := map[string][]int{}  // what each branch must show
		next := 0
		line := func() uuid.UUID { next++; return uuid.UUID{14: byte(next >> 8), 15: byte(next)} }
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := New(m, "0", line())
		check(err)
		views["0"] = nil
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			names := make([]string, 0, len(views))
			for n := range views {
				names = append(names, n)
			}
			slices.Sort(names)
			name := rapid.SampledFrom(names).Draw(t, "branch")
			view := views[name]
			at := rapid.IntRange(0, len(view)).Draw(t, "at")
			b, _ := m.Branch(name)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				next++
				own[b.Line] = append(own[b.Line], next)
				views[name] = append(slices.Clone(view), next)
			case 2:
				next++
				fork := "f" + uuid.UUID{14: byte(next >> 8), 15: byte(next)}.String()
				_, err := Fork(m, fork, name, int64(at), int64(len(view)), line())
				check(err)
				views[fork] = slices.Clone(view[:at])
			case 3:
				_, err := Rewind(m, name, int64(at), int64(len(view)), line(), time.Now())
				check(err)
				views[name] = slices.Clone(view[:at])
			case 4:
				if name != "0" {
					check(Remove(m, name, time.Now()))
					delete(views, name)
				}
			}
			raw, err := m.Encode()
			check(err)
			_, err = ctxfolder.ParseMetadata(raw)
			check(err)
			for name, want := range views {
				b, _ := m.Branch(name)
				segments, err := Segments(m, b.Line, 0, int64(len(want)))
				check(err)
				var got []int
				for _, s := range segments {
					l, _ := m.Line(s.Line)
					got = append(got, own[s.Line][s.From-l.Base:s.To-l.Base]...)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("branch %s shows %v, wanted %v", name, got, want)
				}
			}
		}
	})
}

func TestFreeFolder(t *testing.T) {
	t.Parallel()
	long := ctxfolder.FolderPrefix + strings.Repeat("x", 248)
	for _, x := range []struct{ folder, want, taken string }{
		{"branch-a", "branch-a", ""},
		{"branch-a", "branch-a", "branch-a~2 branch-ab branch-"},
		{"branch-a", "branch-a~2", "branch-A"},
		{"branch-a", "branch-a~2", "branch-a branch-a~ branch-a~0 branch-a~-2 branch-a~3 branch-a~99999999999999999999"},
		{"branch-a", "branch-a~4", "branch-a branch-a~2 branch-A~3 branch-b~4"},
		{"branch-k", "branch-k~2", "branch-\u212a"}, // the Kelvin sign
		{"branch-ü", "branch-ü~3", "branch-U\u0308 branch-u\u0308~2"},
		{"branch-straße", "branch-straße~2", "branch-STRASSE"},
		{long, "branch-long", long},
		{long, "branch-long~2", long + " branch-Long"},
	} {
		m := &ctxfolder.Metadata{}
		for _, f := range strings.Fields(x.taken) {
			m.Lines = append(m.Lines, ctxfolder.Line{Folder: f})
		}
		if got := freeFolder(m, x.folder); got != x.want {
			t.Errorf("freeFolder(%q) beside %q = %q; wanted %q", x.folder, x.taken, got, x.want)
		}
	}
}
