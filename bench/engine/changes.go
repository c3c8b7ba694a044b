package engine

import (
	"context"
	"database/sql"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

func (s ctxdirStore) Start(title string, first Message) error {
	c, err := s.s.Create(context.Background(), ctxdir.Metadata{Title: title})
	if err != nil {
		return err
	}
	_, err = c.Active().Append(context.Background(), draft(first))
	return errors.Join(err, c.Close())
}

func (c *ctxdirContext) AppendWithState(m Message, state []byte) error {
	_, err := c.c.Commit(context.Background(), func(tx *ctxdir.Tx) error {
		if err := tx.Append(c.b.Name(), draft(m)); err != nil {
			return err
		}
		return tx.Update(func(m *ctxdir.Metadata) error {
			m.State = state
			return nil
		})
	})
	return err
}

func (c *ctxdirContext) State() ([]byte, error) { return c.c.Metadata().State, nil }

func (c *ctxdirContext) Rewind(n int64) error { return c.b.Rewind(context.Background(), n) }

func (c *ctxdirContext) Rename(branch, to string) error {
	b, err := c.c.Branch(branch)
	if err == nil {
		_, err = b.Rename(context.Background(), to)
	}
	return err
}

func (c *ctxdirContext) Label(user string) error { return label(c.c, user) }

func (c *ctxdirContext) Flush() error { return c.c.Flush(context.Background()) }

// Start makes all rows in one transaction, which is the fastest way with the same promises.
func (s *sqliteStore) Start(title string, first Message) error {
	return s.transaction(func(stmts []*sql.Stmt) error {
		c, err := create(stmts, uuid.NewString(), title)
		if err != nil {
			return err
		}
		return c.insert(stmts[2], first)
	}, stmtCreate, stmtFork, stmtAppend)
}

func (c *sqliteContext) AppendWithState(m Message, state []byte) error {
	return c.s.transaction(func(stmts []*sql.Stmt) error {
		if err := c.insert(stmts[0], m); err != nil {
			return err
		}
		_, err := stmts[1].Exec(c.context, state)
		return err
	}, stmtAppend, stmtState)
}

func (c *sqliteContext) State() (state []byte, err error) {
	err = c.s.db.QueryRow(`SELECT state FROM contexts WHERE id = ?1`, c.context).Scan(&state)
	return state, err
}

// Rewind deletes rows. No row of the benchmark rewinds a fork to messages of its parent.
func (c *sqliteContext) Rewind(n int64) error {
	if n < c.base {
		return errors.New("a rewind to messages of the parent branch is not supported")
	}
	return c.exec(stmtRewind, c.context, c.branch, n)
}

func (c *sqliteContext) Rename(branch, to string) error {
	return c.exec(stmtRename, c.context, branch, to)
}

func (c *sqliteContext) Label(user string) error { return c.exec(stmtLabel, c.context, "user", user) }

func (c *sqliteContext) exec(which statement, args ...any) error {
	stmt, err := c.s.prepare(which)
	if err == nil {
		_, err = stmt.Exec(args...)
	}
	return err
}
