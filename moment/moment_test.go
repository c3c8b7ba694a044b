package moment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

func newContext(t *testing.T) (*ctxdir.Store, *ctxdir.Context) {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := s.Create(t.Context(), ctxdir.Metadata{Title: "work"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

// say appends a message to a branch.
func say(t *testing.T, b *ctxdir.Branch, role, text string) uuid.UUID {
	t.Helper()
	body, err := json.Marshal(map[string]string{"role": role, "content": text})
	if err != nil {
		t.Fatal(err)
	}
	at, err := b.Append(t.Context(), ctxdir.Draft{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return at.ID
}

func all(t *testing.T, c *ctxdir.Context) (moments []moment.Moment) {
	t.Helper()
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for m, err := range moment.All(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		moments = append(moments, m)
	}
	return moments
}

func extract(t *testing.T, c *ctxdir.Context, o moment.Options) []moment.Moment {
	t.Helper()
	found, err := moment.Extract(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const decided = "We decided to keep the queue in memory because a restart may lose it."

func TestExtractTwiceAddsNothing(t *testing.T) {
	_, c := newContext(t)
	source := say(t, c.Active(), "assistant", "I looked at it. "+decided+" Anything else?")
	planned := extract(t, c, moment.Options{DryRun: true})
	if len(planned) != 1 || len(all(t, c)) != 0 {
		t.Fatalf("a dry run: %v, %v", planned, all(t, c))
	}
	found := extract(t, c, moment.Options{})
	if len(found) != 1 || found[0].Content != decided || found[0].Type != moment.Decision || found[0].From[0] != source {
		t.Fatalf("found %+v", found)
	}
	if planned[0].ID != found[0].ID {
		t.Errorf("planned %s, stored %s", planned[0].ID, found[0].ID)
	}
	if again := extract(t, c, moment.Options{}); len(again) != 0 {
		t.Errorf("again: %+v", again)
	}
	got := all(t, c)
	if len(got) != 1 || got[0].ID != found[0].ID || got[0].Content != decided || got[0].Context != c.ID() {
		t.Errorf("stored: %+v", got)
	}
	if c.Active().Name() != "main" {
		t.Errorf("active branch %q", c.Active().Name())
	}
}

// TestForksExtractOnce: a message that two branches show has one moment.
func TestForksExtractOnce(t *testing.T) {
	_, c := newContext(t)
	say(t, c.Active(), "assistant", decided)
	alt, err := c.Active().Fork(t.Context(), "alt", 1)
	if err != nil {
		t.Fatal(err)
	}
	say(t, alt, "assistant", "On second thought, we decided to keep the queue on disk.")
	if found := extract(t, c, moment.Options{Branch: "main"}); len(found) != 1 {
		t.Errorf("of main: %+v", found)
	}
	if found := extract(t, c, moment.Options{}); len(found) != 1 {
		t.Errorf("of all branches: %+v", found)
	}
	if got := all(t, c); len(got) != 2 {
		t.Errorf("stored: %+v", got)
	}
}

// TestAnsweredQuestion: the result of a tool that asks the person is what the person said.
func TestAnsweredQuestion(t *testing.T) {
	_, c := newContext(t)
	for _, body := range []string{
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"ask","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"1","content":"User has answered your questions: \"Where does the button go?\"=\"Into the toolbar\"."}`,
		`{"role":"tool","tool_call_id":"2","content":"We decided to keep the queue in memory because a restart may lose it."}`,
	} {
		if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	found := extract(t, c, moment.Options{})
	if len(found) != 1 || found[0].Content != "Where does the button go?\nInto the toolbar" || found[0].Type != moment.Decision {
		t.Errorf("found %+v", found)
	}
}

// TestTextsOfCalls: calls of tools say whether files change, and the messages of commits are texts of the assistant.
func TestTextsOfCalls(t *testing.T) {
	_, c := newContext(t)
	say(t, c.Active(), "user", "Name the database in the check.")
	for _, arguments := range []map[string]string{
		{"path": "a.go"},
		{"path": "a.go", "oldText": "x", "newText": "y"},
		{"command": "git add . && git commit -m \"$(cat <<'EOF'\nfix(db): name it\n\nIt was missing.\nEOF\n)\" && git push"},
		{"command": `git commit -am "Say \"no\"" -m 'Twice.' && echo -m "x"`},
		{"command": "git commit --amend --no-edit"},
		{"command": "git log"},
	} {
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		call := map[string]any{"id": "1", "function": map[string]string{"name": "f", "arguments": string(text)}}
		body, err := json.Marshal(map[string]any{"role": "assistant", "content": "Now this.", "tool_calls": []any{call}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := moment.Texts(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range texts {
		got = append(got, fmt.Sprint(text.Voice, text.Acts, text.Edits, " ", text.Text))
	}
	want := []string{
		"userfalse false Name the database in the check.",
		"assistanttrue false Now this.",
		"assistanttrue true Now this.",
		"assistanttrue true Now this.",
		"commitfalse false fix(db): name it\n\nIt was missing.",
		"assistanttrue true Now this.",
		"commitfalse false Say \"no\"\n\nTwice.",
		"assistanttrue false Now this.",
		"assistanttrue false Now this.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestNameTaken(t *testing.T) {
	_, c := newContext(t)
	if _, err := c.NewBranch(t.Context(), "moments"); err != nil {
		t.Fatal(err)
	}
	if _, err := moment.Add(t.Context(), c, moment.Moment{Type: moment.Pattern, Content: "Tests run twice."}); err != nil {
		t.Fatal(err)
	}
	branches, err := c.Branches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := branches[len(branches)-1]
	if last.Name != "moments-2" || moment.BranchKind(last.Extra) != moment.Kind || last.Messages != 1 {
		t.Errorf("branches %+v", branches)
	}
	if got := all(t, c); len(got) != 1 {
		t.Errorf("stored: %+v", got)
	}
}

func TestAddRefuses(t *testing.T) {
	_, c := newContext(t)
	for name, m := range map[string]moment.Moment{
		"no text":      {Type: moment.Decision, Content: " "},
		"other type":   {Type: "idea", Content: "x"},
		"relevance":    {Type: moment.Decision, Content: "x", Relevance: 1.1},
		"path of root": {Type: moment.Decision, Content: "x", References: []moment.Reference{{File: "/etc/passwd"}}},
	} {
		if _, err := moment.Add(t.Context(), c, m); !errors.Is(err, ctxdir.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := moment.Moment{Type: moment.Decision, Content: "x", From: []uuid.UUID{uuid.New()}}
	if _, err := moment.Add(t.Context(), c, unknown); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("unknown source: %v", err)
	}
	if got := all(t, c); len(got) != 0 {
		t.Errorf("stored: %+v", got)
	}
}

// TestRemovedStaysAway: a removed moment is in the trash, which restores it; an extraction does not bring it back.
func TestRemovedStaysAway(t *testing.T) {
	s, c := newContext(t)
	say(t, c.Active(), "assistant", decided)
	id := extract(t, c, moment.Options{})[0].ID
	if err := moment.Remove(t.Context(), c, id); err != nil {
		t.Fatal(err)
	}
	if err := moment.Remove(t.Context(), c, id); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("removing again: %v", err)
	}
	if got := all(t, c); len(got) != 0 {
		t.Errorf("after the removal: %+v", got)
	}
	if found := extract(t, c, moment.Options{}); len(found) != 0 {
		t.Errorf("extracted again: %+v", found)
	}
	for item, err := range s.Trash(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Restore(t.Context(), item.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, c); len(got) != 1 || got[0].Content != decided {
		t.Errorf("restored: %+v", got)
	}
}

// TestSourceErasedMeanwhile: another process erases the source after a program has read it.
func TestSourceErasedMeanwhile(t *testing.T) {
	for _, folded := range []bool{false, true} {
		s, c := newContext(t)
		source := say(t, c.Active(), "assistant", decided)
		if folded {
			if err := c.Admin().Seal(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		slow := extractorFunc(func(ctx context.Context, texts []moment.Text) ([]moment.Moment, error) {
			other, err := ctxdir.Open(s.Info().Path)
			if err != nil {
				return nil, err
			}
			defer other.Close()
			if _, err := other.Erase(ctx, c.ID(), []uuid.UUID{source}, ctxdir.EraseOptions{}); err != nil {
				return nil, err
			}
			return moment.Local{}.Moments(ctx, texts)
		})
		if found := extract(t, c, moment.Options{Extractor: slow}); len(found) != 0 {
			t.Errorf("folded %v: stored %+v", folded, found)
		}
		if got := all(t, c); len(got) != 0 {
			t.Errorf("folded %v: the context has %+v", folded, got)
		}
	}
}

// TestAddedMeanwhile: another process finds the same moment, and judges it otherwise.
func TestAddedMeanwhile(t *testing.T) {
	s, c := newContext(t)
	say(t, c.Active(), "assistant", decided)
	slow := extractorFunc(func(ctx context.Context, texts []moment.Text) ([]moment.Moment, error) {
		found, err := moment.Local{}.Moments(ctx, texts)
		if err != nil {
			return nil, err
		}
		other, err := s.Open(ctx, c.ID())
		if err != nil {
			return nil, err
		}
		defer other.Close()
		if _, err := moment.Add(ctx, other, found...); err != nil {
			return nil, err
		}
		found[0].Relevance = 0.01
		return found, nil
	})
	if found := extract(t, c, moment.Options{Extractor: slow}); len(found) != 0 {
		t.Errorf("stored again: %+v", found)
	}
	if got := all(t, c); len(got) != 1 || got[0].Relevance == 0.01 {
		t.Errorf("the context has %+v", got)
	}
}

// TestListKeepsTime: moments do not make a conversation look newer.
func TestListKeepsTime(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range importer.Import(t.Context(), s.Importer(), "../testdata/claude-code/simple.jsonl", importer.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func() (all []ctxdir.Summary) {
		for sum, err := range s.List(t.Context(), ctxdir.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sum)
		}
		return all
	}
	before := list()
	err = s.Use(t.Context(), before[0].ID, func(c *ctxdir.Context) error {
		if _, err := moment.Add(t.Context(), c, moment.Moment{Type: moment.Decision, Content: decided}); err != nil {
			return err
		}
		return c.Admin().Seal(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	after := list()
	if !after[0].UpdatedAt.Equal(before[0].UpdatedAt) || after[0].Messages != before[0].Messages+1 {
		t.Errorf("before %+v, after %+v", before[0], after[0])
	}
	err = s.Use(t.Context(), before[0].ID, func(c *ctxdir.Context) error {
		say(t, c.Active(), "user", "More?")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if now := list(); !now[0].UpdatedAt.After(after[0].UpdatedAt) {
		t.Errorf("after a message: %v", now[0].UpdatedAt)
	}
}

type extractorFunc func(ctx context.Context, texts []moment.Text) ([]moment.Moment, error)

func (f extractorFunc) Moments(ctx context.Context, texts []moment.Text) ([]moment.Moment, error) {
	return f(ctx, texts)
}
