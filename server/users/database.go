package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database keeps users in the table users of PostgreSQL. Each change is one transaction, of one user.
type database struct{ pool *pgxpool.Pool }

// InDatabase returns the users in a database whose tables are there. Closing them leaves the pool open.
func InDatabase(pool *pgxpool.Pool) *Users { return &Users{database{pool}, time.Now} }

const (
	selectUser  = `SELECT record FROM users WHERE user_id = $1 AND removed = $2`
	selectUsers = `SELECT record FROM users WHERE removed = $1` // for administrators: of all users
	insertUser  = `INSERT INTO users (user_id, removed, record) VALUES ($1, false, $2)`
	updateUser  = `UPDATE users SET record = $2 WHERE user_id = $1 AND NOT removed`
	moveUser    = `UPDATE users SET removed = $2 WHERE user_id = $1`
	deleteUser  = `DELETE FROM users WHERE user_id = $1 AND removed`

	selectInvitation  = `SELECT record FROM invitations WHERE user_id = $1`
	selectInvitations = `SELECT record FROM invitations` // for administrators
	insertInvitation  = `INSERT INTO invitations (user_id, record) VALUES ($1, $2)`
	deleteInvitation  = `DELETE FROM invitations WHERE user_id = $1`
	// lockUsers keeps two administrators from giving a name twice. The number stands for this table only.
	lockUsers = `SELECT pg_advisory_xact_lock(7433201129)`
)

func (x database) close() error { return nil }

func (x database) ready(ctx context.Context) error {
	var n int
	return x.pool.QueryRow(ctx, `SELECT count(*) FROM users WHERE user_id = $1`, uuid.Nil).Scan(&n)
}

func (x database) read(ctx context.Context, in place, id uuid.UUID) (u User, err error) {
	var b []byte
	if in == invited {
		err = x.pool.QueryRow(ctx, selectInvitation, id).Scan(&b)
	} else {
		err = x.pool.QueryRow(ctx, selectUser, id, in == removed).Scan(&b)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return u, fmt.Errorf("user %s: %w", id, ErrNotFound)
	}
	if err == nil {
		err = json.Unmarshal(b, &u)
	}
	if err == nil && u.ID != id {
		err = fmt.Errorf("user %s: the record is of user %s", id, u.ID)
	}
	return u, err
}

func (x database) list(ctx context.Context, in place) ([]User, error) {
	statement, args := listOf(in)
	rows, err := x.pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return usersOf(rows)
}

func listOf(in place) (statement string, args []any) {
	if in == invited {
		return selectInvitations, nil
	}
	return selectUsers, []any{in == removed}
}

func usersOf(rows pgx.Rows) ([]User, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (u User, err error) {
		var b []byte
		if err := r.Scan(&b); err != nil {
			return u, err
		}
		return u, json.Unmarshal(b, &u)
	})
}

func (x database) alone(ctx context.Context, f func(w writer) error) error {
	return pgx.BeginFunc(ctx, x.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockUsers); err != nil {
			return err
		}
		return f(transaction{ctx, tx})
	})
}

// transaction is the writer of a change.
type transaction struct {
	ctx context.Context //nolint:containedctx // of the call that the transaction is in
	tx  pgx.Tx
}

func (w transaction) list(in place) ([]User, error) {
	statement, args := listOf(in)
	rows, err := w.tx.Query(w.ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return usersOf(rows)
}

func (w transaction) add(u *User) error           { return w.put(insertUser, u) }
func (w transaction) replace(u *User) error       { return w.put(updateUser, u) }
func (w transaction) invite(u *User) error        { return w.put(insertInvitation, u) }
func (w transaction) uninvite(id uuid.UUID) error { return w.one(deleteInvitation, id) }

func (w transaction) accept(u *User) error {
	if err := w.uninvite(u.ID); err != nil {
		return err
	}
	u.Invitation = nil
	return w.add(u)
}

func (w transaction) put(statement string, u *User) error {
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return w.one(statement, u.ID, b)
}

func (w transaction) move(id uuid.UUID, _, to place) error { return w.one(moveUser, id, to == removed) }

func (w transaction) erase(id uuid.UUID) error {
	if err := pgfs.Erase(w.ctx, w.tx, id); err != nil {
		return err
	}
	return w.one(deleteUser, id)
}

// one runs a statement that changes one row.
func (w transaction) one(statement string, args ...any) error {
	tag, err := w.tx.Exec(w.ctx, statement, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("user %v: %w", args[0], ErrNotFound)
	}
	return err
}
