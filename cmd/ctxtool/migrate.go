package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/legacy"
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
	Again     bool   `json:"again,omitempty"` // it had been migrated before
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
		Short: "Make contexts of the monolithic files of the program before",
		Long: `Make contexts of legacy ones: files with a whole conversation in them, and folders with a context.json and a messages_pool. PATH is
one, or a folder in which they are looked for. Each new context is compared with its original before anything else changes; then the
original gets the suffix .old. What cannot be migrated is told and left alone. It can be stopped at any time and done again.
With --dry-run everything is done in a temporary folder, and nothing is changed.`,
		Example: `  ctxtool migrate ~/.old-tool/conversations --dry-run
  ctxtool migrate ~/.old-tool/conversations`,
		Annotations: exits("some legacy contexts could not be migrated", ofNewStore...),
		Args:        between(1, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			m := &migrating{a: a, ctx: cmd.Context(), progress: a.newProgress("migrating")}
			s, remove, err := a.storeToMigrateTo()
			if err != nil {
				return err
			}
			err = m.run(s, paths)
			if remove != nil {
				return closing(remove, err)
			}
			return a.closeStore(cmd.Context(), s, err)
		},
	}
	a.dryRunFlag(cmd)
	return cmd
}

// storeToMigrateTo is the store in use, made when there is none. A dry run makes none there: one that is removed again serves.
func (a *app) storeToMigrateTo() (s *ctxdir.Store, remove func() error, err error) {
	if !a.dryRun {
		s, err = a.openOrInit()
		return s, nil, err
	}
	if s, err = a.open(); errors.Is(err, ctxdir.ErrNoStore) {
		return temporaryStore(a.options()...)
	}
	return s, nil, err
}

// migrating is one run of the verb.
type migrating struct {
	a        *app
	ctx      context.Context
	progress *progress
	sum      migrateSummary
}

func (m *migrating) run(s *ctxdir.Store, paths []string) error {
	m.sum.Record = "summary"
	stopped := m.paths(s, paths)
	m.progress.clear()
	if stopped != nil && m.ctx.Err() == nil {
		return stopped
	}
	if err := m.printSummary(); err != nil {
		return err
	}
	if stopped == nil && m.sum.Failed > 0 {
		return &problemsError{text: plural(m.sum.Failed, "legacy context", "legacy contexts") + " could not be migrated"}
	}
	return stopped
}

// paths migrates all that the paths lead to. The error is one that ends the whole.
func (m *migrating) paths(s *ctxdir.Store, paths []string) error {
	for _, path := range paths {
		for found, err := range legacy.Find(path) {
			if m.ctx.Err() != nil {
				return m.ctx.Err()
			}
			switch {
			case errors.Is(err, fs.ErrNotExist) && found.Path == path:
				err = m.migrate(s, path, path) // it may have been migrated before
			case err != nil:
				err = m.failed(found.Path, &ctxdir.Error{Op: "migrate", Path: found.Path, Err: err})
			case found.Backup:
				err = m.skipped(found.Path, path, "a backup of what was migrated")
			case found.Format.Legacy():
				err = m.migrate(s, found.Path, path)
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

func (m *migrating) migrate(s *ctxdir.Store, path, asked string) error {
	m.progress.file(path)
	done, err := s.Migrate(m.ctx, path, ctxdir.LegacyOptions{DryRun: m.a.dryRun, Progress: m.progress.bytes})
	m.progress.clear()
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	if _, lerr := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist) && path != asked {
		return m.skipped(path, asked, "moved away meanwhile")
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
	what := fmt.Sprintf("%s, %s", plural(int(done.Messages), "message", "messages"), plural(done.Branches, "branch", "branches"))
	if done.Again {
		what += ", migrated before"
	}
	return m.a.printFitting(fmt.Sprintf("%s  %s  %s", done.Context, what, oneLine(path)))
}

// failed tells of a legacy context that stays what it is, and each thing in which the new one would differ.
func (m *migrating) failed(path string, err error) error {
	m.sum.Failed++
	m.progress.clear()
	for _, d := range placeOf(err).Differs {
		m.a.warn(errorRecord{Path: path, Error: oneLine(d)})
	}
	reason := reasonOf(cause(err), path)
	if m.a.json {
		return m.a.record(failedRecord{"failed", path, reason})
	}
	m.a.warn(errorRecord{Path: path, Error: reason, Hint: hint(err)})
	return nil
}

// skipped tells of a file of which no context is made. Of those that were only come across, people are told when they want to know more.
func (m *migrating) skipped(path, asked, reason string) error {
	m.sum.Skipped++
	if m.a.json {
		return m.a.record(failedRecord{"skipped", path, reason})
	}
	if path == asked {
		m.a.note("%s: %s", oneLine(path), reason)
	} else {
		m.a.detail("%s: %s", oneLine(path), reason)
	}
	return nil
}

func (m *migrating) printSummary() error {
	if m.a.json {
		return m.a.record(m.sum)
	}
	verb := "migrated"
	if m.a.dryRun {
		verb = "can be migrated"
	}
	text := fmt.Sprintf(
		"%s %s, %s",
		plural(m.sum.Migrated, "legacy context", "legacy contexts"),
		verb,
		plural(int(m.sum.Messages), "message", "messages"),
	)
	if m.sum.Skipped > 0 {
		text += ", " + plural(m.sum.Skipped, "other file", "other files")
	}
	if m.sum.Failed > 0 {
		text += fmt.Sprintf(", %s failed", humanCount(int64(m.sum.Failed)))
	}
	return m.a.printf("%s\n", text)
}
