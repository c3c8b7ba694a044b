package search

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/google/uuid"
)

// Commits returns a sum of the commits of one context, or with [uuid.Nil] of all contexts, and of the edits by hand
// that an update has found. While it stays the same, so do the results of [Index.Rank] and the other queries. ok is
// false while rows are missing.
func (x *Index) Commits(ctx context.Context, id uuid.UUID) (sum [sha256.Size]byte, ok bool, err error) {
	db, err := x.open(ctx)
	if err != nil {
		return sum, false, err
	}
	h := sha256.New()
	e := json.NewEncoder(h)
	query, args := "SELECT "+contextColumns+" FROM contexts", []any{}
	if id != uuid.Nil {
		query, args = query+" WHERE id = ?", append(args, id[:])
	}
	rows, err := db.QueryContext(ctx, query+" ORDER BY id", args...)
	if err != nil {
		return sum, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var r contextRow
		if err := r.scan(rows); err != nil || !r.complete {
			return sum, false, err
		}
		if err := e.Encode([]any{r.id, r.at.Seq, r.at.Chain, r.names, r.state.Metadata()}); err != nil {
			return sum, false, err
		}
	}
	if err := rows.Err(); err != nil {
		return sum, false, err
	}
	edits, err := db.QueryContext(ctx, "SELECT line, position, edited FROM messages INDEXED BY edits WHERE edited <> 0")
	if err != nil {
		return sum, false, err
	}
	defer edits.Close()
	for edits.Next() {
		var edit [3]int64
		if err := edits.Scan(&edit[0], &edit[1], &edit[2]); err != nil {
			return sum, false, err
		}
		if err := e.Encode(edit); err != nil {
			return sum, false, err
		}
	}
	h.Sum(sum[:0])
	return sum, true, edits.Err()
}
