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
		Short: "Copy contexts to another store, also while they are written",
		Long: `Copy contexts, with the payloads they refer to, to the store in DIR, which is made when there is none. Each copy is what the context
was at one moment; writers go on meanwhile. An older copy in DIR goes to the trash there. What cannot be read is left out and told.`,
		Example: `  ctxtool backup 7c2f --to ~/backup
  ctxtool --store ~/backup ls`,
		Annotations:       exits("some contexts, messages or payloads were not copied", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage(cmd, "--to is missing")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := contextsOf(s, args)
				if err != nil {
					return err
				}
				if within(to, s.Info().Path) { // a store is not made where no backup goes
					return &ctxdir.Error{Op: "open", Path: to, Err: fmt.Errorf("%w: a backup does not go into the store itself", ctxdir.ErrInvalid)}
				}
				target, err := ctxdir.Init(to, a.options()...)
				if err != nil {
					return err
				}
				return closing(target.Close, a.backup(cmd.Context(), s, ids, target))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `DIR` of the store for backups")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

// within reports whether a path, of which the end need not exist, is a folder or lies below it. It follows links.
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
	failed, missing, root := 0, int64(0), to.Info().Path
	bar := a.newProgress("Backing up")
	for i, id := range ids {
		bar.contexts(i, len(ids))
		done, err := s.Backup(ctx, id, to)
		bar.clear()
		if err != nil && (len(ids) == 1 || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
			continue
		}
		if done.Missing > 0 {
			missing += done.Missing
			a.warn(errorRecord{Error: fmt.Sprintf("context %s: %d not copied: %v", id, done.Missing, done.Problem)})
		}
		path := filepath.Join(root, done.Path)
		if a.json {
			err = a.record(backedUpRecord{"backed_up", id.String(), path, done.Messages, done.Bytes, done.Missing})
		} else {
			err = a.printf("%s  %s, %s\n", path, plural(int(done.Messages), "message", "messages"), humanSize(done.Bytes))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return &problemsError{text: fmt.Sprintf("%d of %d contexts were not backed up", failed, len(ids))}
	case missing > 0:
		return &problemsError{text: plural(int(missing), "message or payload is", "messages or payloads are") + " not in the backup"}
	}
	return nil
}
