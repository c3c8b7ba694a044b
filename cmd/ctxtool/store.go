package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/workspace"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// storePath is the folder of the store in use: --store, $CTXDIR_STORE, the nearest .ctxdir in the current folder or
// above it, or the user's own store. A .ctxdir of another user is an error: see [workspace.Find].
func (a *app) storePath() (string, error) {
	if a.storeDir != "" {
		return a.storeDir, nil
	}
	if dir := a.env("CTXDIR_STORE"); dir != "" {
		return dir, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if path, err := workspace.Find(here); err != nil || path != "" {
		return path, err
	}
	if dir := a.env("XDG_DATA_HOME"); filepath.IsAbs(dir) { // its specification ignores relative paths
		return filepath.Join(dir, "ctxdir"), nil
	}
	home := a.env("HOME")
	if home == "" {
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("cannot find a home folder for the store: %w", err)
		}
	}
	return filepath.Join(home, ".local", "share", "ctxdir"), nil
}

func (a *app) options(more ...ctxdir.Options) []ctxdir.Options {
	wait := cmp.Or(a.lockTimeout, -1) // 0 means no wait
	return append([]ctxdir.Options{{LockTimeout: wait, ReadOnly: a.dryRun}}, more...)
}

// dryRunFlag adds --dry-run to a verb.
func (a *app) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "print the plan and change nothing")
}

// durationFlag adds a flag whose default the help shows in hours.
func durationFlag(cmd *cobra.Command, into *time.Duration, name string, value time.Duration, usage string) {
	cmd.Flags().DurationVar(into, name, value, usage)
	cmd.Flags().Lookup(name).DefValue = fmt.Sprintf("%.0fh", value.Hours())
}

// open opens the store in use.
func (a *app) open(opts ...ctxdir.Options) (*ctxdir.Store, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	a.detail("store %s", path)
	s, err := ctxdir.Open(path, a.options(opts...)...)
	if err != nil && !errors.Is(err, ctxdir.ErrNoStore) && noFolder(path) {
		err = fmt.Errorf("%w: %w", ctxdir.ErrNoStore, err)
	}
	if err == nil {
		search.Attach(s)
	}
	return s, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// noFolder reports whether a path is surely not a folder. A path that cannot be examined may be one.
func noFolder(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.IsDir()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// openOrInit opens the store in use, and creates it if it is missing.
func (a *app) openOrInit() (*ctxdir.Store, error) {
	s, err := a.open()
	if !errors.Is(err, ctxdir.ErrNoStore) {
		return s, err
	}
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	a.note("creating a store in %s", path)
	return ctxdir.Init(path, a.options()...)
}

// resolve finds the context that an argument names.
func resolve(s *ctxdir.Store, ref string) (uuid.UUID, error) {
	if ref == "" {
		return uuid.Nil, badArgument(`run "ctxtool ls" to list the contexts`, "CONTEXT is empty")
	}
	return s.Resolve(ref)
}

// withStore runs f with the store in use.
func (a *app) withStore(ctx context.Context, f func(s *ctxdir.Store) error, opts ...ctxdir.Options) error {
	s, err := a.open(opts...)
	if err != nil {
		return err
	}
	return a.closeStore(ctx, s, f(s))
}

// closeStore ends a verb that used a store: it prints the results, collects garbage if that is due, and closes the
// store.
func (a *app) closeStore(ctx context.Context, s *ctxdir.Store, err error) error {
	if problem := s.Info().Problem; err == nil && problem != nil {
		err = problems(hint(problem), "%v", problem)
	}
	if err == nil && ctx.Err() == nil {
		if err = a.out.Flush(); err == nil && a.collects {
			a.collectIfDue(ctx, s)
		}
	}
	return closeAfter(s.Close, err)
}

// withContext runs f with the context that ref names. Closing the context waits for a running seal.
func (a *app) withContext(ctx context.Context, ref string, f func(c *ctxdir.Context) error, opts ...ctxdir.Options) error {
	return a.withStore(ctx, func(s *ctxdir.Store) error { return a.inContext(ctx, s, ref, f) }, opts...)
}

// inContext runs f with the context of a store that ref names.
func (a *app) inContext(ctx context.Context, s *ctxdir.Store, ref string, f func(c *ctxdir.Context) error) error {
	id, err := resolve(s, ref)
	if err != nil {
		return err
	}
	a.migrateFirst(ctx, s, id)
	return withOpen(ctx, s, id, f)
}

// migrateFirst migrates a legacy context in the store, even for a verb that only reads. If that fails, the verb shows
// the legacy context, or fails with the reason.
func (a *app) migrateFirst(ctx context.Context, s *ctxdir.Store, id uuid.UUID) {
	root := s.Info().Path
	if a.dryRun || !mayBeLegacy(filepath.Join(root, id.String())) {
		return
	}
	to, err := ctxdir.Open(root, a.options()...)
	if err != nil {
		return
	}
	defer to.Close()
	c, err := to.Open(ctx, id)
	if err != nil {
		a.detail("failed to migrate context %s: %v", id, err)
		return
	}
	_ = c.Close() // nothing was written through it
}

// mayBeLegacy reports whether the path of a context may hold a legacy context: a file, or a folder with a context.json.
func mayBeLegacy(path string) bool {
	info, err := os.Lstat(filepath.Join(path, legacy.ContextFile))
	return err == nil && info.Mode().IsRegular() || !isFolder(path)
}

// closeAfter closes a resource and returns the first error: err, or that of closing.
func closeAfter(close func() error, err error) error {
	if cerr := close(); err == nil {
		return cerr
	}
	return err
}

// branchOf is the branch of that name, or the active one.
func branchOf(c *ctxdir.Context, name string) (*ctxdir.Branch, error) {
	if name == "" {
		return c.Active(), nil
	}
	return c.Branch(name)
}

// parseID parses a full UUID.
func parseID(cmd *cobra.Command, what, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || id == uuid.Nil {
		return uuid.Nil, usage(cmd, "%s: %q is not a UUID", what, text)
	}
	return id, nil
}

// contextsOf returns the contexts that arguments name; without arguments, all contexts of the store.
func contextsOf(s *ctxdir.Store, refs []string) (ids []uuid.UUID, err error) {
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(refs) > 0 {
		return ids, nil
	}
	for id, err := range s.IDs() {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// selectContexts returns the contexts that arguments name. Without arguments, the verb is for all of the store.
func selectContexts(s *ctxdir.Store, refs []string) (ids []uuid.UUID, all bool, err error) {
	if len(refs) == 0 {
		return nil, true, nil
	}
	ids, err = contextsOf(s, refs)
	return ids, false, err
}

// withOpen runs f with an open context.
func withOpen(ctx context.Context, s *ctxdir.Store, id uuid.UUID, f func(c *ctxdir.Context) error) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	return closeAfter(c.Close, f(c))
}

// temporaryStore creates a store for a dry run. remove closes and removes it.
func temporaryStore(opts ...ctxdir.Options) (s *ctxdir.Store, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "ctxtool-")
	if err != nil {
		return nil, nil, err
	}
	if s, err = ctxdir.Init(dir, opts...); err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, nil
}
