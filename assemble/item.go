package assemble

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// Request says what to assemble.
type Request struct {
	Context   uuid.UUID // the conversation; without it, the text is the passages of all contexts that have the labels
	Labels    map[string]string
	Contexts  []uuid.UUID // passages of no others, whatever All says; empty for all
	Except    []uuid.UUID // no passages of these
	Branch    string      // its newest messages, and passages of it alone; empty for the active one, and passages of all branches
	Query     string      // plain language; without it, there are no passages
	MaxTokens int         // of Text; 0 for the setting of the store, or [ctxdir.DefaultMaxTokens]
	All       bool        // passages of every context of the store
	Speech    bool        // no passages of thoughts, of calls of tools, and of what tools answer
	PerText   int         // of the passages of one message, in bytes, about; 0 for no bound
	Pinned    []uuid.UUID
	Root      string // of the workspace, for the lines to which messages refer; empty to leave them out
	Format    Format
	Tokens    Tokenizer     `json:"-"` // nil for [O200k]
	Index     *search.Index `json:"-"` // of the store, if it is open; Build brings it up to date
	Weights   *Weights      // nil for [DefaultWeights]
	Explain   bool          // fill LeftOut, and Why of each item

	// Compression says how to summarise passages that do not fit: one of [compress.Modes], empty for no summary.
	Compression string
	Endpoint    *compress.Endpoint `json:"-"` // for a mode other than local
}

// Format is the form of the assembled text.
type Format string

// Weights say what counts how much. System to Summary are the parts of the budget that items get at most, and passages
// get the rest.
type Weights struct {
	System     float64 // instructions, pinned messages, and the system prompt
	Moments    float64
	Newest     float64
	Files      float64
	Code       float64
	Summary    float64
	PerNewest  int       // tokens of the budget for one of the newest messages; work with tools comes along
	Neighbours []float64 // what a message adds to the score of another one at this distance
	Message    float64   // what the score of a message adds to that of its only passage
}

// DefaultWeights were chosen by measurement: see docs/benchmarks/context.md.
var DefaultWeights = Weights{
	System: 0.25, Moments: 0.1, Newest: 0.62, Files: 0.25, Code: 0.15, Summary: 0.15,
	PerNewest: 160, Neighbours: []float64{0.5, 0.3, 0.2, 0.1}, Message: 1,
}

// Kind is the kind of an item.
type Kind string

// The kinds of items, in the order of the text.
const (
	Instructions Kind = "instructions" // of the workspace
	Pinned       Kind = "pinned"
	System       Kind = "system"
	Moment       Kind = "moment"
	File         Kind = "file"
	Newest       Kind = "newest"
	Code         Kind = "code"
	Summary      Kind = "summary" // of passages that are not in the text
	Passage      Kind = "passage"
)

// Strategies by which items are chosen.
const (
	Given            = "given"
	ExtractDecisions = "extract_decisions"
	ExtractPatterns  = "extract_patterns"
	ExtractSolutions = "extract_solutions"
	ExtractContext   = "extract_context"
	Recent           = "recent"
	Ledger           = "ledger"
	Resolve          = "resolve"
	Rank             = "rank"
	SummariseLocal   = "summarise_local"  // with sentences of the passages themselves
	SummariseRemote  = "summarise_remote" // by the endpoint of the request
	Fit              = "fit"              // drops what is over the budget
)

// Item is a piece of the assembled text.
type Item struct {
	Kind     Kind
	Strategy string
	Context  uuid.UUID
	Title    string // of the context
	Branch   string
	Position int64     // of the message, -1 if the item is not a message
	From     []Source  // of a summary
	ID       uuid.UUID // of the message
	Role     string    // user, assistant, tool or system; of a moment, its type
	At       time.Time
	Text     string
	Tokens   int
	Score    float64
	Why      string

	priority int
	cut      bool   // Text is a part of the message
	prose    bool   // the passage is what a person or a model says
	reason   string // why the passage is not in the text
	line     uuid.UUID
	sections []section
	message  *ctxdir.Message
	order    int // of the passage in the message
}

