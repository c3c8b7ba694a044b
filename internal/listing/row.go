package listing

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json"
)

// listRow is an entry of the store's folder in a list.
type listRow struct {
	engine.Entry
	known  *cachedSummary // what the cache has of it; nil for nothing
	judged bool           // what the cache has of it meets the conditions
	cached *cachedSummary // what the cache has of it from now on
	sum    *Summary       // nil if the entry is not a context after all, or does not meet the conditions
}

func (row *listRow) set(sum Summary) { row.sum = &sum }

// reuse sets the row to that of the cache, which is current.
func (row *listRow) reuse(r *summaryRow) {
	row.set(r.summary())
	row.cached = row.known
}

// fail sets the row to a context with a problem.
func (row *listRow) fail(err error) { row.set(Summary{ID: row.ID, Problem: err}) }

// keep caches a row, unless its files changed meanwhile, or so recently that a later change could look the same.
func (row *listRow) keep(before, now [3]freshness.FileState, ok bool, log string) {
	sum := row.sum
	if !ok || now != before || sum.Problem != nil {
		return
	}
	for _, f := range now {
		if f != (freshness.FileState{}) && isAmbiguous(f.At) {
			return
		}
	}
	r := &summaryRow{
		Context: sum.ID, Log: log, Files: string(appendStates(nil, now[:]...)),
		Title: sum.Title, Labels: maps.Clone(sum.Labels), Kind: sum.Kind, External: sum.ExternalID, Model: sum.Model,
		Branches: sum.Branches, Active: sum.ActiveBranch, Messages: sum.Messages, Bytes: sum.Bytes, Archived: sum.Archived,
		Created: sum.CreatedAt, Updated: sum.UpdatedAt, Format: string(sum.Format),
		Commit: sum.Commit,
	}
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	cached := &cachedSummary{}
	if cached.cut(line) {
		cached.row.Store(r)
		row.cached = cached
	}
}

func (row *listRow) read(ctx context.Context, s *engine.Store) {
	if row.Folder {
		if r := row.known.current(s); r != nil {
			row.reuse(r)
			return
		}
	}
	name := row.ID.String()
	if !row.Folder {
		name += ".json"
	}
	legacy, err := !row.Folder, error(nil)
	if row.Folder {
		legacy, err = engine.IsSplit(s.FS, name)
	}
	if legacy {
		row.readLegacy(s, name)
		if row.sum != nil && row.sum.Problem == nil {
			return
		}
		var migrated bool
		if migrated, err = row.wasMigrated(s); err == nil && !migrated {
			return
		}
	}
	if err != nil {
		row.fail(engine.Wrap(engine.Error{Op: "read", Path: name}, err))
		return
	}
	row.readContext(ctx, s)
}

// leave takes a context with a problem out of the list if its folder is gone: it was removed after the store's folder was read.
func (row *listRow) leave(s *engine.Store) {
	if !row.Folder || row.sum == nil || row.sum.Problem == nil {
		return
	}
	if there, err := vfs.Exists(s.FS, row.ID.String()); err == nil && !there {
		row.sum = nil
	}
}

// wasMigrated reports whether a row that was a legacy context is none any more, but has a context or will have one in a
// moment.
func (row *listRow) wasMigrated(s *engine.Store) (bool, error) {
	if format, err := s.Legacy(row.ID); err != nil || format != "" {
		return false, err
	}
	if there, err := vfs.Exists(s.FS, row.ID.String()); err != nil || there {
		return there, err
	}
	return ctxfolder.Ready(s.FS, row.ID)
}

func (row *listRow) readContext(ctx context.Context, s *engine.Store) {
	c, err := s.Open(ctx, row.ID)
	if err != nil {
		row.fail(engine.Wrap(engine.Error{Op: "open", Context: row.ID}, err))
		return
	}
	defer c.Close()
	log, err := c.Index.NewestLog()
	if err != nil || log == "" {
		row.set(Summarise(c))
		return
	}
	before, ok := freshness.FilesOf(s, row.ID, log)
	// Everything read from here on is at least as new as the files examined.
	if err := c.Refresh(ctx); err != nil {
		row.fail(err)
		return
	}
	row.set(Summarise(c))
	if newest, err := c.Index.NewestLog(); ok && err == nil && newest == log {
		now, ok := freshness.FilesOf(s, row.ID, log)
		row.keep(before, now, ok, log)
	}
}

// readLegacy reads the row of a legacy context in a list. It is not listed if it is not a legacy context after all.
func (row *listRow) readLegacy(s *engine.Store, name string) {
	before, _ := legacyFileStates(s, name)
	if r := row.known.decoded(); r != nil && r.Format != "" && r.isOf(before) {
		row.reuse(r)
		return
	}
	sum := Summary{ID: row.ID}
	info, err := s.FS.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		sum.Format, err = legacy.Detect(s.FS, name)
		if err == nil && !sum.Format.Legacy() {
			return
		}
		sum.Bytes, sum.CreatedAt, sum.UpdatedAt = info.Size(), info.ModTime().UTC(), info.ModTime().UTC()
	}
	if err == nil {
		err = summariseLegacy(s, &sum, name)
	}
	if err != nil {
		sum.Problem = engine.Wrap(engine.Error{Op: "read", Path: name}, err)
	}
	now, looked := legacyFileStates(s, name)
	row.set(sum)
	row.keep(before, now, looked, "")
}

func summariseLegacy(s *engine.Store, sum *Summary, name string) error {
	f, err := legacy.Open(s.FS, name, legacy.Options{Limit: s.Options.MaxMessage})
	if err != nil {
		return err
	}
	defer f.Close()
	sum.Title, _ = legacy.Text(f.Members.Get("title"))
	sum.ActiveBranch, _ = legacy.Text(f.Members.Get("active_branch_name"))
	sum.Branches, sum.Messages, sum.Bytes = len(f.Branches), int64(f.Len()), f.Size
	return nil
}

// legacyFileStates is fileStates for a legacy context. It misses an edit of a node's file, which the list does not
// show.
func legacyFileStates(s *engine.Store, name string) (files [3]freshness.FileState, ok bool) {
	names := []string{name}
	if !strings.HasSuffix(name, ".json") {
		names = []string{name + "/" + legacy.ContextFile, name + "/" + legacy.PoolFolder}
	}
	for i, n := range names {
		info, err := s.FS.Lstat(n)
		if err != nil {
			return files, false
		}
		files[i] = freshness.FileState{Number: vfs.Number(info), Size: info.Size(), At: info.ModTime().UnixNano()}
	}
	return files, true
}
