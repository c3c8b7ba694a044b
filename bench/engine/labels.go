package engine

import (
	"context"
	"database/sql"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Labelled is a Store that lists contexts by a label.
type Labelled interface {
	// Label gives the context the label "user".
	Label(id, user string) error
	// ListLabel describes the contexts with that label, the most recently changed first, and at most limit of them.
	ListLabel(user string, limit int) ([]Summary, error)
}

func (s ctxdirStore) Label(id, user string) error {
	u, err := uuid.Parse(id)
	if err != nil {
		return err
	}
	return s.s.Use(context.Background(), u, func(c *ctxdir.Context) error {
		return c.Update(context.Background(), func(m *ctxdir.Metadata) error {
			m.Labels = map[string]string{"user": user}
			return nil
		})
	})
}

func (s ctxdirStore) ListLabel(user string, limit int) ([]Summary, error) {
	return s.list(ctxdir.ListOptions{Labels: map[string]string{"user": user}, Limit: limit})
}

const labelSchema = `
CREATE TABLE IF NOT EXISTS labels (
	context INTEGER NOT NULL REFERENCES contexts, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (context, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS labels_value ON labels (name, value);
`

func (s *sqliteStore) Label(id, user string) error {
	if _, err := s.db.Exec(labelSchema); err != nil {
		return err
	}
	_, err := s.db.Exec(`INSERT OR REPLACE INTO labels SELECT id, 'user', ?2 FROM contexts WHERE uuid = ?1`, id, user)
	return err
}

func (s *sqliteStore) ListLabel(user string, limit int) ([]Summary, error) {
	rows, err := s.db.Query(`SELECT c.uuid, c.title, m.position + 1, m.upto FROM labels l
		JOIN contexts c ON c.id = l.context
		JOIN branches b ON b.context = c.id AND b.name = 'main'
		LEFT JOIN messages m ON m.context = c.id AND m.branch = b.id
		AND m.position = (SELECT max(position) FROM messages WHERE context = c.id AND branch = b.id)
		WHERE l.name = 'user' AND l.value = ?1 ORDER BY m.created_at DESC, c.id LIMIT ?2`, user, limit)
	if err != nil {
		return nil, err
	}
	return summaries(rows)
}

func summaries(rows *sql.Rows) (out []Summary, err error) {
	defer rows.Close()
	for rows.Next() {
		var sum Summary
		var n, bytes sql.NullInt64
		if err := rows.Scan(&sum.ID, &sum.Title, &n, &bytes); err != nil {
			return nil, err
		}
		sum.Messages, sum.Bytes = n.Int64, bytes.Int64
		out = append(out, sum)
	}
	return out, rows.Err()
}
