package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir"
	legacyfile "github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

type migratedRecord struct {
	Record    string `json:"record"`
	Path      string `json:"path"`
	Context   string `json:"context"`
	Branches  int    `json:"branches"`
	Messages  int64  `json:"messages"`
	Bytes     int64  `json:"bytes"`
	Validated bool   `json:"validated"`
	Backup    string `json:"backup,omitempty"`
	Again     bool   `json:"again,omitempty"` // it was migrated before
}

type migrateSummary struct {
	Record   string `json:"record"`
	Migrated int    `json:"migrated"`
	Skipped  int    `json:"skipped"`
	Failed   int    `json:"failed"`
	Messages int64  `json:"messages"`
}

func (a *app) migrateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate PATH…",
		Short: "Convert legacy contexts",
		Long: `Convert legacy contexts: files with a whole conversation, and folders with a context.json and a
messages_pool. PATH is a legacy context, or a folder to search for them. migrate compares each new
context with its original, and then renames the original with the suffix .old. It reports originals
that it cannot convert, and leaves them unchanged. An interrupted run can be repeated. --dry-run
converts into a temporary folder.`,
		Example: `  ctxtool migrate ~/.old-tool/conversations --dry-run
  ctxtool migrate ~/.old-tool/conversations`,
		Annotations: exits("failed to migrate some legacy contexts", ofNewStore...),
		Args:        between(1, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			m := &migrateRun{a: a, ctx: cmd.Context(), progress: a.newProgress("Migrating")}
			s, remove, err := a.storeToMigrateTo()
			if err != nil {
				return err
			}
			m.store = s
			err = m.run(paths)
			switch {
			case remove != nil:
				return closeAfter(remove, err)
			case m.store == nil:
				return err
			}
			return a.closeStore(cmd.Context(), m.store, err)
		},
	}
	a.dryRunFlag(cmd)
	return cmd
}

// storeToMigrateTo is the store in use, or nil if it is missing: the first legacy context creates it. A dry run creates
// a temporary store instead.
func (a *app) storeToMigrateTo() (s *ctxdir.Store, remove func() error, err error) {
	s, err = a.open()
	switch missing := errors.Is(err, ctxdir.ErrNoStore); {
	case missing && a.dryRun:
		return temporaryStore(a.options()...)
	case missing:
		return nil, nil, nil
	}
	return s, nil, err
}

// migrateRun is one run of the verb.
type migrateRun struct {
	a        *app
	ctx      context.Context
	progress *term.Progress
	sum      migrateSummary
	store    *ctxdir.Store // nil while it is missing
}

func (m *migrateRun) run(paths []string) error {
	m.sum.Record = "summary"
	stopped := m.paths(paths)
	m.progress.Clear()
	if stopped != nil && m.ctx.Err() == nil {
		return stopped
	}
	if err := m.printSummary(); err != nil {
		return err
	}
	if stopped == nil && m.sum.Failed > 0 {
		return problems("", "failed to migrate %s", plain.Count(m.sum.Failed, "legacy context"))
	}
	return stopped
}

// paths migrates every legacy context under the paths. An error ends the run.
func (m *migrateRun) paths(paths []string) error {
	for _, path := range paths {
		for found, err := range legacyfile.Find(path) {
			if m.ctx.Err() != nil {
				return m.ctx.Err()
			}
			switch {
			case errors.Is(err, fs.ErrNotExist) && found.Path == path && m.store != nil:
				err = m.migrate(path, path) // it may have been migrated before
			case err != nil:
				err = m.failed(found.Path, &ctxdir.Error{Op: "migrate", Path: found.Path, Err: err})
			case found.Backup:
				err = m.skipped(found.Path, path, "backup of a migrated context")
			case found.Format.Legacy():
				err = m.migrate(found.Path, path)
			default:
				err = m.skipped(found.Path, path, "not a legacy context")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *migrateRun) migrate(path, asked string) error {
	if m.store == nil {
		s, err := m.a.openOrInit()
		if err != nil {
			return err
		}
		m.store = s
	}
	m.progress.File(path)
	done, err := m.store.Migrate(m.ctx, path, ctxdir.MigrateOptions{DryRun: m.a.dryRun, Progress: m.progress.Bytes})
	m.progress.Clear()
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	if _, lerr := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist) && path != asked {
		return m.skipped(path, asked, "removed during the migration")
	}
	if err != nil {
		if ferr := m.failed(path, err); ferr != nil {
			return ferr
		}
		if fatal(err) {
			return err
		}
		return nil
	}
	m.sum.Migrated++
	m.sum.Messages += done.Messages
	if m.a.json {
		return m.a.record(
			migratedRecord{"migrated", path, done.Context.String(), done.Branches, done.Messages, done.Bytes, true, done.Backup, done.Again},
		)
	}
	what := fmt.Sprintf("%s, %s", plain.Count(done.Messages, "message"), plain.Count(done.Branches, "branch"))
	if done.Again {
		what += ", migrated before"
	}
	return m.a.printFitting(fmt.Sprintf("%s  %s  %s", done.Context, what, plain.OneLine(path)))
}

// failed reports a legacy context that was not migrated, and how the new context would differ.
func (m *migrateRun) failed(path string, err error) error {
	m.sum.Failed++
	m.progress.Clear()
	for _, d := range libraryError(err).Differs {
		m.a.warn(errorRecord{Path: path, Error: plain.OneLine(d)})
	}
	return m.a.fileFailed(path, cause(err), err)
}

// skipped reports a file that is not migrated. For people, a file that PATH does not name is only a detail.
func (m *migrateRun) skipped(path, asked, reason string) error {
	m.sum.Skipped++
	if m.a.json {
		return m.a.record(failedRecord{Record: "skipped", Path: path, Reason: reason})
	}
	if path == asked {
		m.a.note("%s: %s", plain.OneLine(path), reason)
	} else {
		m.a.detail("%s: %s", plain.OneLine(path), reason)
	}
	return nil
}

func (m *migrateRun) printSummary() error {
	if m.a.json {
		return m.a.record(m.sum)
	}
	verb := "migrated"
	if m.a.dryRun {
		verb = "would migrate"
	}
	text := fmt.Sprintf("%s %s with %s", verb, plain.Count(m.sum.Migrated, "legacy context"), plain.Count(m.sum.Messages, "message"))
	if m.sum.Skipped > 0 {
		text += ", skipped " + plain.Count(m.sum.Skipped, "other file")
	}
	if m.sum.Failed > 0 {
		text += fmt.Sprintf(", failed on %d", m.sum.Failed)
	}
	return m.a.printf("%s\n", text)
}
