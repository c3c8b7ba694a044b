package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type movedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Messages int64  `json:"messages"`
	To       string `json:"to"` // the folder of the other store
}

func (a *app) mvCmd() *cobra.Command {
	var to string
	var which selection
	cmd := &cobra.Command{
		Use:   "mv CONTEXT… --to STORE",
		Short: "Move contexts to another store of this machine",
		Long: `Move contexts to the store in the folder STORE. mv copies each context, reads the copy back, and then
moves the context to the trash of this store. If it is interrupted, run it again.`,
		Example:           "  ctxtool --store ~/copy init\n  ctxtool mv 7c2f --to ~/copy",
		Annotations:       exits("failed to move some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case to == "":
				return usage(cmd, "the other store is missing: pass its folder with --to")
			case len(args) == 0 && !which.given():
				return usage(cmd, "no context to move: pass CONTEXT, --project or --label")
			}
			if _, err := which.labels.parse(cmd); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := which.ids(cmd.Context(), s, args)
				if err != nil {
					return err
				}
				other, err := ctxdir.Open(to, a.options()...)
				if err != nil {
					return err
				}
				return closeAfter(other.Close, a.move(cmd.Context(), s, ids, other))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "move to the store in `DIR`")
	which.flags(cmd, "move")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

func (a *app) move(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID, to *ctxdir.Store) error {
	path := to.Info().Path
	failed, err := eachContext(ctx, a, "Moving", ids, func(id uuid.UUID) (ctxdir.BackupResult, error) {
		return moveContext(ctx, s, id, to)
	}, func(id uuid.UUID, done ctxdir.BackupResult) error {
		return a.result(movedRecord{"moved", id.String(), done.Messages, path},
			"%s  %s, now in %s", id, plain.Count(done.Messages, "message"), path)
	})
	if err == nil {
		err = failures("move", failed, len(ids))
	}
	return err
}

// moveContext moves a context.
//
// Crash order: the copy is durable, was read back, and shows the same, before the context goes to the trash. In between, both
// stores have it, and another mv brings them together.
func moveContext(ctx context.Context, s *ctxdir.Store, id uuid.UUID, to *ctxdir.Store) (done ctxdir.BackupResult, err error) {
	bring := func(o replica.Options) (different bool, err error) {
		o.Contexts = []uuid.UUID{id}
		o.Report = func(r replica.Synced) { different, err = true, errors.Join(err, r.Err) }
		_, serr := replica.Sync(ctx, replica.NewFolder(s), replica.NewFolder(to), o)
		return different, errors.Join(serr, err)
	}
	switch err = to.Use(ctx, id, func(*ctxdir.Context) error { return nil }); {
	case err == nil: // it was copied before, or came from there
		_, err = bring(replica.Options{})
	case errors.Is(err, ctxdir.ErrNotExist):
		if done, err = s.Backup(ctx, id, to); err == nil && done.Missing > 0 {
			err = fmt.Errorf("the context stays: %s cannot be read: %w", plain.Count(done.Missing, "item"), done.Problem)
		}
	}
	if err != nil {
		return done, err
	}
	for f, err := range to.Check(ctx, ctxdir.CheckOptions{Contexts: []uuid.UUID{id}, ReadData: true}) {
		if err == nil && f.Severity == ctxdir.SeverityError {
			err = fmt.Errorf("the context stays: its copy is damaged: %s: %s", f.Path, f.Detail)
		}
		if err != nil {
			return done, err
		}
	}
	different, err := bring(replica.Options{DryRun: true})
	if err == nil && different {
		err = fmt.Errorf("%w: the context stays: it was changed meanwhile; move it again", ctxdir.ErrConflict)
	}
	if err != nil {
		return done, err
	}
	err = to.Use(ctx, id, func(c *ctxdir.Context) error {
		done.Messages = c.Summary().Messages
		return nil
	})
	if err == nil {
		_, err = s.Remove(ctx, id)
	}
	return done, err
}
