package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type backedUpRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Path     string `json:"path"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	Missing  int64  `json:"missing,omitempty"`
}

func (a *app) backupCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "backup CONTEXT… --to DIR",
		Short: "Copy contexts to another store",
		Long: `Copy contexts and the payloads they refer to into the store in DIR, which is created if it is
missing. Each copy is consistent, even while processes write to the context. An older copy in DIR
moves to the trash there. backup leaves out unreadable messages and payloads, and reports them.`,
		Example: `  ctxtool backup 7c2f --to ~/backup
  ctxtool --store ~/backup ls`,
		Annotations:       exits("failed to copy some contexts, messages or payloads", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage(cmd, "--to is required")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := contextsOf(s, args)
				if err != nil {
					return err
				}
				if within(to, s.Info().Path) { // before Init creates a store there
					err := fmt.Errorf("%w: a store cannot be backed up into itself", ctxdir.ErrInvalid)
					return &ctxdir.Error{Op: "open", Path: to, Err: err}
				}
				target, err := ctxdir.Init(to, a.options()...)
				if err != nil {
					return err
				}
				return closeAfter(target.Close, a.backup(cmd.Context(), s, ids, target))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "copy into the store in `DIR`")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

// within reports whether a path is a folder or lies below it. It follows links; the end of the path need not exist.
func within(path, dir string) bool {
	in, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(info, in) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

func (a *app) backup(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID, to *ctxdir.Store) error {
	var missing int64
	failed, err := eachContext(ctx, a, "Backing up", ids, func(id uuid.UUID) (ctxdir.BackupResult, error) {
		return s.Backup(ctx, id, to)
	}, func(id uuid.UUID, done ctxdir.BackupResult) error {
		if done.Missing > 0 {
			missing += done.Missing
			a.warn(errorRecord{Error: fmt.Sprintf("context %s: left out %s: %v", id, count(done.Missing, "item"), done.Problem)})
		}
		path := filepath.Join(to.Info().Path, done.Path)
		return a.result(backedUpRecord{"backed_up", id.String(), path, done.Messages, done.Bytes, done.Missing},
			"%s  %s, %s", path, count(done.Messages, "message"), humanSize(done.Bytes))
	})
	if err == nil {
		err = failures("back up", failed, len(ids))
	}
	if err == nil && missing > 0 {
		err = problems("", "left out %s that cannot be read", count(missing, "item"))
	}
	return err
}
