package search_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// shown is a message that a branch shows, as the public API yields it.
type shown struct {
	context  uuid.UUID
	kind     string
	line     uuid.UUID
	id       uuid.UUID
	position int64
	role     string
	at       int64
	branches []string
	texts    [][]string // the words of each text
	same     [32]byte   // of the words that are said, and of the rest: "Report" and "# Report" are the same text
	terms    map[string]bool
	raw      string
	body     []byte
	texting  []byte // the body with references to binary payloads
}

func (m *shown) key() string { return fmt.Sprintf("%s %s %d", m.context, m.line, m.position) }

// everything returns what the branches of a store show.
func everything(t *testing.T, s *ctxdir.Store) (all []*shown) {
	t.Helper()
	ctx := t.Context()
	for sum, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		check(t, err)
		c, err := s.Open(ctx, sum.ID)
		check(t, err)
		by := map[string]*shown{}
		infos, err := c.Branches(ctx)
		check(t, err)
		for _, info := range infos {
			b, err := c.Branch(info.Name)
			check(t, err)
			for m, err := range b.Messages(ctx, 0, ctxdir.End) {
				check(t, err)
				if m.Unavailable != nil {
					continue
				}
				x := newShown(t, m, sum)
				if by[x.key()] == nil {
					by[x.key()] = x
					all = append(all, x)
				}
				by[x.key()].branches = append(by[x.key()].branches, info.Name)
			}
		}
		check(t, c.Close())
	}
	return all
}

// cutBefore are messages with their texts and terms, by the sum of the body: tests read them again and again.
var cutBefore sync.Map

func newShown(t *testing.T, m *ctxdir.Message, sum ctxdir.Summary) *shown {
	body, err := m.Body(t.Context())
	check(t, err)
	at := m.CreatedAt
	if at.IsZero() {
		at = m.StoredAt
	}
	x := &shown{
		context: sum.ID, kind: sum.Kind, line: m.Line, position: m.Position, id: m.ID, role: m.Role, at: at.UnixNano(), terms: map[string]bool{},
	}
	if m.Role == "user" && strings.Contains(string(body), `"tool_result"`) && len(search.Speech(m.Role, body)) == 0 {
		x.role = "tool"
	}
	if before, ok := cutBefore.Load(sha256.Sum256(body)); ok {
		as := before.(*shown)
		x.body, x.texting, x.texts, x.same, x.terms, x.raw = as.body, as.texting, as.texts, as.same, as.terms, as.raw
		return x
	}
	x.body = body
	x.texting, err = m.Texts(t.Context())
	check(t, err)
	said, seen := search.Speech(m.Role, x.texting), map[string]bool{}
	var spoken, rest [][]string
	for _, text := range append(search.Texts(body), attachedTexts(body)...) {
		if len(text) >= 32 && seen[text] { // the index holds a text once that a message has twice
			continue
		}
		seen[text] = true
		words := search.Words(text)
		x.texts = append(x.texts, words)
		if slices.Contains(said, text) {
			spoken = append(spoken, words)
		} else {
			rest = append(rest, words)
		}
		maps.Copy(x.terms, search.AllTerms(text))
		x.raw += text + "\n"
	}
	x.same = sha256.Sum256(fmt.Append(nil, spoken, rest))
	cutBefore.Store(sha256.Sum256(body), x)
	return x
}

// attachedTexts returns the texts of the files in a message that it says are text.
func attachedTexts(body []byte) (all []string) {
	if !bytes.Contains(body, []byte(`"media_type":"text/`)) {
		return nil
	}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e)
			}
		case map[string]any:
			for _, e := range v {
				look(e)
			}
			media, _ := v["media_type"].(string)
			data, _ := v["data"].(string)
			if b, err := base64.StdEncoding.DecodeString(data); err == nil && strings.HasPrefix(media, "text/") {
				all = append(all, string(b))
			}
		}
	}
	var v any
	if json.Unmarshal(body, &v) == nil {
		look(v)
	}
	return all
}

// condition is a condition on a message, and how a query spells it.
type condition struct {
	text string
	met  func(m *shown) bool
}

func wordCondition(w string) condition {
	stem := search.Stem(search.Words(w)[0])
	return condition{w, func(m *shown) bool { return m.terms[stem] }}
}

func prefixCondition(w string) condition {
	low := search.Words(w)[0]
	return condition{w + "*", func(m *shown) bool {
		for term := range m.terms {
			if strings.HasPrefix(term, low) {
				return true
			}
		}
		return false
	}}
}

