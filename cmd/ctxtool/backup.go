package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) backupCmd() *cobra.Command {
	var to string
	var prune bool
	var which selection
	cmd := &cobra.Command{
		Use:   "backup [CONTEXT…] DIR",
		Short: "Copy contexts to another store",
		Long: `Copy contexts and the payloads they refer to into the store in DIR, which is created if it is
missing. Without CONTEXT, copy every context of the store, or those of a project. Each copy is
consistent, even while processes write to the context. If a copy already shows the same, backup
does not copy the context again; an older copy moves to the trash of DIR. backup leaves out
unreadable messages and payloads, and reports them. If DIR could be a CONTEXT, write ./DIR or --to
DIR.

--prune moves copies of contexts that the store no longer has to the trash of DIR. Verify a backup
with "ctxtool --store DIR check --read-data", and bring it back with "ctxtool restore".`,
		Example: `  ctxtool backup ~/backup
  ctxtool backup 7c2f ~/backup
  ctxtool backup --project ~/walk --to ~/backup
  ctxtool --store ~/backup ls`,
		Annotations:       exits("failed to copy some contexts, messages or payloads", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := len(args); !cmd.Flags().Changed("to") && n > 0 && isPlace(args[n-1]) {
				to, args = args[n-1], args[:n-1]
			}
			switch {
			case to == "":
				return usage(cmd, "the target folder is missing: pass it last, or with --to")
			case prune && len(args) > 0:
				return usage(cmd, "--prune and CONTEXT cannot be used together")
			case prune && which.given():
				return usage(cmd, "--prune cannot be used with --project or --label")
			}
			if _, err := which.labels.parse(cmd); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := which.ids(cmd.Context(), s, args)
				if err != nil {
					return err
				}
				if _, err := s.Resolve(to); !cmd.Flags().Changed("to") && !errors.Is(err, ctxdir.ErrNotExist) {
					return usage(cmd, "%q is the name of a context; pass the folder with --to", to)
				}
				if within(to, s.Info().Path) { // before Init creates a store there
					err := fmt.Errorf("%w: a store cannot be backed up into itself", ctxdir.ErrInvalid)
					return &ctxdir.Error{Op: "open", Path: to, Err: err}
				}
				target, err := ctxdir.Init(to, a.options()...)
				if err != nil {
					return err
				}
				err = a.copyContexts(cmd.Context(), s, ids, target, copyVerb{"backed_up", "Backing up", "back up"})
				if err == nil && prune {
					err = a.prune(cmd.Context(), s, target)
				}
				return closeAfter(target.Close, err)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "copy into the store in `DIR`, instead of the last argument")
	which.flags(cmd, "copy")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove copies of contexts that the store no longer has")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

// isPlace reports whether an argument names a folder rather than a context: it has a separator, or cannot be a part of
// an id.
func isPlace(arg string) bool {
	return strings.ContainsAny(arg, `/`+string(filepath.Separator)) || strings.Trim(strings.ToLower(arg), "0123456789abcdef-") != ""
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

// prune moves the copies of contexts that a store does not have any more to the trash of the backup.
func (a *app) prune(ctx context.Context, s, backup *ctxdir.Store) error {
	there := map[uuid.UUID]bool{}
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		there[id] = true
	}
	var gone []uuid.UUID
	for id, err := range backup.IDs() {
		if err != nil {
			return err
		}
		if !there[id] {
			gone = append(gone, id)
		}
	}
	failed, err := eachContext(ctx, a, "Pruning", gone, func(id uuid.UUID) (ctxdir.TrashItem, error) {
		return backup.Remove(ctx, id)
	}, func(id uuid.UUID, item ctxdir.TrashItem) error {
		return a.result(itemRecordOf(item, false, false), "%s  removed from the backup", id)
	})
	if err == nil {
		err = failures("prune", failed, len(gone))
	}
	return err
}
