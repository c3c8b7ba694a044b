package search

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// Match is a line of a text that a regular expression matches.
type Match struct {
	Context  uuid.UUID
	Title    string            // of the context
	Labels   map[string]string // of the context
	Branches []string          // that show the message
	Position int64
	ID       uuid.UUID
	Pointer  string // RFC 6901, to the text in the message
	Line     string // of the text
	Marks    [][2]int
}

// Snippet returns a part of a long line, and the marks in it.
func (m *Match) Snippet() (string, [][2]int) {
	var marks []mark
	for i, at := range m.Marks {
		marks = append(marks, mark{at[0], at[1], i})
	}
	return cutSnippet(m.Line, marks)
}

// GrepOptions say where [Grep] looks.
type GrepOptions struct {
	Contexts []uuid.UUID // in these contexts, in this order; empty for all without a kind, the most recently changed first
	Branch   string      // only what a branch of this name shows
	// Bookkeeping adds records of agent tools that people do not read, and that repeat other messages.
	Bookkeeping bool
}

// Grep yields the lines that an expression matches, in every string that a branch shows: one context after another, and
// in each the messages of a line in order, earlier lines first. It reads all messages and needs no index. Where the
// expression requires some ASCII text, it parses only messages that contain it. An error concerns one context, and the
// others follow.
func Grep(ctx context.Context, s *ctxdir.Store, expression *regexp.Regexp, o GrepOptions) iter.Seq2[Match, error] {
	g := &grep{expression: expression, required: required(expression.String()), branch: o.Branch, talk: !o.Bookkeeping}
	return func(yield func(Match, error) bool) {
		ids := o.Contexts
		if len(ids) == 0 {
			for sum, err := range s.List(ctx, ctxdir.ListOptions{}) {
				if err != nil {
					yield(Match{}, err)
					return
				}
				if sum.Legacy == "" {
					ids = append(ids, sum.ID)
				}
			}
		}
		for _, id := range ids {
			more := true
			err := s.Use(ctx, id, func(c *ctxdir.Context) error {
				return g.context(ctx, c, func(m Match) bool {
					more = yield(m, nil)
					return more
				})
			})
			if !more || err != nil && !yield(Match{Context: id}, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

type grep struct {
	expression *regexp.Regexp
	required   []byte // every match contains it
	branch     string
	talk       bool // without records of bookkeeping
}

func (g *grep) context(ctx context.Context, c *ctxdir.Context, yield func(Match) bool) error {
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	names, _ := namesOf(c.Metadata())
	// Each message is one of the messages that a branch does not share with an earlier one.
	slices.SortStableFunc(branches, func(a, b ctxdir.BranchInfo) int { return cmp.Compare(a.Shared, b.Shared) })
	for _, is := range branches {
		b, err := c.Branch(is.Line.String()) // the branch may be renamed meanwhile
		if err != nil {
			return err
		}
		for m, err := range b.Messages(ctx, is.Shared, ctxdir.End) {
			if err != nil {
				return err
			}
			if m.Unavailable != nil || g.talk && message.IsBookkeeping(m.Role) || !g.maybe(m) {
				continue
			}
			shown := names.showing(m.Line, m.Position)
			if len(shown) == 0 || g.branch != "" && !slices.Contains(shown, g.branch) {
				continue
			}
			if !g.message(ctx, m, Match{
				Context: c.ID(), Title: names.Title, Labels: names.Labels, Branches: shown, Position: m.Position, ID: m.ID,
			}, yield) {
				return nil
			}
		}
	}
	return nil
}

// maybe reports whether a message may contain the required text.
func (g *grep) maybe(m *ctxdir.Message) bool {
	if g.required == nil || bytes.Contains(m.Stored, g.required) || bytes.Contains(m.Stored, []byte(`\u00`)) {
		return true
	}
	return slices.ContainsFunc(mediaHints, func(hint []byte) bool { return bytes.Contains(m.Stored, hint) }) || hasPayloads(m)
}

func hasPayloads(m *ctxdir.Message) bool {
	all, err := m.Payloads()
	return err != nil || len(all) > 0
}

// mediaHints are in every message that has a file in base64.
var mediaHints = [][]byte{[]byte("edia_type"), []byte("ediaType"), []byte("mime"), []byte("data:")}

func isAny(string, string) bool { return true }

func (g *grep) message(ctx context.Context, from *ctxdir.Message, m Match, yield func(Match) bool) bool {
	more := true
	eachSearched(ctx, from, isAny, func(t text) bool {
		if g.required != nil && !strings.Contains(t.value, string(g.required)) {
			return true
		}
		for line := range strings.Lines(t.value) {
			line = strings.TrimRight(line, "\r\n")
			found := g.expression.FindAllStringIndex(line, -1)
			if found == nil {
				continue
			}
			m.Pointer, m.Line, m.Marks = t.pointer, line, nil
			for _, at := range found {
				m.Marks = append(m.Marks, [2]int{at[0], at[1]})
			}
			if more = yield(m); !more {
				return false
			}
		}
		return true
	})
	return more
}

// required returns a text that every match of an expression contains, nil for none. JSON spells its characters in one
// way, or as \u00XX.
func required(expression string) []byte {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	var longest []byte
	literals(re.Simplify(), func(literal []rune) {
		for part := range strings.FieldsFuncSeq(string(literal), func(r rune) bool { return r != ' ' && !isWordByteRune(r) }) {
			if len(part) > len(longest) {
				longest = []byte(part)
			}
		}
	})
	return longest
}

func isWordByteRune(r rune) bool { return r < 0x80 && isWordByte(byte(r)) }

// literals yields the literal texts that every match contains.
func literals(re *syntax.Regexp, yield func(literal []rune)) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			yield(re.Rune)
		}
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			literals(sub, yield)
		}
	}
}
