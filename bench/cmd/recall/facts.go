package main

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/bench/baseline"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// What counts as a fact.
const (
	gap         = 40 // messages without it
	maxMessages = 4  // that have it before
	perSession  = 40
	minTokens   = 40_000 // of a session
	maxPrompt   = 600    // bytes of the prompt in a query
	maxStep     = 300    // bytes of the turn before in a query
)

// session is a conversation of an agent tool.
type session struct {
	id        uuid.UUID
	branch    string
	root      string // the folder of the project
	tool      string // whose conversation it is
	turns     []baseline.Turn
	calls     []bool  // of the turns: whether they call tools
	positions []int64 // of the turns on the branch
	corpus    *baseline.Corpus
}

// tokens is the length of a session.
func (t *session) tokens() (n int) {
	for i := range t.turns {
		n += t.turns[i].Tokens
	}
	return n
}

type fact struct {
	word, query string
	at          int // the turn that uses it
}

// load imports sessions into a store, and reads them.
func load(ctx context.Context, s *ctxdir.Store, folder string) (all []*session, err error) {
	for _, tool := range []string{"claude-code", "codex", "opencode"} {
		files, err := filepath.Glob(filepath.Join(folder, tool, "*", "*.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			for done, err := range importer.Import(ctx, histories.Into(s), path, importer.Options{}) {
				if err != nil || done.Added == 0 {
					continue // some files are damaged on purpose
				}
				t, err := readSession(ctx, s, done.Context)
				if err != nil {
					return nil, err
				}
				t.tool = tool
				if t.tokens() >= minTokens {
					all = append(all, t)
				}
			}
		}
	}
	return all, nil
}

func readSession(ctx context.Context, s *ctxdir.Store, id uuid.UUID) (t *session, err error) {
	t = &session{id: id}
	tokens := assemble.O200k()
	err = s.Use(ctx, id, func(c *ctxdir.Context) error {
		t.branch = c.Active().Name()
		t.root = strings.TrimSuffix(c.Metadata().Labels["project"], "/") + "/"
		for m, err := range c.Active().Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return err
			}
			body, err := m.Texts(ctx)
			if err != nil || m.Unavailable != nil || message.IsBookkeeping(m.Role) || transcript.Bookkeeping(body) {
				continue
			}
			parts := transcript.Parts(body)
			for i := range parts {
				if parts[i].Kind == transcript.Call {
					parts[i].Text = unescape.Replace(parts[i].Text)
				}
			}
			text := transcript.Join(parts)
			if strings.TrimSpace(text) == "" {
				continue
			}
			result := !slices.ContainsFunc(parts, func(p transcript.Part) bool { return p.Kind != transcript.Result })
			t.turns = append(t.turns, baseline.Turn{
				Text: text, Role: transcript.VoiceOf(m.Role, parts), Result: result, Tokens: tokens.Count(text) + 4,
			})
			t.positions = append(t.positions, m.Position)
			t.calls = append(t.calls, slices.ContainsFunc(parts, func(p transcript.Part) bool { return p.Kind == transcript.Call }))
		}
		return nil
	})
	t.corpus = baseline.NewCorpus(t.turns)
	return t, err
}

// unescape shows the arguments of a call as they are read.
var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

var distinctive = regexp.MustCompile(`[A-Za-z0-9_/~.][A-Za-z0-9_./:@-]{5,79}`)

// isFact reports whether a word is an identifier, a path or a number rather than a word of a language.
func isFact(w string) bool {
	if len(w) < 6 || strings.Contains(w, "//") || strings.Contains(w, "..") {
		return false
	}
	if before, after, ok := strings.Cut(w, "/"); ok && before != "" && !strings.ContainsAny(after, "./_") {
		return false // two words, as a rule
	}
	letters := strings.ContainsFunc(w, unicode.IsLetter)
	camel := false
	for i := 1; i < len(w); i++ {
		camel = camel || unicode.IsUpper(rune(w[i])) && unicode.IsLower(rune(w[i-1]))
	}
	return camel || strings.ContainsAny(w, "_/0123456789") && (letters || !strings.ContainsAny(w, ":-./"))
}

// facts returns the facts of a session, evenly over its length.
func (t *session) facts() (all []fact) {
	last := map[string]int{}
	for i := range t.turns {
		turn := &t.turns[i]
		seen := map[string]bool{}
		found := false
		for _, w := range distinctive.FindAllString(turn.Text, -1) {
			if w = strings.TrimRight(w, ".:-/@"); seen[w] || !isFact(w) {
				continue
			}
			seen[w] = true
			before, ok := last[w]
			if ok && !found && turn.Role == "assistant" && i-before >= gap && t.isRare(w, i) {
				all, found = append(all, fact{w, t.query(i, w), i}), true
			}
		}
		for w := range seen {
			last[w] = i
		}
	}
	if len(all) <= perSession {
		return all
	}
	var some []fact
	for i := range perSession {
		some = append(some, all[i*len(all)/perSession])
	}
	return some
}

// isRare reports whether a few turns before i have a word, even as a part of another one, and none of the gap.
func (t *session) isRare(w string, i int) bool {
	n := 0
	for k := range t.turns[:i] {
		if !strings.Contains(t.turns[k].Text, w) {
			continue
		}
		if n++; n > maxMessages || k >= i-gap {
			return false
		}
	}
	return n > 0
}

// query is what a program knows before a turn: the newest prompt of the user, and the two turns before, without any
// word of the fact.
func (t *session) query(at int, w string) string {
	prompt := ""
	for i := at - 1; i >= 0 && prompt == ""; i-- {
		if turn := &t.turns[i]; turn.Role == "user" && !turn.Result {
			prompt = turn.Text
		}
	}
	text := prompt[:min(len(prompt), maxPrompt)]
	for _, turn := range t.turns[at-2 : at] {
		text += "\n" + turn.Text[:min(len(turn.Text), maxStep)]
	}
	text = strings.ReplaceAll(text, w, " ")
	for _, part := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(w, -1) {
		if len(part) >= 3 {
			text = regexp.MustCompile(`(?i)`+part).ReplaceAllString(text, " ")
		}
	}
	return strings.ToValidUTF8(text, " ")
}
