package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/term"
)

// followBeside imports what the tools of this user wrote, and goes on with what they write, until stop is called. once is
// closed when everything was imported once, or nothing can be. It prints only problems, on stderr: stdout belongs to another
// program.
func (a *app) followBeside(ctx context.Context) (once <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	through := make(chan struct{})
	first := sync.OnceFunc(func() { close(through) })
	var running sync.WaitGroup
	running.Go(func() {
		defer first()
		if err := a.beside().follow(ctx, first); err != nil && ctx.Err() == nil {
			a.note("no longer importing: %v", err)
		}
	})
	return through, func() {
		cancel()
		running.Wait()
	}
}

// beside is the same command without output.
func (a *app) beside() *app {
	b := *a
	b.out, b.stderr = term.NewOutput(io.Discard, a.env), io.Discard
	b.quiet, b.json = true, false
	return &b
}

var errNoHistories = errors.New("no histories of other tools were found")

// follow imports from the usual places, and goes on. first is called when it was through once.
func (a *app) follow(ctx context.Context, first func()) error {
	paths, err := a.findHistories()
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errNoHistories
	}
	target, err := a.openTarget()
	if err != nil {
		return err
	}
	i := newImportRun(a, target, importer.Auto)
	i.live = newLiveImport()
	i.live.first = first
	return target.close(ctx, i.run(ctx, paths))
}
