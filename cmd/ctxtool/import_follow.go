package main

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/importer"

	"github.com/ctxdir/ctxdir/internal/record"
)

// liveImport is what an import that follows remembers.
type liveImport struct {
	follower *importer.Follower
	again    bool // everything was imported once
	files    map[string]bool
	reported map[importer.Problem]bool
}

func newLiveImport() *liveImport {
	return &liveImport{files: map[string]bool{}, reported: map[importer.Problem]bool{}}
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

// follow imports every file under the paths, and then those that change, until the end of ctx.
func (i *importRun) follow(ctx context.Context, paths []string) (err error) {
	f := importer.Follow(paths, func(string) { i.sum.Passed++ })
	defer func() { err = closeAfter(f.Close, err) }()
	i.live.follower = f
	i.a.silent = true // it ends with an interrupt
	for ; ; i.live.again = true {
		i.sum.Passed = 0
		for path, err := range f.Histories() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := i.found(ctx, path, err); err != nil {
				return err
			}
		}
		i.target.save()
		if err := i.ready(f); err != nil {
			return err
		}
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
}

// ready prints what was imported, and at first that import follows now.
func (i *importRun) ready(f *importer.Follower) error {
	i.progress.Clear()
	if polling := f.Polling(); !i.live.again {
		i.progress = nil
		if i.a.json {
			if err := i.a.record(readyRecord{Record: "ready", Polling: record.Problem(polling)}); err != nil {
				return err
			}
		}
		if polling != nil {
			i.a.note("polling for changes, since notifications are not available: %v", polling)
		}
		i.a.note("following; press Ctrl-C to stop")
	}
	return i.a.out.Flush()
}
