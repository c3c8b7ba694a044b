package integrity

import (
	"context"
	"errors"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Check yields the problems of a context.
func (c *Context) Check(ctx context.Context, yield func(Finding) bool) error {
	return c.examine(ctx, func(p problem) bool { return yield(p.Finding) })
}

func (c *Context) examine(ctx context.Context, yield func(problem) bool) error {
	x := &examination{
		Context: c, yield: yield, seen: map[string]*listing{}, blocked: map[string]bool{}, found: map[place]bool{},
	}
	err := x.run(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

func (x *examination) run(ctx context.Context) error {
	if usable, err := x.folder(ctxfolder.Segments, SeverityError); err != nil || !usable {
		return err // nothing else can be examined
	}
	if err := x.openMetadata(); err != nil {
		return err
	}
	if err := x.summary(); err != nil {
		return err
	}
	// List the folders before reading the history: a file listed then was committed before, or never.
	if err := x.list(ctx, ctxfolder.Messages); err != nil {
		return err
	}
	broken, err := x.history(ctx)
	if err != nil || x.metadata == nil {
		return errors.Join(err, x.reportAll(broken))
	}
	if err := x.structure(); err != nil {
		return err
	}
	for i := range x.metadata.Lines {
		if err := x.messages(ctx, x.metadata.Lines[i].ID); err != nil {
			return err
		}
	}
	for _, look := range []func(context.Context) error{x.checkSuspects, x.leftovers} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	x.dropFound()
	if err := x.reportAll(x.withLost(broken)); err != nil {
		return err
	}
	if err := x.reportAll(inRuns(x.lost)); err != nil {
		return err
	}
	if err := x.prompts(); err != nil {
		return err
	}
	return x.erasing()
}
