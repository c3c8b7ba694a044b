package pgfs

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	selectOwners = `SELECT user_id FROM keys` // for administrators: of all users
	updateKeys   = `UPDATE keys SET content = $2, names = $3 WHERE user_id = $1 AND content = $4`
)

// Rewrap wraps the keys of every user with the newest master key, and returns how many users have some. What they encrypt
// stays as it is.
//
// Crash order: each user is one update, which an older master key that is still among the master keys may have to open
// until then. After an interruption, another call does the rest.
func (k *Keys) Rewrap(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	return k.each(ctx, pool, func(user uuid.UUID, content, names []byte) error {
		var wrapped [2][]byte
		for i, b := range [][]byte{content, names} {
			h, err := k.unwrap(b, user)
			if err != nil {
				return err
			}
			if wrapped[i], err = k.seal(h, user); err != nil {
				return err
			}
		}
		_, err := pool.Exec(ctx, updateKeys, user, wrapped[0], wrapped[1], content)
		return err
	})
}

// Verify opens the keys of every user, and returns how many users have some. The error wraps [ErrKey].
func (k *Keys) Verify(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	return k.each(ctx, pool, func(user uuid.UUID, content, names []byte) error {
		for _, b := range [][]byte{content, names} {
			if _, err := k.unwrap(b, user); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *Keys) each(ctx context.Context, pool *pgxpool.Pool, f func(user uuid.UUID, content, names []byte) error) (n int, err error) {
	rows, err := pool.Query(ctx, selectOwners)
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, err
	}
	for _, user := range all {
		var content, names []byte
		err := pool.QueryRow(ctx, selectKeys, user).Scan(&content, &names)
		if err == nil {
			err = f(user, content, names)
		}
		if err != nil {
			return n, fmt.Errorf("keys of user %s: %w", user, err)
		}
		n++
	}
	return n, nil
}

// erasure removes everything of a user: the keys first, without which nothing else can be read.
var erasure = []string{
	`DELETE FROM keys WHERE user_id = $1`,
	`DELETE FROM owners WHERE user_id = $1`,
	`DELETE FROM entries WHERE user_id = $1`,
	`DELETE FROM extents WHERE user_id = $1`,
	`DELETE FROM nodes WHERE user_id = $1`,
	`DELETE FROM usage WHERE user_id = $1`,
}

// Erase removes everything of a user for good, as part of a transaction. Whoever has the files open fails with [ErrLost].
func Erase(ctx context.Context, tx pgx.Tx, user uuid.UUID) error {
	for _, statement := range erasure {
		if _, err := tx.Exec(ctx, statement, user); err != nil {
			return err
		}
	}
	return nil
}
