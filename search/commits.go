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
	query, args := "SELECT n, changes, state IS NOT NULL, made FROM contexts, (SELECT made FROM about)", []any{}
	if id != uuid.Nil {
		query, args = query+" WHERE id = ?", append(args, id[:])
	}
	rows, err := db.QueryContext(ctx, query+" ORDER BY id", args...)
	if err != nil {
		return sum, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var made []byte
		var n, changes int64
		var complete bool
		if err := rows.Scan(&n, &changes, &complete, &made); err != nil || !complete {
			return sum, false, err
		}
		if err := e.Encode([]any{n, changes, made}); err != nil {
			return sum, false, err
		}
	}
	h.Sum(sum[:0])
	return sum, true, rows.Err()
}
