package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

const fixtures = "../testdata"

// outline is what an import is expected to give: branches as "name@base+own", in the order they were made.
func outline(c *fakeContext) (out []string) {
	for _, name := range c.order {
		base, own := c.own(name)
		out = append(out, fmt.Sprintf("%s@%d+%d", name, base, len(own)))
	}
	return out
}

func problemLines(ps []Problem) (out []string) {
	for _, p := range ps {
		reason, _, _ := strings.Cut(p.Reason, ":")
		out = append(out, fmt.Sprintf("%d %s", p.Line, reason))
	}
	return out
}

func TestClaudeCode(t *testing.T) {
	for _, test := range []struct {
		file     string
		title    string
		messages int64
		branches []string
		active   string
		problems []string
	}{
		{file: "simple", title: "Tide at Saint-Malo", messages: 8, branches: []string{"main@0+8"}},
		{file: "release-notes-monday", title: "Write the release notes for tide 1.4. Look at the commits first.", messages: 8,
			branches: []string{"main@0+8"}},
		{
			file: "release-notes-tuesday", title: "Write the release notes for tide 1.4. Look at the commits first.", messages: 18,
			branches: []string{"main@0+8", "fork-1@6+6", "sidechain-39fe52b8@8+4"}, active: "fork-1",
		},
		{file: "second-reply", title: "Name a lighthouse.", messages: 6, branches: []string{"main@0+2", "fork-1@1+4"}, active: "fork-1"},
		{file: "parallel-tools", title: "Compare the two harbours.", messages: 10, branches: []string{"main@0+10"}},
		{file: "progress-parents", title: "Run the tests.", messages: 11, branches: []string{"main@0+11"}},
		{file: "compaction", title: "Plan the crossing.", messages: 8, branches: []string{"main@0+8"}},
		{file: "fused", title: "One.", messages: 4, branches: []string{"main@0+4"}},
		{
			file: "damaged", title: "Message 1.", messages: 5, branches: []string{"main@0+5"},
			problems: []string{
				"2 a JSON number, expected an object", "3 a JSON string, expected an object", "4 a JSON array, expected an object",
				"5 invalid JSON at byte 620 of it", "6 512 NUL bytes", "7 invalid UTF-8", "9 invalid JSON at byte 1 of it",
				"10 64 NUL bytes", "12 truncated JSON value",
			},
		},
		{file: "dangling", title: "…and the third question?", messages: 5, branches: []string{"main@0+5"}},
		{file: "two-sessions", title: "Where were we?", messages: 3, branches: []string{"main@0+3"}},
		{file: "repeated-ids", title: "Once.", messages: 7, branches: []string{"main@0+7"}},
	} {
		t.Run(test.file, func(t *testing.T) {
			path := filepath.Join(fixtures, "claude-code", test.file+".jsonl")
			s := newFakeStore()
			got := importFile(t, s, path, Options{})
			if len(got.errs) > 0 || len(got.results) != 1 {
				t.Fatalf("%d results, errors %v", len(got.results), got.errs)
			}
			c := s.only(t)
			r := got.results[0]
			want := Result{
				Path: path, Format: ClaudeCode, Context: c.info.ID, Title: test.title, Branches: len(test.branches),
				Messages: test.messages, Added: test.messages, Problems: int64(len(test.problems)),
			}
			for _, r := range c.all(Main) {
				if want.First == uuid.Nil && strings.Contains(string(r.Body), `"uuid":"`+r.ID.String()+`"`) {
					want.First = r.ID
				}
			}
			if d := cmp.Diff(want, r); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(test.branches, outline(c)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(test.problems, problemLines(got.problems)); d != "" {
				t.Error(d)
			}
			active := test.active
			if active == "" {
				active = Main
			}
			if c.active != active {
				t.Errorf("active branch %s, wanted %s", c.active, active)
			}

			before := s.dump()
			again := importFile(t, s, path, Options{})
			want.Added, want.Skipped = 0, test.messages
			if d := cmp.Diff([]Result{want}, again.results); d != "" {
				t.Errorf("imported again: %s", d)
			}
			if s.dump() != before {
				t.Error("importing again changed the store")
			}
		})
	}
}

// texts are the bodies that a branch shows, as far as they can be told apart.
func texts(c *fakeContext, branch string) (out []string) {
	for _, r := range c.all(branch) {
		e := parseEntry(r.Body)
		s := e.typ
		if e.text != "" {
			s += ": " + e.text
		}
		if len(s) > 30 {
			s = strings.ToValidUTF8(s[:30], "")
		}
		out = append(out, s)
	}
	return out
}

func TestForkAndSidechainShowTheirPath(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, filepath.Join(fixtures, "claude-code/release-notes-tuesday.jsonl"), Options{})
	c := s.only(t)
	shared := []string{
		"file-history-snapshot",
		"user: Write the release notes ",
		"assistant",
		"progress",
		"user",
		"assistant: Three changes: neap",
	}
	for branch, want := range map[string][]string{
		"main": slices.Concat(shared, []string{"user: Formal, one line each.", "assistant: - Corrected the sig"}),
		"fork-1": slices.Concat(shared, []string{"user: Friendly, please, and th", "assistant", "user",
			"assistant: tide 1.4 is out! Ne", "user: Perfect.", "assistant: Fair winds!"}),
		"sidechain-39fe52b8": slices.Concat(shared, []string{"user: Friendly, please, and th", "assistant", "user: Find out who reported th",
			"assistant", "user", "assistant: Grace and Edsger."}),
	} {
		if d := cmp.Diff(want, texts(c, branch)); d != "" {
			t.Errorf("%s: %s", branch, d)
		}
	}
	if string(c.branches["sidechain-39fe52b8"].attrs["sidechain"]) != "true" || c.branches["fork-1"].attrs != nil {
		t.Error("attributes of the branches")
	}
}

