package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/google/uuid"
	"modernc.org/sqlite"
	sqlitecode "modernc.org/sqlite/lib"
)

// File is the index in the folder derived of a store.
const File = "search.db"

// database is an open index.
type database struct {
	*sql.DB
	path string      // empty in memory
	file os.FileInfo // what the path was when it was opened
	lost bool        // terms of lost messages may be in the file
}

// pragmas of each connection. Removed rows leave nothing in the file. A power cut may undo the newest transactions, and
// leaves the file whole.
var pragmas = []string{
	"busy_timeout(1000)", "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(ON)", "temp_store(MEMORY)", "cache_size(-8192)",
	"journal_size_limit(0)", "trusted_schema(OFF)",
}

func source(path string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: q.Encode()}
	return u.String()
}

// openDatabase opens the index of a store, and makes an empty one if it is missing, damaged or of another version. folder
// and err are what attach returned. If the store is open for reading, or its folder cannot be written, the index is in memory.
func openDatabase(ctx context.Context, info ctxdir.StoreInfo, folder string, err error) (*database, error) {
	if errors.Is(err, errors.ErrUnsupported) {
		info.Path = ""
	}
	if hasNoFile(err) {
		return openMemory(ctx, info)
	}
	if err != nil {
		return nil, err
	}
	err = os.Mkdir(folder, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return openMemory(ctx, info)
	}
	path := filepath.Join(folder, File)
	const attempts = 5
	for range attempts {
		var db *database
		if db, err = openFile(ctx, info.ID, path); err == nil {
			return db, nil
		}
		if ctx.Err() != nil || isBusy(err) {
			break
		}
		if isUnusable(err) {
			err = errors.Join(err, removeFiles(path))
		} else if !errors.Is(err, errMoved) {
			break
		}
		_ = os.Mkdir(folder, 0o700)
	}
	var file *fs.PathError
	if errors.As(err, &file) { // no permission, a read-only file system, or something else at its place
		return openMemory(ctx, info)
	}
	return nil, fmt.Errorf("search index %s: %w", path, err)
}

var (
	errMoved   = errors.New("another process replaced it")
	errVersion = errors.New("another version")
)

// openFile opens the index at a path, and makes an empty one if there is no file.
func openFile(ctx context.Context, id uuid.UUID, path string) (*database, error) {
	// SQLite gives its other files the mode of this one.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errMoved
		}
		return nil, err
	}
	info, err := f.Stat()
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", source(path))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(4)
	db := &database{DB: pool, path: path, file: info}
	if err := db.prepare(ctx, id); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	if db.moved() { // it may have opened one file, and the log of another
		_ = pool.Close()
		return nil, errMoved
	}
	return db, nil
}

// moved reports whether the path has another file now, or none.
func (db *database) moved() bool {
	if db.path == "" {
		return false
	}
	now, err := os.Lstat(db.path)
	return err != nil || !os.SameFile(now, db.file)
}

// prepare verifies that the index belongs to the store, and makes the tables of an empty one.
func (db *database) prepare(ctx context.Context, id uuid.UUID) error {
	var is string
	var store []byte
	row := func(q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}) error {
		return q.QueryRowContext(ctx, "SELECT version, store FROM about").Scan(&is, &store)
	}
	err := row(db)
	if err != nil && !isUnusable(err) && !isBusy(err) && ctx.Err() == nil {
		tx, terr := db.BeginTx(ctx, nil)
		if terr != nil {
			return terr
		}
		defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
		if row(tx) != nil { // no other process made it meanwhile
			if _, err := tx.ExecContext(ctx, schema); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO about VALUES (?, ?, randomblob(16), 0, 0, 0)", version, id[:]); err != nil {
				return err
			}
			return tx.Commit()
		}
		err = nil
	}
	if err == nil && (is != version || string(store) != string(id[:])) {
		return errVersion
	}
	return err
}

// openMemory opens an index in memory, with what the file has.
func openMemory(ctx context.Context, s ctxdir.StoreInfo) (*database, error) {
	fill := func(b []byte) (*database, error) {
		pool, err := sql.Open("sqlite", "file::memory:?_txlock=immediate&_pragma=temp_store(MEMORY)")
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(1)
		db := &database{DB: pool}
		if len(b) > 100 {
			err = db.load(ctx, b)
		}
		if err == nil {
			err = db.prepare(ctx, s.ID)
		}
		if err != nil {
			return nil, errors.Join(err, pool.Close())
		}
		return db, nil
	}
	if s.Path == "" {
		return fill(nil)
	}
	b, err := os.ReadFile(filepath.Join(s.Path, answers.Derived, File))
	if err == nil && len(b) > 100 && !answers.IsErasing(s.Path) {
		b[18], b[19] = 1, 1 // without a write-ahead log
		if db, err := fill(b); err == nil {
			if db.check(ctx) == nil {
				return db, nil
			}
			_ = db.Close()
		}
	}
	return fill(nil)
}

// load replaces the content of a database in memory.
func (db *database) load(ctx context.Context, b []byte) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(driver any) error {
		into, ok := driver.(interface{ Deserialize(buf []byte) error })
		if !ok {
			return errors.ErrUnsupported
		}
		return into.Deserialize(b)
	})
	return errors.Join(err, conn.Close())
}

// check verifies the structure of the index.
func (db *database) check(ctx context.Context) error {
	var is string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&is); err != nil {
		return err
	}
	if is != "ok" {
		return fmt.Errorf("%w: %s", errVersion, is)
	}
	_, err := db.ExecContext(ctx, "INSERT INTO terms(terms) VALUES ('integrity-check')")
	return err
}

// purge removes the terms of deleted rows from the files.
func (db *database) purge(ctx context.Context) error {
	if _, err := db.ExecContext(ctx, "INSERT INTO terms(terms) VALUES ('optimize')"); err != nil {
		return err
	}
	if db.path == "" {
		return nil
	}
	var busy, log, done int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("other processes are reading the index")
	}
	return nil
}

// forgetLost removes the terms of rows that were removed because the store lost their messages. If another process is
// reading the index, the next call does it.
func (db *database) forgetLost(ctx context.Context) error {
	var lost, purged int64
	err := db.QueryRowContext(ctx, "SELECT lost, purged FROM about").Scan(&lost, &purged)
	db.lost = err != nil || lost != purged
	if !db.lost || db.purge(ctx) != nil {
		return err
	}
	db.lost = false
	_, err = db.ExecContext(ctx, "UPDATE about SET purged = max(purged, ?)", lost)
	if isBusy(err) {
		return nil
	}
	return err
}

// suffixes of the files of an index.
var suffixes = []string{"", "-wal", "-shm", "-journal"}

// removeFiles removes an index.
func removeFiles(path string) (err error) {
	for _, suffix := range suffixes {
		if rerr := os.Remove(path + suffix); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func code(err error) int {
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		return failed.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err)
	return c == sqlitecode.SQLITE_BUSY || c == sqlitecode.SQLITE_LOCKED
}

// isUnusable reports whether an index is damaged or of another version, so that it has to be built again.
func isUnusable(err error) bool {
	c := code(err)
	return errors.Is(err, errVersion) || c == sqlitecode.SQLITE_CORRUPT || c == sqlitecode.SQLITE_NOTADB || c == sqlitecode.SQLITE_FORMAT ||
		c == sqlitecode.SQLITE_CANTOPEN || c == sqlitecode.SQLITE_IOERR
}

// hasNoFile reports whether the index of a store has no file, by the error of attach.
func hasNoFile(err error) bool {
	return errors.Is(err, ctxdir.ErrReadOnly) || errors.Is(err, errors.ErrUnsupported)
}
