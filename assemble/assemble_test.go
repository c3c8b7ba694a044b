package assemble_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// TestFindsAnOldFact asks for something that was said long ago.
func TestFindsAnOldFact(t *testing.T) {
	k := newKit(t)
	k.add(k.c, chatter(0, 50)...)
	k.add(k.c, "Remember: the staging database listens on port 54377 and is called heron.")
	k.add(k.c, chatter(100, 300)...)
	for _, format := range assemble.Formats {
		a := k.build(assemble.Request{Query: "which port does the staging database use?", MaxTokens: 2000, Format: format})
		if !strings.Contains(a.Text, "54377") {
			t.Errorf("%s: the fact is not in %d tokens", format, a.Tokens)
		}
		if a.Tokens > 2000 || a.Tokens < 1500 {
			t.Errorf("%s: %d tokens of 2000", format, a.Tokens)
		}
		k.follow(a)
		for i := 1; i < len(a.Items); i++ {
			last, it := a.Items[i-1], a.Items[i]
			if it.Kind == last.Kind && it.Kind != assemble.File && it.Position <= last.Position {
				t.Errorf("%s: %s %d comes after %d", format, it.Kind, it.Position, last.Position)
			}
		}
	}
}

// follow checks that each item leads to its message.
func (k *kit) follow(a *assemble.Assembly) {
	k.t.Helper()
	for _, it := range a.Items {
		if it.Position < 0 {
			continue
		}
		check(k.t, k.s.Use(k.t.Context(), it.Context, func(c *ctxdir.Context) error {
			b, err := c.Branch(it.Branch)
			if err != nil {
				return err
			}
			all, err := b.Range(k.t.Context(), it.Position, it.Position+1)
			if err == nil && (len(all) != 1 || all[0].ID != it.ID) {
				err = fmt.Errorf("%s of %s at %d is not message %s", it.Kind, it.Branch, it.Position, it.ID)
			}
			return err
		}))
	}
}

// TestOrderOfKinds checks what a text begins with, and that all kinds are there.
func TestOrderOfKinds(t *testing.T) {
	k := newKit(t)
	main := ctxdir.BranchMetadata{Name: "main", SystemPrompt: json.RawMessage(`"Be brief."`)}
	c, err := k.s.Create(t.Context(), ctxdir.Metadata{Branches: []ctxdir.BranchMetadata{main}})
	check(t, err)
	defer c.Close()
	k.add(c, "The heron sleeps in the barn.")
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",` +
		`"function":{"name":"Read","arguments":"{\"file_path\":\"src/heron.go\"}"}}]}`
	_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(call)})
	check(t, err)
	k.add(c, chatter(0, 200)...)
	first, err := c.Active().Range(t.Context(), 10, 11)
	check(t, err)
	a := k.build(assemble.Request{Context: c.ID(), Query: "heron", MaxTokens: 3000, Pinned: []uuid.UUID{first[0].ID}, Explain: true})
	var kinds []assemble.Kind
	for _, it := range a.Items {
		if len(kinds) == 0 || kinds[len(kinds)-1] != it.Kind {
			kinds = append(kinds, it.Kind)
		}
		if it.Why == "" {
			t.Errorf("nothing says why %s %d is there", it.Kind, it.Position)
		}
	}
	want := []assemble.Kind{assemble.Pinned, assemble.System, assemble.File, assemble.Newest, assemble.Passage}
	if !slices.Equal(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	k.follow(a)
	for _, text := range []string{"Be brief.", "src/heron.go", "sleeps in the barn", "m00199"} {
		if !strings.Contains(a.Text, text) {
			t.Errorf("the text has no %q", text)
		}
	}
	if len(a.LeftOut) == 0 || !slices.Contains(a.Strategies, assemble.Rank) || !slices.Contains(a.Strategies, assemble.Fit) {
		t.Errorf("left out %v, strategies %v", a.LeftOut, a.Strategies)
	}
}

