package main

import (
	"errors"

	"github.com/ctxdir/ctxdir/importer"
)

// liveImport is what an import that follows remembers.
type liveImport struct {
	follower *importer.Follower
	again    bool   // everything was imported once
	first    func() // called then
	files    map[string]bool
	reported map[importer.Problem]bool
}

func newLiveImport() *liveImport {
	return &liveImport{first: func() {}, files: map[string]bool{}, reported: map[importer.Problem]bool{}}
}

// isNew reports whether a file is seen for the first time.
func (l *liveImport) isNew(path string) bool {
	known := l.files[path]
	l.files[path] = true
	return !known
}

// maxReported bounds the problems that are remembered. Beyond it, some are reported twice.
const maxReported = 1 << 14

// isNews reports whether a problem was not reported before: an import of a grown file meets its problems again.
func (l *liveImport) isNews(p importer.Problem) bool {
	if l.reported[p] {
		return false
	}
	if len(l.reported) >= maxReported {
		clear(l.reported)
	}
	l.reported[p] = true
	return true
}

// failed reports whether a failure is news. It lets the file come again, unless only a change can help.
func (l *liveImport) failed(path string, err error) bool {
	if !errors.Is(err, importer.ErrFormat) {
		l.follower.Again(path)
	}
	return l.isNews(importer.Problem{Path: path, Reason: err.Error()})
}
