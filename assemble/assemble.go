// Package assemble chooses what a model should see of a store: the newest messages of a conversation, the files that it
// names, and the passages that answer a query, within a budget of tokens. Each item says where it comes from.
//
//	a, err := assemble.Build(ctx, store, assemble.Request{Context: id, Query: "which port does staging use", MaxTokens: 4000})
//	fmt.Print(a.Text)
//
// The text never has more tokens than the budget, in any [Format]. The same store and request give the same bytes.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// Request says what to assemble.
type Request struct {
	Context   uuid.UUID // the conversation; without it, the text is the passages of all contexts that have the labels
	Labels    map[string]string
	Branch    string // its newest messages, and passages of it alone; empty for the active one, and passages of all branches
	Query     string // plain language; without it, there are no passages
	MaxTokens int    // of Text; 0 for the setting of the store, or [ctxdir.DefaultMaxTokens]
	All       bool   // passages of every context of the store
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

// Build assembles a text. It brings the search index up to date first: of the context, or of the store with All. An
// earlier assembly for the same request is used again if nothing that it was made from has changed.
func Build(ctx context.Context, s *ctxdir.Store, r Request) (*Assembly, error) {
	settings, err := s.Settings()
	if err != nil {
		return nil, err
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = int(cmp.Or(settings.MaxTokens, ctxdir.DefaultMaxTokens))
	}
	if r.MaxTokens < 0 {
		return nil, fmt.Errorf("%w: the budget of %d tokens is negative", ctxdir.ErrInvalid, r.MaxTokens)
	}
	if r.Weights == nil {
		r.Weights = &DefaultWeights
	}
	if r.Tokens == nil {
		r.Tokens = O200k()
	}
	if !r.Format.isValid() {
		return nil, fmt.Errorf("%w: unknown format %q", ctxdir.ErrInvalid, r.Format)
	}
	if _, err := compress.New(r.Compression, r.Endpoint, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ctxdir.ErrInvalid, err)
	}
	b := &builder{ctx: ctx, store: s, r: &r, x: r.Index, seen: map[uint64]bool{}, shown: map[address]bool{}, cutter: search.NewTermCutter()}
	b.drawn = map[uuid.UUID][]source{}
	if b.x == nil {
		x, err := search.Open(ctx, s)
		if err != nil {
			return nil, err
		}
		defer x.Close() //nolint:errcheck // it was only read
		b.x = x
	}
	a, err := b.recall(settings.CacheSize)
	defer b.cache.Close()
	if a != nil || err != nil {
		return a, err
	}
	go r.Tokens.Count("") // it takes a while to start
	if r.Context == uuid.Nil {
		err = b.each(b.rank, b.addGiven, b.addPassages)
	} else {
		err = s.Use(ctx, r.Context, func(c *ctxdir.Context) error {
			b.c = c
			return b.build()
		})
	}
	if err != nil {
		return nil, err
	}
	if a, err = b.fit(); err == nil {
		b.keep(a)
	}
	return a, err
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

// address is the place of a message.
type address struct {
	context, line uuid.UUID
	position      int64
}

func (b *builder) build() (err error) {
	b.title = b.c.Metadata().Title
	if b.branch = b.c.Active(); b.r.Branch != "" {
		if b.branch, err = b.c.Branch(b.r.Branch); err != nil {
			return err
		}
	}
	defer b.endDrawing(b.c)
	return b.each(b.rank, b.addGiven, b.addMoments, b.addNewest, b.addFiles, b.addPassages, b.addReferences, b.fill)
}

// each takes steps until one fails.
func (b *builder) each(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// update brings the index up to date.
func (b *builder) update() error {
	if b.isOne() {
		return b.x.UpdateContext(b.ctx, b.r.Context)
	}
	done, err := b.x.Update(b.ctx, search.UpdateOptions{})
	b.behind = done.Behind
	return errors.Join(err, b.ctx.Err())
}

// isOne reports whether passages come from one context.
func (b *builder) isOne() bool { return !b.r.All && b.r.Context != uuid.Nil }

// budget is a share of the budget, in tokens.
func (b *builder) budget(share float64) int { return int(float64(b.r.MaxTokens) * share) }

// count returns the tokens of an item in the text.
func (b *builder) count(it *Item) int { return b.r.Tokens.Count(b.r.Format.piece(it)) }