func TestEarlierAndLaterState(t *testing.T) {
	monday := filepath.Join(fixtures, "claude-code/release-notes-monday.jsonl")
	tuesday := filepath.Join(fixtures, "claude-code/release-notes-tuesday.jsonl")
	alone, both := newFakeStore(), newFakeStore()
	importFile(t, alone, tuesday, Options{})
	importFile(t, both, monday, Options{})
	got := importFile(t, both, tuesday, Options{})
	if r := got.results[0]; r.Added != 10 || r.Skipped != 8 || r.Branches != 3 {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff(alone.dump(), both.dump()); d != "" {
		t.Error(d)
	}
	// The earlier state again: everything is there.
	before := both.dump()
	got = importFile(t, both, monday, Options{})
	if r := got.results[0]; r.Added != 0 || r.Skipped != 8 {
		t.Errorf("the earlier state again: %+v", r)
	}
	if d := cmp.Diff(before, both.dump()); d != "" {
		t.Error(d)
	}
}

func TestIDs(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, filepath.Join(fixtures, "claude-code/repeated-ids.jsonl"), Options{})
	recs := s.only(t).all(Main)
	own := parseEntry(recs[0].Body).uuid
	if recs[0].ID.String() != own || recs[0].OriginID != "" {
		t.Errorf("a new UUID became %s, %q", recs[0].ID, recs[0].OriginID)
	}
	for _, i := range []int{2, 3} {
		if recs[i].ID.String() == own || recs[i].OriginID != own {
			t.Errorf("repeat %d: %s, %q", i, recs[i].ID, recs[i].OriginID)
		}
	}
	for _, i := range []int{4, 5} {
		if recs[i].OriginID != "" {
			t.Errorf("a record without an id has origin %q", recs[i].OriginID)
		}
	}
	if recs[6].OriginID != "not-a-uuid" || recs[6].ID.Version() != 5 {
		t.Errorf("an id that is no UUID: %s, %q", recs[6].ID, recs[6].OriginID)
	}
}

