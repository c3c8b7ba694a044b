package engine

import (
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// inherited is a run of positions that a branch takes from another one.
type inherited struct{ branch, from, to int64 }

type sqliteContext struct {
	s               *sqliteStore
	context, branch int64
	base            int64
	chain           []inherited // oldest first
}

func (c *sqliteContext) Branches() ([]BranchInfo, error) {
	stmt, err := c.s.prepare(stmtBranches)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.Query(c.context)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []BranchInfo
	for rows.Next() {
		var b BranchInfo
		var position, bytes sql.NullInt64
		if err := rows.Scan(&b.Name, &b.Messages, &position, &bytes); err != nil {
			return nil, err
		}
		if position.Valid {
			b.Messages = position.Int64 + 1
		}
		b.Bytes = bytes.Int64
		out = append(out, b)
	}
	return out, rows.Err()
}

func (c *sqliteContext) insert(stmt *sql.Stmt, m Message) error {
	_, err := stmt.Exec(m.ID[:], c.context, c.branch, m.Role, m.Type, time.Now().UnixMicro(), m.Body, c.base)
	return err
}

func (c *sqliteContext) Append(m Message) error {
	stmt, err := c.s.prepare(stmtAppend)
	if err != nil {
		return err
	}
	return c.insert(stmt, m)
}

func (c *sqliteContext) AppendBatch(ms []Message) error {
	return c.s.transaction(func(stmts []*sql.Stmt) error {
		for _, m := range ms {
			if err := c.insert(stmts[0], m); err != nil {
				return err
			}
		}
		return nil
	}, stmtAppend)
}

func (c *sqliteContext) query(which statement, f func(Stored) error, args ...any) error {
	stmt, err := c.s.prepare(which)
	if err != nil {
		return err
	}
	rows, err := stmt.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var m Stored
		var id, body sql.RawBytes // valid until the next row: no copy that the caller does not ask for
		if err := rows.Scan(&id, &m.Position, &body); err != nil {
			return err
		}
		copy(m.ID[:], id)
		m.Body = body
		if err := f(m); err != nil {
			return err
		}
	}
	return rows.Err()
}

// each calls f for the positions [from, to), the inherited ones first.
func (c *sqliteContext) each(from, to int64, f func(Stored) error) error {
	for _, up := range c.chain {
		if from < up.to && to > up.from {
			if err := c.query(stmtRange, f, c.context, up.branch, max(from, up.from), min(to, up.to)); err != nil {
				return err
			}
		}
	}
	if to <= c.base {
		return nil
	}
	return c.query(stmtRange, f, c.context, c.branch, max(from, c.base), to)
}

func keep(out *[]Stored) func(Stored) error {
	return func(m Stored) error {
		m.Body = slices.Clone(m.Body)
		*out = append(*out, m)
		return nil
	}
}

func (c *sqliteContext) Last(n int) ([]Stored, error) {
	var out []Stored
	if err := c.query(stmtLast, keep(&out), c.context, c.branch, int64(math.MaxInt64), n); err != nil {
		return nil, err
	}
	for _, up := range slices.Backward(c.chain) {
		if len(out) >= n {
			break
		}
		if err := c.query(stmtLast, keep(&out), c.context, up.branch, up.to, n-len(out)); err != nil {
			return nil, err
		}
	}
	slices.Reverse(out)
	return out, nil
}

func (c *sqliteContext) Range(from, to int64) ([]Stored, error) {
	out := make([]Stored, 0, to-from)
	err := c.each(from, to, keep(&out))
	return out, err
}

func (c *sqliteContext) All(f func(Stored) error) error { return c.each(0, math.MaxInt64, f) }

func (c *sqliteContext) ByID(id uuid.UUID) (Stored, error) {
	var out []Stored
	if err := c.query(stmtByID, keep(&out), id[:], c.context); err != nil {
		return Stored{}, err
	}
	if len(out) == 0 {
		return Stored{}, errors.New("not found")
	}
	return out[0], nil
}

func (c *sqliteContext) Fork(name string, at int64) error {
	return c.exec(stmtFork, c.context, name, c.branch, at)
}

func (c *sqliteContext) Settle() error { return nil }
func (c *sqliteContext) Close() error  { return nil }
