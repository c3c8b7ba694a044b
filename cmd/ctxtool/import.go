package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type importedRecord struct {
	Record   string `json:"record"`
	Path     string `json:"path"`
	Format   string `json:"format"`
	Context  string `json:"context"`
	Title    string `json:"title,omitempty"`
	Branches int    `json:"branches"`
	Messages int64  `json:"messages"`
	Added    int64  `json:"added"`
	Skipped  int64  `json:"skipped"`
	Problems int64  `json:"problems"`
}

type failedRecord struct {
	Record string `json:"record"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type importSummary struct {
	Record   string `json:"record"`
	Files    int    `json:"files"`
	Contexts int    `json:"contexts"`
	Messages int64  `json:"messages"`
	Added    int64  `json:"added"`
	Skipped  int64  `json:"skipped"`
	Failed   int    `json:"failed"`
	Problems int64  `json:"problems"`
}

func (a *app) importCmd() *cobra.Command {
	var format string
	names := make([]string, 0, len(importer.Formats()))
	for _, f := range importer.Formats() {
		names = append(names, string(f))
	}
	cmd := &cobra.Command{
		Use:   "import PATH…",
		Short: "Bring in other tools' histories; again, only what is new",
		Long: `Bring in the histories of other tools: files, and all .jsonl and .json files in folders. Each conversation becomes
a context, each record a message, verbatim. Importing again adds only what is new.`,
		Example: `  ctxtool import ~/.claude/projects
  ctxtool import --format chatgpt conversations.json`,
		Annotations: exits("some files or records could not be imported", ofNewStore...),
		Args:        between(1, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if !slices.Contains(names, format) {
				return usage(cmd, "--format: %q is none of %s", format, strings.Join(names, ", "))
			}
			s, err := a.openOrInit()
			if err != nil {
				return err
			}
			i := &importing{a: a, format: importer.Format(format), contexts: map[uuid.UUID]bool{}}
			i.progress = a.newProgress("importing")
			return a.closeStore(cmd.Context(), s, i.run(cmd.Context(), s, paths))
		},
	}
	cmd.Flags().StringVar(&format, "format", "auto", strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// importing is one run of the verb.
type importing struct {
	a        *app
	format   importer.Format
	progress *progress
	sum      importSummary
	contexts map[uuid.UUID]bool
	firstErr error
}

func (i *importing) run(ctx context.Context, s *ctxdir.Store, paths []string) error {
	stopped := i.files(ctx, s, paths)
	i.progress.clear()
	if stopped != nil && ctx.Err() == nil {
		return stopped
	}
	i.sum.Record, i.sum.Contexts = "summary", len(i.contexts)
	if err := i.printSummary(); err != nil {
		return err
	}
	switch failed, done := i.sum.Failed, len(i.contexts); {
	case stopped != nil:
		return stopped
	case failed > 0 && done == 0 && i.sum.Files == 1:
		if i.a.json {
			return i.firstErr
		}
		return &summedError{"nothing was imported", i.firstErr}
	case failed > 0 && done == 0:
		return fmt.Errorf("none of %d files could be imported", i.sum.Files)
	case failed > 0:
		return &problemsError{text: fmt.Sprintf("%d of %s could not be imported", failed, plural(i.sum.Files, "file", "files"))}
	case i.sum.Problems > 0:
		return &problemsError{text: plural(int(i.sum.Problems), "record", "records") + " could not be imported"}
	}
	return nil
}

// files imports all that the paths lead to. The error is one that ends the whole.
func (i *importing) files(ctx context.Context, s *ctxdir.Store, paths []string) error {
	for _, path := range paths {
		for file, err := range importer.Files(path) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			i.sum.Files++
			if err == nil {
				err = i.file(ctx, s, file)
			} else {
				err = i.failed(file, err)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *importing) file(ctx context.Context, s *ctxdir.Store, path string) error {
	i.progress.file(path)
	failed := false
	options := importer.Options{
		Format: i.format, Progress: i.progress.bytes,
		Problem: func(p importer.Problem) {
			i.progress.clear()
			i.a.warn(errorRecord{Path: p.Path, Line: p.Line, Error: p.Reason})
		},
	}
	for r, err := range importer.Import(ctx, s.Importer(), path, options) {
		i.sum.Problems += r.Problems
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var perr error
		if r.Context != uuid.Nil {
			perr = i.imported(r)
		}
		if perr == nil && err != nil {
			if failed {
				i.sum.Failed-- // counted once per file
			}
			failed = true
			perr = i.failed(path, err)
		}
		if perr != nil {
			return perr
		}
		if err != nil && fatal(err) {
			return err
		}
	}
	return nil
}

// fatal reports whether the next file would fail for the same reason.
func fatal(err error) bool {
	return errors.Is(err, ctxdir.ErrReadOnly) || errors.Is(err, ctxdir.ErrNoStore) || errors.Is(err, ctxdir.ErrDurability)
}

func (i *importing) imported(r importer.Result) error {
	i.contexts[r.Context] = true
	i.sum.Messages, i.sum.Added, i.sum.Skipped = i.sum.Messages+r.Messages, i.sum.Added+r.Added, i.sum.Skipped+r.Skipped
	i.progress.clear()
	if i.a.json {
		return i.a.record(importedRecord{
			"imported", r.Path, string(r.Format), r.Context.String(), r.Title, r.Branches, r.Messages, r.Added, r.Skipped, r.Problems,
		})
	}
	what := plural(int(r.Added), "message", "messages")
	if r.Skipped > 0 {
		what += fmt.Sprintf(" (%s there already)", humanCount(r.Skipped))
	}
	if r.Branches > 1 {
		what += fmt.Sprintf(", %d branches", r.Branches)
	}
	return i.a.printFitting(fmt.Sprintf("%s  %s  %s  %s", r.Context, what, shorten(oneLine(r.Title), 60), oneLine(r.Path)))
}

// failed tells of a file that could not be imported, or not all of it.
func (i *importing) failed(path string, err error) error {
	i.sum.Failed++
	if i.firstErr == nil {
		i.firstErr = err
	}
	i.progress.clear()
	reason := reasonOf(err, path)
	if i.a.json {
		return i.a.record(failedRecord{"failed", path, reason})
	}
	i.a.warn(errorRecord{Path: path, Error: reason, Hint: hint(err)})
	return nil
}

// reasonOf is an error about a file without the file.
func reasonOf(err error, path string) string {
	var of *fs.PathError
	if errors.As(err, &of) && of.Path == path {
		return oneLine(of.Err.Error())
	}
	return oneLine(strings.TrimPrefix(err.Error(), path+": "))
}

func (i *importing) printSummary() error {
	if i.a.json {
		return i.a.record(i.sum)
	}
	s := i.sum
	text := fmt.Sprintf(
		"%s from %s: %s",
		plural(s.Contexts, "context", "contexts"),
		plural(s.Files, "file", "files"),
		plural(int(s.Added), "new message", "new messages"),
	)
	if s.Skipped > 0 {
		text += fmt.Sprintf(", %s there already", humanCount(s.Skipped))
	}
	if s.Failed > 0 {
		text += ", " + plural(s.Failed, "file failed", "files failed")
	}
	return i.a.printf("%s\n", text)
}
