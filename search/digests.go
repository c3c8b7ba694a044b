package search

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// The index is one of digests, so that counting tokens need not read every message.
var _ usage.Index = (*Index)(nil)

// stretch is a part of a line that a line shows.
type stretch struct {
	line     uuid.UUID
	from, to int64
}

// stretches returns what a line shows at the positions from and later, in order: the messages that it inherits, and its
// own. It is empty for an unknown line.
func (n *names) stretches(line uuid.UUID, from int64) (all []stretch) {
	to := int64(math.MaxInt64)
	for range n.Lines { // a chain has no circle
		l := n.line(line)
		if l == nil {
			break
		}
		if begin := max(l.Base, from); begin < to {
			all = append(all, stretch{line, begin, to})
		}
		line, to = l.Parent, min(to, l.Base)
		if to <= from {
			break
		}
	}
	slices.Reverse(all)
	return all
}

// Digests yields the digests of the messages that a line of a context has at the positions from and later, with those
// that it inherits, as package usage needs them; it has no others of the messages that cannot be read. It fails with
// [ctxdir.ErrNotExist] if the index does not have the context.
func (x *Index) Digests(ctx context.Context, id, line uuid.UUID, from int64) iter.Seq2[usage.Digest, error] {
	return func(yield func(usage.Digest, error) bool) {
		if err := x.digests(ctx, id, line, from, func(d usage.Digest) bool { return yield(d, nil) }); err != nil {
			yield(usage.Digest{}, err)
		}
	}
}

func (x *Index) digests(ctx context.Context, id, line uuid.UUID, from int64, yield func(usage.Digest) bool) error {
	db, n, row, err := x.namesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, s := range n.stretches(line, from) {
		if more, err := db.digests(ctx, row, s, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// digests yields the digests of a part of a line of the context with a number.
func (db *database) digests(ctx context.Context, context int64, s stretch, yield func(usage.Digest) bool) (more bool, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, id, usage FROM messages "+
		"WHERE line = (SELECT n FROM lines WHERE context = ? AND id = ?) AND position >= ? AND position < ? AND usage IS NOT NULL "+
		"ORDER BY position", context, s.line[:], s.from, s.to)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var d usage.Digest
		var id []byte
		if err := rows.Scan(&d.Position, &id, &d.Data); err != nil {
			return false, err
		}
		copy(d.ID[:], id)
		if !yield(d) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// namesOf returns what the index knows of a context. It fails with [ctxdir.ErrNotExist] for an unknown one.
func (x *Index) namesOf(ctx context.Context, id uuid.UUID) (db *database, n *names, row int64, err error) {
	if db, err = x.open(ctx); err != nil {
		return nil, nil, 0, err
	}
	is, err := rowOf(ctx, db, id)
	if err != nil {
		return nil, nil, 0, err
	}
	if is == nil {
		return nil, nil, 0, fmt.Errorf("%w: context %s is missing from the search index", ctxdir.ErrNotExist, id)
	}
	n = &names{}
	return db, n, is.n, json.Unmarshal([]byte(is.names), n)
}
