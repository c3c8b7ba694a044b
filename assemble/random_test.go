package assemble_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/google/uuid"
)

// TestBudget builds random assemblies of random texts: none has more tokens than its budget, each is the same twice,
// and its items lead to their messages.
func TestBudget(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 300
	}
	k := newKit(t)
	r := rand.New(rand.NewPCG(7, 7))
	var ids []uuid.UUID
	for range 4 {
		c := k.create(randomText(r, 40))
		ids = append(ids, c.ID())
		var texts []string
		for range 20 + r.IntN(150) {
			texts = append(texts, randomText(r, 1<<r.IntN(12)))
		}
		k.add(c, texts...)
	}
	for i := range n {
		q := assemble.Request{
			Context: ids[r.IntN(len(ids))], Query: randomText(r, r.IntN(60)), MaxTokens: 1 + r.IntN(1<<r.IntN(13)), All: r.IntN(3) == 0,
			Format: assemble.Formats[r.IntN(len(assemble.Formats))], Explain: r.IntN(2) == 0,
		}
		if r.IntN(3) == 0 {
			q.Compression = compress.ModeLocal
		}
		if r.IntN(4) == 0 {
			q.Tokens = assemble.Estimate()
		}
		a := k.build(q)
		tokens := assemble.O200k()
		if q.Tokens != nil {
			tokens = q.Tokens
		}
		if count := tokens.Count(a.Text); count > q.MaxTokens || count != a.Tokens {
			t.Fatalf("%+v: %d tokens, reported %d", q, count, a.Tokens)
		}
		if i%50 == 0 {
			if again := k.build(q); !same(again, a) {
				t.Fatalf("%+v: another answer the second time", q)
			}
			check(t, os.RemoveAll(k.answers()))
			if again := k.build(q); !same(again, a) {
				t.Fatalf("%+v: another answer without the cache", q)
			}
			k.follow(a)
		}
	}
}

// randomText is a text of about n bytes: words, lines, code, other scripts, and runs without a space.
func randomText(r *rand.Rand, n int) string {
	pieces := []func() string{
		func() string {
			return []string{"port ", "heron ", "database ", "stagingServer ", "the ", "errors\n"}[r.IntN(6)]
		},
		func() string {
			return []string{"测试", "锁", "日本語", "привет ", "👩‍👩‍👧", "é̂", "\u202e"}[r.IntN(7)]
		},
		func() string { return fmt.Sprintf("%x", r.Uint64()) },
		func() string { return strings.Repeat(string(rune('!'+r.IntN(90))), r.IntN(300)) },
		func() string { return fmt.Sprintf("{\"a\":%d,\n\t\"b\\u00e9\":\"\\n\"} ", r.IntN(1000)) },
		func() string { return []string{"\n\n", "   ", "\t", "\r\n", " \x00", "<|endoftext|>"}[r.IntN(6)] },
	}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(pieces[r.IntN(len(pieces))]())
	}
	return b.String()
}

// TestTinyBudget checks budgets that hold nothing.
func TestTinyBudget(t *testing.T) {
	k := newKit(t)
	k.add(k.c, chatter(0, 30)...)
	for _, format := range assemble.Formats {
		for n := 1; n < 60; n++ {
			if a := k.build(assemble.Request{Query: "lorem", MaxTokens: n, Format: format}); a.Tokens > n {
				t.Errorf("%s: %d tokens of %d: %q", format, a.Tokens, n, a.Text)
			}
		}
	}
}
