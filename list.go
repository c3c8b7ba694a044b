package ctxdir

import (
	"context"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/internal/listing"
)

// ListOrder is an order of a list.
type ListOrder string

// The orders of a list.
const (
	OrderUpdated ListOrder = listing.OrderUpdated // most recently changed first
	OrderCreated ListOrder = listing.OrderCreated // newest first
	OrderSize    ListOrder = listing.OrderSize    // largest first
	OrderTitle   ListOrder = listing.OrderTitle   // by the alphabet, without regard to case
)

// ListOptions select contexts for [Store.List] and order them. The zero value lists all contexts without a kind, the
// most recently changed first. A context must meet all conditions.
type ListOptions struct {
	Labels map[string]string // the context has all these labels
	Kind   string            // the context has this kind, none if it is empty; "*" lists contexts of every kind, and those without one
	Title  string            // a pattern for the whole title, with *, ? and [a-z], without regard to case
	Model  string            // config.model_id
	Tool   string            // the label "tool": the program in which the conversation took place
	Since  time.Time         // changed at this time or later
	Until  time.Time         // changed before this time

	Order   ListOrder // empty for [OrderUpdated]
	Reverse bool      // the other way round
	Limit   int       // at most so many contexts; 0 for all
	// Cursor continues an earlier list after the context whose [Summary].Cursor it is. Order and Reverse must be those of
	// the earlier list. Contexts that are created, changed or removed meanwhile move no others.
	Cursor string
}

// List yields the contexts that o asks for, legacy contexts too. Contexts that are equal in the order are ordered by
// id. A damaged context is a row with its Problem; an error means that o is not valid ([ErrInvalid]), or that the
// store's own folder cannot be read. List opens no context that has not changed since an earlier list: the file
// summaries.jsonl is a cache. Every row is current, but a context whose files became unreadable, or were damaged, without
// a change of their size or time gets its Problem only when List opens it again: [Store.Check] reads everything. A commit
// of any process that makes a context meet the conditions is seen by the next list; an edit of metadata.json by hand,
// within ten seconds.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[Summary, error] {
	return each(s.lists.List(ctx, listing.ListOptions{
		Labels: o.Labels, Kind: o.Kind, Title: o.Title, Model: o.Model, Tool: o.Tool, Since: o.Since, Until: o.Until,
		Order: string(o.Order), Reverse: o.Reverse, Limit: o.Limit, Cursor: o.Cursor,
	}), summary)
}