func phraseCondition(words []string) condition {
	return condition{`"` + strings.Join(words, " ") + `"`, func(m *shown) bool {
		for _, text := range m.texts {
			for i := range text {
				if i+len(words) <= len(text) && slices.Equal(text[i:i+len(words)], words) {
					return true
				}
			}
		}
		return false
	}}
}

func substringCondition(s string) condition {
	return condition{s, func(m *shown) bool { return strings.Contains(m.raw, s) }}
}

func not(c condition) condition {
	return condition{"-" + c.text, func(m *shown) bool { return !c.met(m) }}
}

func either(a, b condition) condition {
	return condition{a.text + " OR " + b.text, func(m *shown) bool { return a.met(m) || b.met(m) }}
}

// asciiWord is a random word of a message for which a query can ask, empty if there is none.
func asciiWord(r *rand.Rand, m *shown) string {
	for range 20 {
		if len(m.texts) == 0 {
			return ""
		}
		text := m.texts[r.IntN(len(m.texts))]
		if len(text) == 0 {
			continue
		}
		w := text[r.IntN(len(text))]
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
			return w
		}
	}
	return ""
}

// randomQuery returns a query about words that messages have.
func randomQuery(r *rand.Rand, x *search.Index, all []*shown) (q search.Query, met func(m *shown) bool) {
	pick := func() *shown { return all[r.IntN(len(all))] }
	word := func() string {
		for range 50 {
			if w := asciiWord(r, pick()); w != "" {
				return w
			}
		}
		return "nothing"
	}
	first := pick()
	w := asciiWord(r, first)
	if w == "" {
		w = word()
	}
	conditions := []condition{wordCondition(w)}
	switch r.IntN(9) {
	case 0:
		conditions = append(conditions, wordCondition(word()))
	case 1:
		conditions = append(conditions, not(wordCondition(word())))
	case 2:
		conditions = []condition{either(wordCondition(w), wordCondition(word())), not(prefixCondition(word()))}
	case 3:
		conditions = []condition{prefixCondition(w[:max(len(w)-2, 1)])}
	case 4, 5:
		if len(first.texts) == 0 {
			break
		}
		if text := first.texts[r.IntN(len(first.texts))]; len(text) > 3 {
			at := r.IntN(len(text) - 2)
			if phrase := text[at : at+2]; strings.Trim(strings.Join(phrase, ""), "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
				conditions = []condition{phraseCondition(phrase)}
			}
		}
	case 6:
		if at := strings.IndexFunc(first.raw, func(r rune) bool { return r >= '一' && r <= '龥' }); at >= 0 {
			runes := []rune(first.raw[at:])
			n := 1
			for n < len(runes) && runes[n] >= '一' && runes[n] <= '龥' {
				n++
			}
			from := r.IntN(n)
			conditions = []condition{substringCondition(string(runes[from : from+1+r.IntN(n-from)]))}
		}
	case 7:
		conditions = nil
		for range 7 {
			conditions = append(conditions, wordCondition(word()))
		}
	}
	var text []string
	for _, c := range conditions {
		text = append(text, c.text)
	}
	q.Text = strings.Join(text, " ")
	words := func(m *shown) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c.met(m) })
	}
	q, met = filtered(r, q, func(m *shown) bool { return words(m) }, first)
	if kept := search.Kept(context.Background(), x, q); kept != nil {
		words = func(m *shown) bool {
			return slices.ContainsFunc(kept, func(w string) bool { return m.terms[search.Stem(w)] })
		}
	}
	return q, met
}

// filtered adds other conditions to some queries.
func filtered(r *rand.Rand, q search.Query, words func(m *shown) bool, like *shown) (search.Query, func(m *shown) bool) {
	other := func(*shown) bool { return true }
	switch r.IntN(9) {
	case 0:
		q.Contexts = []uuid.UUID{like.context}
		other = func(m *shown) bool { return m.context == like.context }
	case 1:
		q.Branch = like.branches[0]
		other = func(m *shown) bool { return slices.Contains(m.branches, q.Branch) }
	case 2:
		q.Roles = []string{like.role}
		other = func(m *shown) bool { return m.role == like.role }
	case 3:
		q.Since = timeOf(like.at)
		other = func(m *shown) bool { return m.at >= like.at }
	case 4:
		q.Kind = "*"
	case 5:
		q.Kind = "moments"
	case 6:
		q.Bookkeeping = true
	}
	return q, func(m *shown) bool {
		moment := !slices.ContainsFunc(m.branches, func(name string) bool { return name != "moments" })
		kind := q.Kind == "*" || q.Kind == "moments" && moment ||
			q.Kind == "" && (!moment || slices.Contains(q.Roles, m.role)) && (m.kind == "" || len(q.Contexts) > 0)
		hidden := message.IsBookkeeping(m.role) && len(q.Roles) == 0 && !q.Bookkeeping
		return kind && !hidden && other(m) && words(m)
	}
}

