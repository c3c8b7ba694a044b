package listing

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

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
