package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

const aboutSQLite = "one database per store through database/sql. The settings are WAL, synchronous=FULL for durable rows and NORMAL for " +
	"relaxed ones, 64 MiB of page cache (as much as the pool of ctxdir), and a busy timeout of 10 s. Statements are prepared once. " +
	"There is one connection, since writers exclude each other and a second one would meet SQLITE_BUSY. Both drivers are built " +
	"to call fsync, not fdatasync. An append is one INSERT that finds its position itself"

// The schema a good engineer would write. Positions are contiguous in a branch and each message carries the
// bytes up to and with it, so that counts and sizes need no scan and no second table is written by an append.
// A fork is a row in branches.
const schema = `
CREATE TABLE contexts (
	id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE branches (
	id INTEGER PRIMARY KEY, context INTEGER NOT NULL REFERENCES contexts, name TEXT NOT NULL,
	parent INTEGER, base INTEGER NOT NULL, UNIQUE (context, name));
CREATE TABLE messages (
	id BLOB PRIMARY KEY, context INTEGER NOT NULL, branch INTEGER NOT NULL, position INTEGER NOT NULL,
	role TEXT NOT NULL, type TEXT NOT NULL, created_at INTEGER NOT NULL, upto INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX messages_position ON messages (context, branch, position);
PRAGMA user_version = 1;
`

type statement int

const (
	stmtAppend statement = iota
	stmtRange
	stmtLast
	stmtByID
	stmtBranch
	stmtBranches
	stmtFork
	stmtEnd
)

var statements = [stmtEnd]string{
	stmtAppend: `INSERT INTO messages (id, context, branch, position, role, type, created_at, upto, body) VALUES (?1, ?2, ?3,
		COALESCE((SELECT position + 1 FROM messages WHERE context = ?2 AND branch = ?3 ORDER BY position DESC LIMIT 1), ?8),
		?4, ?5, ?6,
		COALESCE((SELECT upto FROM messages WHERE context = ?2 AND branch = ?3 ORDER BY position DESC LIMIT 1), 0) + length(?7), ?7)`,
	stmtRange: `SELECT id, position, body FROM messages
		WHERE context = ?1 AND branch = ?2 AND position >= ?3 AND position < ?4 ORDER BY position`,
	stmtLast: `SELECT id, position, body FROM messages
		WHERE context = ?1 AND branch = ?2 AND position < ?3 ORDER BY position DESC LIMIT ?4`,
	stmtByID:   `SELECT id, position, body FROM messages WHERE id = ?1 AND context = ?2`,
	stmtBranch: `SELECT c.id, b.id, b.parent, b.base FROM contexts c JOIN branches b ON b.context = c.id WHERE c.uuid = ?1 AND b.name = ?2`,
	stmtBranches: `SELECT b.name, b.base, m.position, m.upto FROM branches b LEFT JOIN messages m
		ON m.context = b.context AND m.branch = b.id
		AND m.position = (SELECT max(position) FROM messages WHERE context = b.context AND branch = b.id)
		WHERE b.context = ?1 ORDER BY b.id`,
	stmtFork: `INSERT INTO branches (context, name, parent, base) VALUES (?1, ?2, ?3, ?4)`,
}

func openSQLite(driver, dsn, dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := sql.Open(driver, "file:"+filepath.Join(dir, "store.db")+"?"+dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &sqliteStore{db: db}
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if version == 0 {
		if _, err := db.Exec(schema); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

type sqliteStore struct {
	db       *sql.DB
	prepared [stmtEnd]*sql.Stmt
}

// prepare prepares a statement when it is first needed: opening pays for no more than it uses.
func (s *sqliteStore) prepare(which statement) (*sql.Stmt, error) {
	if s.prepared[which] == nil {
		stmt, err := s.db.Prepare(statements[which])
		if err != nil {
			return nil, err
		}
		s.prepared[which] = stmt
	}
	return s.prepared[which], nil
}

func (s *sqliteStore) Create(title string) (string, error) {
	id := uuid.NewString()
	tx, err := s.db.Begin()
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	r, err := tx.Exec(`INSERT INTO contexts (uuid, title, created_at) VALUES (?1, ?2, ?3)`, id, title, time.Now().UnixMicro())
	if err != nil {
		return "", err
	}
	key, err := r.LastInsertId()
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(statements[stmtFork], key, Main, nil, 0); err != nil {
		return "", err
	}
	return id, tx.Commit()
}

func (s *sqliteStore) List() ([]Summary, error) {
	rows, err := s.db.Query(`SELECT c.uuid, c.title, m.position + 1, m.upto FROM contexts c
		JOIN branches b ON b.context = c.id AND b.name = 'main'
		LEFT JOIN messages m ON m.context = c.id AND m.branch = b.id
		AND m.position = (SELECT max(position) FROM messages WHERE context = c.id AND branch = b.id)`)
	if err != nil {
		return nil, err
	}
	return summaries(rows)
}

func (s *sqliteStore) Close() error {
	for _, stmt := range s.prepared {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
	return s.db.Close()
}

func (s *sqliteStore) Context(id, branch string) (Context, error) {
	stmt, err := s.prepare(stmtBranch)
	if err != nil {
		return nil, err
	}
	c := &sqliteContext{s: s}
	var parent sql.NullInt64
	if err := stmt.QueryRow(id, branch).Scan(&c.context, &c.branch, &parent, &c.base); err != nil {
		return nil, fmt.Errorf("context %s, branch %s: %w", id, branch, err)
	}
	for to := c.base; parent.Valid; {
		up := inherited{branch: parent.Int64, to: to}
		row := s.db.QueryRow(`SELECT parent, base FROM branches WHERE id = ?1`, up.branch)
		if err := row.Scan(&parent, &up.from); err != nil {
			return nil, err
		}
		c.chain = append([]inherited{up}, c.chain...)
		to = min(to, up.from)
	}
	return c, nil
}