// TestScope checks what branches and other contexts add.
func TestScope(t *testing.T) {
	k := newKit(t)
	ctx := t.Context()
	k.add(k.c, chatter(0, 40)...)
	b, err := k.c.Active().Fork(ctx, "side", 10)
	check(t, err)
	_, err = b.Append(ctx, ctxdir.Draft{Body: said("user", "the heron flies aside")})
	check(t, err)
	other := k.create("Other")
	k.add(other, "the heron flies elsewhere")
	has := func(r assemble.Request, text string) bool {
		r.Query, r.MaxTokens = "heron", 600
		a := k.build(r)
		k.follow(a)
		return strings.Contains(a.Text, text)
	}
	if !has(assemble.Request{}, "aside") || has(assemble.Request{}, "elsewhere") {
		t.Error("passages are those of all branches of the context")
	}
	if has(assemble.Request{Branch: "main"}, "aside") || !has(assemble.Request{Branch: "side"}, "aside") {
		t.Error("with a branch, passages are those of the branch")
	}
	if !has(assemble.Request{All: true}, "elsewhere") {
		t.Error("with All, passages come from other contexts")
	}
	_, err = assemble.Build(ctx, k.s, assemble.Request{Context: k.c.ID(), Branch: "none"})
	if !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("a branch that does not exist: %v", err)
	}
	for _, r := range []assemble.Request{{MaxTokens: -1}, {Format: "yaml"}} {
		r.Context = k.c.ID()
		if _, err := assemble.Build(ctx, k.s, r); !errors.Is(err, ctxdir.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestLeavesOutBookkeeping checks that records of tools are in no item, and that equal results come once.
func TestLeavesOutBookkeeping(t *testing.T) {
	k := newKit(t)
	result := "total 42\n" + strings.Repeat("heron.go heron_test.go\n", 20)
	for i := range 30 {
		role, body := "tool", fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, result)
		if i%3 == 0 {
			role, body = message.RoleMirror, `{"type":"event","text":"heron in the mirror"}`
		}
		_, err := k.c.Active().Append(t.Context(), ctxdir.Draft{Role: role, Body: json.RawMessage(body)})
		check(t, err)
	}
	for _, query := range []string{"heron", ""} {
		a := k.build(assemble.Request{Query: query, MaxTokens: 8000})
		if strings.Contains(a.Text, "mirror") {
			t.Errorf("%q: a record of bookkeeping is in the text", query)
		}
		if n := strings.Count(a.Text, "total 42"); n != 1 {
			t.Errorf("%q: a repeated result is there %d times", query, n)
		}
	}
}

// TestDates checks that a query finds messages by their time.
func TestDates(t *testing.T) {
	k := newKit(t)
	var drafts []ctxdir.Draft
	for i := range 300 {
		text := fmt.Sprintf("m%03d %s", i, strings.Repeat("lorem ipsum ", 10))
		drafts = append(drafts, ctxdir.Draft{CreatedAt: at("2026-01-01").AddDate(0, 0, i), Body: said("user", text)})
	}
	_, err := k.c.Active().AppendBatch(t.Context(), drafts)
	check(t, err)
	for query, want := range map[string]string{
		"what happened on 2026-02-10?": "m040", "and on March 2, 2026?": "m060", "on 2 March": "m060", "what was it in May 2026": "m120",
	} {
		a := k.build(assemble.Request{Query: query, MaxTokens: 1500})
		if !strings.Contains(a.Text, want) {
			t.Errorf("%q: the text has no %s", query, want)
		}
	}
}

// TestSameBeginning checks that the texts of a growing conversation share their beginning most of the time.
func TestSameBeginning(t *testing.T) {
	k := newKit(t)
	k.add(k.c, chatter(0, 200)...)
	last, same := "", 0
	const calls = 40
	for i := range calls {
		k.add(k.c, chatter(1000+i, 1)...)
		// Each query is another one.
		a := k.build(assemble.Request{Query: fmt.Sprintf("what about m%05d", i), MaxTokens: 4000})
		n := 0
		for n < min(len(last), len(a.Text)) && last[n] == a.Text[n] {
			n++
		}
		if 5*n >= len(a.Text) {
			same++
		}
		last = a.Text
	}
	if same < calls*2/3 {
		t.Errorf("%d of %d texts begin as the one before", same, calls)
	}
}

// TestWhole checks that a short conversation is there as a whole, in order.
func TestWhole(t *testing.T) {
	k := newKit(t)
	k.add(k.c, "one fish", "two fish", "red fish", "blue fish")
	a := k.build(assemble.Request{Query: "fish", MaxTokens: 500})
	want := "#0 user: one fish\n#1 assistant: two fish\n#2 user: red fish\n#3 assistant: blue fish\n"
	if !strings.HasSuffix(a.Text, want) || len(a.Items) != 4 {
		t.Errorf("the text is %q", a.Text)
	}
	if again := k.build(assemble.Request{Query: "fish", MaxTokens: 500}); again.Text != a.Text {
		t.Error("the same request gave another text")
	}
}

// TestFormats checks what the APIs take.
func TestFormats(t *testing.T) {
	k := newKit(t)
	k.add(k.c, "the heron <b>sleeps</b>", "it does", "good")
	var list []struct{ Role, Content string }
	check(t, json.Unmarshal([]byte(k.build(assemble.Request{Query: "heron", MaxTokens: 900, Format: assemble.OpenAI}).Text), &list))
	if len(list) != 3 || list[0].Role != "user" || list[0].Content != "the heron <b>sleeps</b>" || list[1].Role != "assistant" {
		t.Errorf("openai: %v", list)
	}
	k.add(k.c, chatter(0, 100)...)
	var request struct {
		System   string
		Messages []struct{ Role, Content string }
	}
	check(t, json.Unmarshal([]byte(k.build(assemble.Request{Query: "heron", MaxTokens: 900, Format: assemble.Anthropic}).Text), &request))
	for i, m := range request.Messages {
		if m.Role != []string{"user", "assistant"}[i%2] || m.Content == "" {
			t.Errorf("anthropic: message %d is of %q", i, m.Role)
		}
	}
	if n := len(request.Messages); n < 2 || !strings.Contains(request.Messages[n-1].Content, "heron") {
		t.Errorf("anthropic: the last of %d messages has no passage", n)
	}
}
