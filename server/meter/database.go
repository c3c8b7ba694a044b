package meter

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database keeps rows in the table usage of PostgreSQL. The rows of a request are one statement, of one user.
type database struct{ pool *pgxpool.Pool }

// InDatabase returns the rows in a database whose tables are there.
func InDatabase(pool *pgxpool.Pool) Log { return database{pool} }

const (
	insertRows = `INSERT INTO usage (user_id, id, role, at, tokens) SELECT $1, x.*
	FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::bigint[]) AS x ON CONFLICT DO NOTHING`
	selectRows = `SELECT id, role, at, tokens FROM usage WHERE user_id = $1 ORDER BY at, role DESC, id`
)

// Add implements [Log].
func (x database) Add(ctx context.Context, user uuid.UUID, rows []Row) error {
	n := len(rows)
	ids, roles, times, tokens := make([]uuid.UUID, n), make([]string, n), make([]time.Time, n), make([]int64, n)
	for i, r := range rows {
		ids[i], roles[i], times[i], tokens[i] = r.ID, r.Role, r.At, r.Tokens
	}
	_, err := x.pool.Exec(ctx, insertRows, user, ids, roles, times, tokens)
	return err
}

// List implements [Log].
func (x database) List(ctx context.Context, user uuid.UUID) ([]Row, error) {
	rows, err := x.pool.Query(ctx, selectRows, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Row, err error) {
		err = row.Scan(&r.ID, &r.Role, &r.At, &r.Tokens)
		r.At = r.At.UTC()
		return r, err
	})
}