func TestIDForms(t *testing.T) {
	const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	for own, kept := range map[string]bool{
		id: true, strings.ToUpper("a" + id[1:]): true, "urn:uuid:" + id: false, "{" + id + "}": false,
		strings.ReplaceAll(id, "-", ""): false, uuid.Nil.String(): false, "msg_1": false,
	} {
		got, origin := newIDs(uuid.MustParse(id)).next(own, nil)
		if kept != strings.EqualFold(got.String(), own) || (origin == own) != (got.String() != own) {
			t.Errorf("%s became %s, origin %q", own, got, origin)
		}
	}
	if _, origin := newIDs(uuid.MustParse(id)).next(strings.Repeat("x", maxName+1), nil); origin != "" {
		t.Errorf("a very long id is kept: %.20s", origin)
	}
}

// transcriptOf writes lines to a file whose name is no session.
func transcriptOf(t testing.TB, lines ...string) string {
	t.Helper()
	return fileOf(t, "transcript.jsonl", strings.Join(lines, "\n"))
}

func fileOf(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// line is one of a transcript: "prompt id parent text", "reply id parent message-id", or another type.
func line(spec string, more ...string) string {
	f := strings.Fields(spec)
	parent := "null"
	if f[2] != "-" {
		parent = `"` + f[2] + `"`
	}
	head := fmt.Sprintf(`{"parentUuid":%s,"sessionId":"s","uuid":"%s"`, parent, f[1])
	tail := "}"
	for _, m := range more {
		head += "," + m
	}
	switch f[0] {
	case "prompt":
		return head + fmt.Sprintf(`,"type":"user","message":{"role":"user","content":"%s"}`, f[3]) + tail
	case "result":
		return head + `,"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}` + tail
	case "reply":
		return head + fmt.Sprintf(`,"type":"assistant","message":{"id":"%s","role":"assistant","content":[]}`, f[3]) + tail
	case "task":
		return head + fmt.Sprintf(
			`,"type":"assistant","message":{"id":"%s","role":"assistant",`+
				`"content":[{"type":"tool_use","id":"%s","name":"Task","input":{"prompt":"%s"}}]}`,
			f[3],
			f[4],
			f[5],
		) + tail
	}
	return head + fmt.Sprintf(`,"type":"%s"`, f[0]) + tail
}

const side = `"isSidechain":true`

func TestPlacing(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  []string // branch@base: ids
	}{
		"three prompts under one reply": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u3 a1 c"), line("reply a3 u3 m3"),
				line("prompt u4 a1 d")},
			[]string{"main@0: u1 a1 u2", "fork-1@2: u3 a3", "fork-2@2: u4"},
		},
		"back to an older branch": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u3 a1 c"), line("reply a2 u2 m2"),
				line("progress p u3"), line("prompt u5 a2 e")},
			[]string{"main@0: u1 a1 u2 a2 u5", "fork-1@2: u3 p"},
		},
		"a parent in the shared part continues the branch at hand": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u3 a1 c"), line("system s a1"),
				line("result r u1")},
			[]string{"main@0: u1 a1 u2", "fork-1@2: u3 s r"},
		},
		"a fork of a fork, and one behind it of the shared part": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u3 a1 c"), line("reply a3 u3 m3"),
				line("prompt u4 a3 d"), line("prompt u5 a3 e"), line("prompt u6 a1 f")},
			[]string{"main@0: u1 a1 u2", "fork-1@2: u3 a3 u4", "fork-2@4: u5", "fork-3@2: u6"},
		},
		"two replies, then more of the first": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("reply b1 u1 m2"), line("reply a2 u1 m1"), line("reply b2 b1 m2")},
			[]string{"main@0: u1 a1 a2", "fork-1@1: b1 b2"},
		},
		"replies of one message, replies to a result": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("reply a2 u1 m1"), line("result r a1"), line("reply a3 r m2"),
				line("reply a4 r m3")},
			[]string{"main@0: u1 a1 a2 r a3 a4"},
		},
		"what no one typed": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u3 a1 c", `"isMeta":true`),
				line("prompt u4 a1 d", `"isCompactSummary":true`), line("prompt u5 a1 e", `"toolUseResult":"Error"`),
				line("prompt u6 a1 f", `"sourceToolUseID":"x"`)},
			[]string{"main@0: u1 a1 u2 u3 u4 u5 u6"},
		},
		"a history written out again": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u1 - a"), line("reply a1 u1 m1"),
				line("prompt u2 a1 b"), line("reply a2 u2 m2")},
			[]string{"main@0: u1 a1 u2 u1 a1 u2 a2"},
		},
		"a history written out again, and left": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("prompt u1 - a"), line("reply a1 u1 m1"),
				line("prompt u9 a1 z")},
			[]string{"main@0: u1 a1 u2 u1 a1 u9"},
		},
		"one prompt written twice": {
			[]string{line("prompt u1 - a"), line("reply a1 u1 m1"), line("prompt u2 a1 b"), line("reply a2 u2 m2"), line("prompt u2 a1 b")},
			[]string{"main@0: u1 a1 u2 a2 u2"},
		},
		"two tasks at once": {
			[]string{
				line("prompt u1 - a"), line("task a1 u1 m1 t1 find"), line("task a2 a1 m1 t2 count"),
				line("prompt x1 - find", side), line("prompt y1 - count", side), line("reply x2 x1 mx", side), line("reply y2 y1 my", side),
				line("result r1 a1"), line("result y3 y2", side), line("result r2 a2"),
			},
			[]string{"main@0: u1 a1 a2 r1 r2", "sidechain-*@2: x1 x2", "sidechain-*@3: y1 y2 y3"},
		},
		"spawned by a call's id, by an agent's name, by a parent": {
			[]string{
				line("prompt u1 - a"), line("task a1 u1 m1 t1 find"), line("progress p1 a1"),
				line("prompt x1 - other", side, `"parentToolUseID":"t1"`),
				line("prompt y1 p1 words", side, `"agentId":"7f3a"`), line("reply y2 - my", side, `"agentId":"7f3a"`),
				line("prompt z1 u1 words", side), line("reply z2 nowhere mz", side),
			},
			[]string{"main@0: u1 a1 p1", "sidechain-*@2: x1", "sidechain-7f3a@3: y1 y2", "sidechain-*@1: z1 z2"},
		},
		"nothing but a sidechain": {
			[]string{line("prompt x1 - words", side), line("reply x2 x1 m", side), line("prompt z1 - more", side)},
			[]string{"main@0:", "sidechain-*@0: x1 x2", "sidechain-*@0: z1"},
		},
		"a line of conversation under a sidechain": {
			[]string{line("prompt u1 - a"), line("prompt x1 - words", side), line("prompt u2 x1 b"), line("prompt u3 x1 c")},
			[]string{"main@0: u1 u2 u3", "sidechain-*@0: x1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			got := importFile(t, s, transcriptOf(t, test.lines...), Options{Format: ClaudeCode})
			if len(got.errs) > 0 {
				t.Fatal(got.errs)
			}
			c := s.only(t)
			var have []string
			for _, name := range c.order {
				base, recs := c.own(name)
				if strings.HasPrefix(name, "sidechain-") && len(name) == len("sidechain-")+8 {
					name = "sidechain-*"
				}
				entry := fmt.Sprintf("%s@%d:", name, base)
				for _, r := range recs {
					entry += " " + parseEntry(r.Body).uuid
				}
				have = append(have, entry)
			}
			if d := cmp.Diff(test.want, have); d != "" {
				t.Error(d)
			}
		})
	}
}