// Source is a message from which a summary was made.
type Source struct {
	Context  uuid.UUID
	Branch   string
	Position int64
	ID       uuid.UUID
}

// section is a part of a message, in plain text.
type section struct {
	text   string
	work   bool // a thought, a call or a result
	result bool // of a tool
	prose  bool // what a person or a model says
}

// LeftOut says what did not come into the text.
type LeftOut struct {
	Kind    Kind
	Items   int
	Reason  string
	Best    float64 // the largest score of them
	Example *Item   // the one with that score
}

// Assembly is an assembled text.
type Assembly struct {
	Text       string // in the format of the request; of [JSON], as in [Text]
	Items      []Item // in the order of the text
	Tokens     int    // of Text
	MaxTokens  int
	Tokenizer  string
	Strategies []string // that chose at least one item
	LeftOut    []LeftOut
	Behind     int64 // commits that the index does not have
	RemoteErr  error // why a summary of the mode hybrid was made here
}

// builder builds one assembly.
type builder struct {
	ctx        context.Context
	store      *ctxdir.Store
	r          *Request
	x          *search.Index
	c          *ctxdir.Context
	branch     *ctxdir.Branch
	title      string
	cutter     *search.TermCutter
	terms      []string
	seen       map[uint64]bool  // passages that are in an item
	shown      map[address]bool // messages that are in an item as a whole
	items      []Item
	pool       []Item // passages, best first
	left       []LeftOut
	ranking    *search.Ranking
	references []located
	behind     int64
	remoteErr  error

	instructions   string
	cache          *answers.Cache
	asked, commits answers.Sum
	drawn          map[uuid.UUID][]source
	keeps          bool
	unread         atomic.Bool // a payload of a message is missing
}

// located is a reference of a message.
type located struct {
	ref  reference.Ref
	from Item
}

// source is a message that the assembly is made from.
type source struct {
	line uuid.UUID
	answers.Message
}

// address is the place of a message.
type address struct {
	context, line uuid.UUID
	position      int64
}

// isOne reports whether passages come from one context.
func (b *builder) isOne() bool { return !b.r.All && b.r.Context != uuid.Nil }

// budget is a share of the budget, in tokens.
func (b *builder) budget(share float64) int { return int(float64(b.r.MaxTokens) * share) }

// merge returns the passages in the order of the text: by context and branch, the best first, then by position.
// Passages of one message are one item.
func merge(chosen []Item) (all []Item) {
	type group struct {
		context uuid.UUID
		branch  string
	}
	rank := map[group]int{}
	for i := range chosen {
		g := group{chosen[i].Context, chosen[i].Branch}
		if _, ok := rank[g]; !ok {
			rank[g] = len(rank)
		}
	}
	sorted := slices.Clone(chosen)
	slices.SortStableFunc(sorted, func(x, y Item) int {
		return cmp.Or(cmp.Compare(rank[group{x.Context, x.Branch}], rank[group{y.Context, y.Branch}]),
			cmp.Compare(x.Position, y.Position), cmp.Compare(x.order, y.order))
	})
	for i := range sorted {
		it := &sorted[i]
		if len(all) == 0 || all[len(all)-1].ID != it.ID || all[len(all)-1].Branch != it.Branch {
			all = append(all, *it)
			continue
		}
		last := &all[len(all)-1]
		between := "\n"
		if it.order != last.order+1 {
			between = "\n[…]\n"
		}
		if it.Score > last.Score {
			last.Score, last.Why = it.Score, it.Why
		}
		last.Text += between + it.Text
		last.Tokens += it.Tokens
		last.order = it.order
	}
	return all
}

// leaveOut notes that an item is not in the text.
func (b *builder) leaveOut(it *Item, reason string) {
	if !b.r.Explain {
		return
	}
	at := slices.IndexFunc(b.left, func(l LeftOut) bool { return l.Kind == it.Kind && l.Reason == reason })
	if at < 0 {
		at = len(b.left)
		b.left = append(b.left, LeftOut{Kind: it.Kind, Reason: reason})
	}
	l := &b.left[at]
	if l.Items++; l.Example == nil || it.Score > l.Best {
		example := *it
		l.Best, l.Example = it.Score, &example
	}
}
