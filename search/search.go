// Package search finds messages by their words, in every context of a store: on all branches, in archives and payloads.
//
// [Open] opens the index of a store, the file derived/search.db. [Index.Update] brings it up to date with the commits
// of all processes, and [Index.Search] finds messages. [Index.Files] lists the files that they attach or that tools
// touch. [Grep] finds exact text without an index.
//
//	x, err := search.Open(ctx, store)
//	_, err = x.Update(ctx, search.UpdateOptions{})
//	for hit, err := range x.Search(ctx, search.Query{Text: `"lock test" -windows`, Limit: 20}) { … }
//	for file, err := range x.Files(ctx, search.FileQuery{Query: search.Query{Path: "*.go"}}) { … }
//
// The index is a cache: it is rebuilt when it is missing, damaged or of another version. Nothing in the store
// depends on it, and it never makes an operation of the store fail.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/answers"
)

// Open opens the index of a store as the last [Index.Update] of any process left it, which may be empty or stale. It does
// not follow the store: call Update, or [Index.UpdateContext], before a search that has to see new messages. If the store
// is open for reading, or its folder cannot be written, the index is in memory, and begins with what the file has. Close
// the index before the store.
func Open(ctx context.Context, s *ctxdir.Store) (*Index, error) {
	Attach(s)
	x := &Index{store: s, dir: s.Info().Path}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.reopen(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// Close releases the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}

// Stats describe an index.
type Stats struct {
	Messages int64
	Bytes    int64 // of its files
	Memory   bool  // it has no file
}

// Stats describes the index as it is.
func (x *Index) Stats(ctx context.Context) (is Stats, err error) {
	db, err := x.open(ctx)
	if err != nil {
		return is, err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM messages").Scan(&is.Messages); err != nil {
		return is, err
	}
	is.Memory = db.path == ""
	for _, suffix := range suffixes {
		if info, err := os.Stat(db.path + suffix); err == nil && !is.Memory {
			is.Bytes += info.Size()
		}
	}
	return is, nil
}

// Check verifies the structure of the index. A damaged index fails with [ctxdir.ErrDamaged]; [Index.Rebuild] repairs it.
func (x *Index) Check(ctx context.Context) error {
	db, err := x.open(ctx)
	if err == nil {
		err = db.check(ctx)
	}
	if err != nil && isUnusable(err) {
		err = fmt.Errorf("%w: search index %s: %w", ctxdir.ErrDamaged, db.path, err)
	}
	return err
}

// Rebuild removes what the index has, and the texts assembled from it. The next [Index.Update] fills it again.
func (x *Index) Rebuild(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := attach(x.store)
	if err == nil {
		err = answers.Drop(x.dir)
	}
	if hasNoFile(err) {
		err = nil
	}
	return errors.Join(err, x.rebuild(ctx))
}

// Drop removes the index of a store, and the texts assembled from it. No program needs it; the next [Open] makes an empty one.
func Drop(s *ctxdir.Store) error {
	folder, err := attach(s)
	if err != nil {
		return err
	}
	return errors.Join(answers.Drop(s.Info().Path), removeFiles(filepath.Join(folder, File)))
}
