package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
)

type failedRecord struct {
	Record string `json:"record"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

// fatal reports whether the next file would fail for the same reason.
func fatal(err error) bool {
	return errors.Is(err, ctxdir.ErrReadOnly) || errors.Is(err, ctxdir.ErrNoStore) || errors.Is(err, ctxdir.ErrDurability)
}

// fileFailed reports why a verb failed on a file.
func (a *app) fileFailed(path string, reason, err error) error {
	text := reasonOf(reason, path)
	if a.json {
		return a.record(failedRecord{"failed", path, text, hint(err)})
	}
	a.warn(errorRecord{Path: path, Error: text, Hint: hint(err)})
	return nil
}

// reasonOf is an error about a file, without its path.
func reasonOf(err error, path string) string {
	var of *fs.PathError
	if errors.As(err, &of) && (of.Path == path || of.Path == filepath.Base(path)) {
		return plain.OneLine(of.Err.Error())
	}
	return plain.OneLine(strings.TrimPrefix(err.Error(), path+": "))
}
