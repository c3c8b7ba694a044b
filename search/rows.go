package search

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// contextRow is what the index knows of a context.
type contextRow struct {
	n        int64
	id       uuid.UUID
	state    string
	complete bool // the rows are those of the state
	names    string
	metadata int64
}

const contextColumns = "n, id, state, names, metadata"

func (r *contextRow) scan(row interface{ Scan(...any) error }) error {
	var id []byte
	var state sql.NullString
	if err := row.Scan(&r.n, &id, &state, &r.names, &r.metadata); err != nil {
		return err
	}
	r.state, r.complete = state.String, state.Valid
	copy(r.id[:], id)
	return nil
}

// rowOf returns the row of a context, nil for none.
func rowOf(ctx context.Context, tx querier, id uuid.UUID) (*contextRow, error) {
	var r contextRow
	err := r.scan(tx.QueryRowContext(ctx, "SELECT "+contextColumns+" FROM contexts WHERE id = ?", id[:]))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}

// current returns the directory, empty if contexts changed since it was read.
func (x *Index) current(ctx context.Context, q querier) (*directory, error) {
	var changes int64
	if err := q.QueryRowContext(ctx, "SELECT changes FROM about").Scan(&changes); err != nil {
		return nil, err
	}
	// Not mu: an update has that while it waits for a connection, and an index in memory has one, which the caller may hold.
	x.naming.Lock()
	defer x.naming.Unlock()
	if x.names == nil || x.names.changes != changes {
		x.names = &directory{changes: changes, places: map[int64]*place{}, contexts: map[int64]*names{}}
	}
	return x.names, nil
}
