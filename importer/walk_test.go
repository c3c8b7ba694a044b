package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// history is a transcript of lines "1", "2", …; a letter behind the number makes another body under the
// same id, one before it another id.
func history(t testing.TB, ids ...string) string {
	t.Helper()
	var lines []string
	for _, id := range ids {
		body := id
		id = strings.TrimRight(id, "abc")
		lines = append(lines, line("system "+id+" -", fmt.Sprintf(`"x":%q`, body)))
	}
	return transcriptOf(t, lines...)
}

// shows lists the branches with the bodies they show.
func shows(c *fakeContext) map[string]string {
	out := map[string]string{}
	for _, name := range c.order {
		var b []string
		for _, r := range c.all(name) {
			_, x, _ := strings.Cut(string(r.Body), `"x":"`)
			x, _, _ = strings.Cut(x, `"`)
			b = append(b, x)
		}
		if strings.HasPrefix(name, "import-") {
			for name = "import"; out[name] != ""; name += "'" {
			}
		}
		out[name] = strings.Join(b, " ")
	}
	return out
}

func userAppends(t testing.TB, c *fakeContext, branch string, n int) {
	t.Helper()
	for range n {
		err := c.Append(context.Background(), branch, c.branches[branch].len(), []Record{{ID: uuid.New(), Body: []byte(`{"x":"own"}`)}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiverging(t *testing.T) {
	s := newFakeStore()
	type counts struct{ added, skipped int64 }
	step := func(what, path string, wantCounts counts, want map[string]string, active string) {
		t.Helper()
		got := importFile(t, s, path, Options{})
		if len(got.errs) > 0 {
			t.Fatalf("%s: %v", what, got.errs)
		}
		if r := got.results[0]; (counts{r.Added, r.Skipped}) != wantCounts {
			t.Errorf("%s: %+v", what, r)
		}
		c := s.only(t)
		if d := cmp.Diff(want, shows(c)); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		if got := c.active; got != active && (active != "import" || !strings.HasPrefix(got, "import-")) {
			t.Errorf("%s: active %s", what, got)
		}
	}
	step("first", history(t, "1", "2", "3", "4", "5"), counts{5, 0}, map[string]string{"main": "1 2 3 4 5"}, "main")
	step("shorter", history(t, "1", "2"), counts{0, 2}, map[string]string{"main": "1 2 3 4 5"}, "main")
	step("another id", history(t, "1", "2", "x3", "x4"), counts{2, 2},
		map[string]string{"main": "1 2 3 4 5", "import": "1 2 x3 x4"}, "import")
	step("that again, longer", history(t, "1", "2", "x3", "x4", "x5"), counts{1, 4},
		map[string]string{"main": "1 2 3 4 5", "import": "1 2 x3 x4 x5"}, "import")
	step("the first, longer", history(t, "1", "2", "3", "4", "5", "6"), counts{1, 5},
		map[string]string{"main": "1 2 3 4 5 6", "import": "1 2 x3 x4 x5"}, "main")
	step("the same id, another body", history(t, "1", "2", "3b", "4"), counts{2, 2},
		map[string]string{"main": "1 2 3 4 5 6", "import": "1 2 x3 x4 x5", "import'": "1 2 3b 4"}, "import")
	step("another first record", history(t, "0", "1"), counts{2, 0},
		map[string]string{"main": "1 2 3 4 5 6", "import": "1 2 x3 x4 x5", "import'": "1 2 3b 4", "import''": "0 1"}, "import")
	before := s.dump()
	for _, path := range []string{history(t, "1", "2", "x3"), history(t, "0", "1"), history(t, "1", "2", "3b"), history(t, "1")} {
		if r := importFile(t, s, path, Options{}).results[0]; r.Added != 0 {
			t.Errorf("%+v", r)
		}
	}
	if s.dump() != before {
		t.Error("importing again changed the store")
	}
	step("off the branch that went off", history(t, "1", "2", "x3", "y4"), counts{1, 3}, map[string]string{
		"main": "1 2 3 4 5 6", "import": "1 2 x3 x4 x5", "import'": "1 2 3b 4", "import''": "0 1", "import'''": "1 2 x3 y4",
	}, "import")
}

// The same message at the same place is no reason to go on there, if what is before it is another history.
func TestSameMessageBehindAnother(t *testing.T) {
	s := newFakeStore()
	for _, path := range []string{history(t, "1", "2", "3"), history(t, "0", "2", "9"), history(t, "1", "2", "9")} {
		importFile(t, s, path, Options{})
	}
	if d := cmp.Diff(map[string]string{"main": "1 2 3", "import": "0 2 9", "import'": "1 2 9"}, shows(s.only(t))); d != "" {
		t.Error(d)
	}
}

func TestPeopleWentOn(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, history(t, "1", "2"), Options{})
	c := s.only(t)
	userAppends(t, c, Main, 2)
	for range 2 {
		importFile(t, s, history(t, "1", "2", "3"), Options{})
		if d := cmp.Diff(map[string]string{"main": "1 2 own own", "import": "1 2 3"}, shows(c)); d != "" {
			t.Error(d)
		}
	}
	importFile(t, s, history(t, "1", "2", "3", "4"), Options{})
	if d := cmp.Diff(map[string]string{"main": "1 2 own own", "import": "1 2 3 4"}, shows(c)); d != "" {
		t.Error(d)
	}
}

func TestPeopleRenamedAndRewound(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, history(t, "1", "2", "3"), Options{})
	c := s.only(t)
	// main becomes trunk; a new main begins behind its first message.
	c.branches["trunk"], c.order = c.branches[Main], []string{"trunk"}
	delete(c.branches, Main)
	if err := c.Fork(context.Background(), Main, "trunk", 1, nil); err != nil {
		t.Fatal(err)
	}
	importFile(t, s, history(t, "1", "2", "3", "4"), Options{})
	if d := cmp.Diff(map[string]string{"trunk": "1 2 3 4", "main": "1"}, shows(c)); d != "" {
		t.Error(d)
	}
}

// Of branches that hold the same, the one that bears the name goes on.
func TestNamePreferred(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, history(t, "1", "2"), Options{})
	c := s.only(t)
	if err := c.Fork(context.Background(), "alt", Main, 2, nil); err != nil {
		t.Fatal(err)
	}
	c.order = []string{"alt", Main}
	importFile(t, s, history(t, "1", "2", "3"), Options{})
	if d := cmp.Diff(map[string]string{"main": "1 2 3", "alt": "1 2"}, shows(c)); d != "" {
		t.Error(d)
	}
}

// A sidechain does not go on the branch it was spawned on, whatever people call that.
func TestNameTaken(t *testing.T) {
	s := newFakeStore()
	lines := []string{line("prompt u1 - a"), line("prompt x1 u1 words", side, `"agentId":"7f3a"`)}
	importFile(t, s, transcriptOf(t, lines[0]), Options{})
	c := s.only(t)
	c.branches["sidechain-7f3a"], c.order = c.branches[Main], []string{"sidechain-7f3a"}
	delete(c.branches, Main)
	importFile(t, s, transcriptOf(t, lines...), Options{})
	if got := outline(c); len(got) != 2 || got[0] != "sidechain-7f3a@0+1" ||
		!strings.HasPrefix(got[1], "sidechain-7f3a-") || !strings.HasSuffix(got[1], "@1+1") {
		t.Error(got)
	}
}

func TestForkOfADivergedHistory(t *testing.T) {
	lines := []string{
		line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("reply a2 u2 m2"), line("prompt u3 a1 c"),
		line("prompt u4 a2 d"), line("reply a4 u4 m4"), line("prompt u5 a2 e"),
	}
	s := newFakeStore()
	importFile(t, s, transcriptOf(t, lines...), Options{})
	importFile(t, s, transcriptOf(t, lines[:2]...), Options{})
	c := s.only(t)
	if d := cmp.Diff([]string{"main@0+6", "fork-1@2+1", "fork-2@4+1"}, outline(c)); d != "" {
		t.Fatal(d)
	}
	// The same with another first prompt: nothing is shared.
	lines[0] = line("prompt u0 - a")
	lines[1] = line("reply a1 u0 m1")
	importFile(t, s, transcriptOf(t, lines...), Options{})
	got := outline(c)
	for i := range got {
		name, at, _ := strings.Cut(got[i], "@")
		got[i] = strings.TrimRight(name, "0123456789abcdef") + "@" + at
	}
	if d := cmp.Diff([]string{"main@0+6", "fork-@2+1", "fork-@4+1", "import-@0+6", "fork-1-@2+1", "fork-2-@4+1"}, got); d != "" {
		t.Error(d)
	}
	before := s.dump()
	if r := importFile(t, s, transcriptOf(t, lines...), Options{}).results[0]; r.Added != 0 || s.dump() != before {
		t.Errorf("%+v", r)
	}
}

// A subagent's file has the session of the conversation it works for.
func TestSidechainInAFileOfItsOwn(t *testing.T) {
	agent := transcriptOf(t, line("prompt x1 - find", side, `"agentId":"7f3a"`), line("reply x2 x1 m", side, `"agentId":"7f3a"`))
	session := transcriptOf(t, line("prompt u1 - a"), line("reply a1 u1 m1"))
	for _, order := range [][]string{{agent, session}, {session, agent}} {
		s := newFakeStore()
		importFile(t, s, order[0], Options{})
		importFile(t, s, order[1], Options{})
		c := s.only(t)
		if d := cmp.Diff([]string{"main@0+2", "sidechain-7f3a@0+2"}, outline(c)); d != "" || c.active != Main || c.info.Title != "a" {
			t.Errorf("%s %s %q", d, c.active, c.info.Title)
		}
	}
}

func TestDamagedMessageCountsAsUnchanged(t *testing.T) {
	s := newFakeStore()
	path := history(t, "1", "2", "3")
	importFile(t, s, path, Options{})
	c := s.only(t)
	for _, recs := range c.lines {
		recs[1].Body = nil
	}
	if r := importFile(t, s, path, Options{}).results[0]; r.Added != 0 || r.Branches != 1 {
		t.Errorf("%+v", r)
	}
}

func TestErrorsNameFileAndContext(t *testing.T) {
	s := newFakeStore()
	s.fail = 1
	path := history(t, "1", "2", "3")
	got := importFile(t, s, path, Options{})
	if len(got.errs) != 1 || !errors.Is(got.errs[0], errInjected) ||
		!strings.Contains(got.errs[0].Error(), path) || !strings.Contains(got.errs[0].Error(), s.only(t).info.ID.String()) {
		t.Errorf("%v", got.errs)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range Import(ctx, s, path, Options{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

func TestStopsWhenTheCallerHasEnough(t *testing.T) {
	n := 0
	for range Import(context.Background(), newFakeStore(), fixtures+"/chatgpt/conversations.json", Options{}) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d results", n)
	}
}

func TestBatches(t *testing.T) {
	defer func(r, b int) { batchRecords, batchBytes = r, b }(batchRecords, batchBytes)
	batchRecords = 4
	s := newFakeStore()
	importFile(t, s, history(t, "1", "2", "3", "4", "5", "6"), Options{})
	if got := strings.Join(s.log, ", "); got != "append 4 to main, append 2 to main" {
		t.Error(got)
	}
	batchBytes = 1
	s = newFakeStore()
	importFile(t, s, history(t, "1", "2"), Options{})
	if got := strings.Join(s.log, ", "); got != "append 1 to main, append 1 to main" {
		t.Error(got)
	}
}

func TestProgress(t *testing.T) {
	var last, size int64
	path := fixtures + "/claude-code/simple.jsonl"
	importFile(t, newFakeStore(), path, Options{Progress: func(r, s int64) {
		if r <= last {
			t.Errorf("read %d after %d", r, last)
		}
		last, size = r, s
	}})
	if last == 0 || last != size {
		t.Errorf("read %d of %d", last, size)
	}
}