// agree compares the answers to random queries with a scan, which it returns.
func agree(t *testing.T, when string, s *ctxdir.Store, x *search.Index, r *rand.Rand, queries int) []*shown {
	t.Helper()
	updated, err := x.Update(t.Context(), search.UpdateOptions{})
	check(t, err, updated.Problem)
	all := everything(t, s)
	for range queries {
		q, met := randomQuery(r, x, all)
		want := map[string]*shown{}
		for _, m := range all {
			if met(m) {
				want[m.key()] = m
			}
		}
		got := map[string][]string{}
		for h, err := range x.Search(t.Context(), q) {
			if err != nil {
				t.Fatalf("%s: %+v: %v", when, q, err)
			}
			m := shown{context: h.Context, line: h.Line, position: h.Position}
			if got[m.key()] != nil {
				t.Errorf("%s: %+v yields %s twice", when, q, m.key())
			}
			got[m.key()] = h.Branches
		}
		if problem := difference(got, want, q.Bookkeeping); problem != "" {
			t.Fatalf("%s: %+v: %s", when, q, problem)
		}
	}
	again, err := x.Update(t.Context(), search.UpdateOptions{Whole: true})
	if check(t, err, again.Problem); again.Messages != 0 {
		t.Errorf("%s: %d rows were not those of the store", when, again.Messages)
	}
	return all
}

// difference says how hits differ from the messages that should be found: one of those with the same text, or all copies.
func difference(got map[string][]string, want map[string]*shown, copies bool) string {
	text := func(m *shown) string {
		if copies {
			return m.key()
		}
		return string(m.same[:])
	}
	found := map[string]bool{}
	for key, branches := range got {
		m := want[key]
		switch {
		case m == nil:
			return fmt.Sprintf("%d hits: got %s, want nothing", len(got), key)
		case !slices.Equal(branches, m.branches):
			return fmt.Sprintf("%s: got %q, want %q", key, branches, m.branches)
		case found[text(m)]:
			return fmt.Sprintf("%s: another hit has the same text", key)
		}
		found[text(m)] = true
	}
	for key, m := range want {
		if !found[text(m)] {
			return fmt.Sprintf("%d hits: want %s, got nothing", len(got), key)
		}
	}
	return ""
}

var vocabulary = strings.Fields(`lock locks locking locked flaky test tests tested testing index indexes journal fold folding commit
committed committing parse parser parsing parseTokenStream tokenStream TokenReader HTTPServer snake_case_name snake_case camelCase
internal/engine/store.go docs/FORMAT.md v1.2.3 2026 42 error errors erase erased eraser rewind rewinds branch branches
我们修复了锁测试 锁 修复
测试问题 東京タワー naïve café Größe don't re-open --force a.b.c x the of and was were this what how why`)

// speech returns a random message. Some of them have a word of their own.
func speech(r *rand.Rand, n int) ctxdir.Draft {
	var words []string
	for range 3 + r.IntN(30) {
		words = append(words, vocabulary[r.IntN(len(vocabulary))])
	}
	if r.IntN(3) == 0 {
		words = append(words, fmt.Sprintf("own%dword", n))
	}
	text := strings.Join(words, " ")
	body := map[string]any{"role": []string{"user", "assistant", "tool", "user", "assistant", message.RoleMirror}[r.IntN(6)], "content": text}
	switch r.IntN(4) {
	case 0:
		body["content"] = []any{map[string]any{"type": "text", "text": text}, map[string]any{"type": "text", "text": text}}
	case 1:
		body["content"] = strings.Repeat(text+"\n", 100) // in a blob
	}
	if n%3 > 0 { // some record a call, and some of them one that another one records, too
		body["id"], body["model"] = fmt.Sprintf("chatcmpl-%010d", n%50), "model"
		body["usage"] = map[string]any{"input_tokens": n % 1000, "output_tokens": len(words)}
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return ctxdir.Draft{Body: b}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func appendSpeech(t *testing.T, r *rand.Rand, b *ctxdir.Branch, n int) {
	t.Helper()
	for i := range n {
		_, err := b.Append(context.Background(), speech(r, r.IntN(1e6)+i))
		check(t, err)
	}
}
