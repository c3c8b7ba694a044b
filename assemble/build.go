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
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

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
