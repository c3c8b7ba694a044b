package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// workspace is the store of a folder and those below it.
const workspace = ".ctxdir"

// storePath is the folder of the store in use: the one that --store names, $CTXDIR_STORE, the nearest
// .ctxdir from here upwards, or the user's own.
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
	for dir := here; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, workspace)
		if isFolder(path) {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if dir := a.env("XDG_DATA_HOME"); filepath.IsAbs(dir) { // others are to be ignored, says its specification
		return filepath.Join(dir, "ctxdir"), nil
	}
	home := a.env("HOME")
	if home == "" {
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("no home folder to keep a store in: %w", err)
		}
	}
	return filepath.Join(home, ".local", "share", "ctxdir"), nil
}

func (a *app) options(more ...ctxdir.Option) []ctxdir.Option {
	opts := []ctxdir.Option{ctxdir.WithLockTimeout(a.lockTimeout)}
	if a.dryRun {
		opts = append(opts, ctxdir.WithReadOnly())
	}
	return append(opts, more...)
}

// dryRunFlag gives a verb its --dry-run.
func (a *app) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "say what would be done, and change nothing")
}

// open opens the store in use.
func (a *app) open(opts ...ctxdir.Option) (*ctxdir.Store, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	a.detail("store %s", path)
	s, err := ctxdir.Open(path, a.options(opts...)...)
	if err != nil && !errors.Is(err, ctxdir.ErrNoStore) && noFolder(path) {
		err = fmt.Errorf("%w: %w", ctxdir.ErrNoStore, err)
	}
	return s, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// noFolder reports whether something else than a folder is there, or nothing: what cannot be looked at may be one.
func noFolder(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.IsDir()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// openOrInit opens the store in use, and makes it when there is none.
func (a *app) openOrInit(opts ...ctxdir.Option) (*ctxdir.Store, error) {
	s, err := a.open(opts...)
	if !errors.Is(err, ctxdir.ErrNoStore) {
		return s, err
	}
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	a.note("new store %s", path)
	return ctxdir.Init(path, a.options(opts...)...)
}

// resolve finds the context that an argument names.
func resolve(s *ctxdir.Store, ref string) (uuid.UUID, error) {
	id, err := s.Resolve(ref)
	if errors.Is(err, ctxdir.ErrInvalid) {
		return id, &usageError{fmt.Sprintf("%q is no context's id, nor a part of one", ref), `"ctxtool ls" lists the contexts`}
	}
	return id, err
}

// withStore runs f with the store in use.
func (a *app) withStore(ctx context.Context, f func(s *ctxdir.Store) error, opts ...ctxdir.Option) error {
	s, err := a.open(opts...)
	if err != nil {
		return err
	}
	return a.closeStore(ctx, s, f(s))
}

// closeStore closes a store when a verb is done with it, and collects garbage in it if it is time for that. What the verb has to say is
// said before.
func (a *app) closeStore(ctx context.Context, s *ctxdir.Store, err error) error {
	if problem := s.Info().Problem; err == nil && problem != nil {
		err = &problemsError{problem.Error(), hint(problem)}
	}
	if err == nil && ctx.Err() == nil {
		if err = a.out.Flush(); err == nil && a.collects {
			if _, cerr := s.Collect(ctx, ctxdir.CollectOptions{All: true, IfDue: true}); cerr != nil {
				a.detail("collecting garbage: %v", cerr)
			}
		}
	}
	return closing(s.Close, err)
}

// withContext runs f with the context that ref names. Closing it waits for a fold that goes on.
func (a *app) withContext(ctx context.Context, ref string, f func(c *ctxdir.Context) error, opts ...ctxdir.Option) error {
	return a.withStore(ctx, func(s *ctxdir.Store) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		a.migrateFirst(ctx, s, id)
		c, err := s.Context(ctx, id)
		if err != nil {
			return err
		}
		return closing(c.Close, f(c))
	}, opts...)
}

// migrateFirst migrates a legacy context that lies in the store, also for a verb that only reads. Where that fails the
// verb shows it as it is, or says why it cannot.
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
	c, err := to.Context(ctx, id)
	if err != nil {
		a.detail("migrating context %s: %v", id, err)
		return
	}
	_ = c.Close() // nothing was written through it
}

// mayBeLegacy reports whether a legacy context may lie in the place of a context: a file, or a folder with a context.json.
func mayBeLegacy(path string) bool {
	info, err := os.Lstat(filepath.Join(path, legacy.ContextFile))
	return err == nil && info.Mode().IsRegular() || !isFolder(path)
}

// closing closes what was open, and returns its error unless there is another one.
func closing(closeIt func() error, err error) error {
	if cerr := closeIt(); err == nil {
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

// parseID reads a whole UUID.
func parseID(cmd *cobra.Command, what, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || id == uuid.Nil {
		return uuid.Nil, usage(cmd, "%s: %q is no UUID", what, text)
	}
	return id, nil
}

// contextsOf returns the contexts that arguments name: without any, all of the store.
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

// withOpen opens a context for f.
func withOpen(ctx context.Context, s *ctxdir.Store, id uuid.UUID, f func(c *ctxdir.Context) error) error {
	c, err := s.Context(ctx, id)
	if err != nil {
		return err
	}
	return closing(c.Close, f(c))
}

// temporaryStore makes a store for a verb that is not to change anything. remove closes and removes it.
func temporaryStore(opts ...ctxdir.Option) (s *ctxdir.Store, remove func() error, err error) {
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
