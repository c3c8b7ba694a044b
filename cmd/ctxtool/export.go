package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// exporter writes a branch in one format. A message it cannot write gives an error that wraps errLeftOut.
type exporter interface {
	begin(c *ctxdir.Metadata, branch string) error
	message(ctx context.Context, m *said) error
	end() error
	// leftOut is how many messages the format has no place for.
	leftOut() int
	// forPeople says that binary payloads have no place in the format.
	forPeople() bool
}

var exporters = map[string]func(w io.Writer) exporter{
	"jsonl":    func(w io.Writer) exporter { return &jsonlExport{w: w} },
	"openai":   func(w io.Writer) exporter { return &openaiExport{w: w} },
	"markdown": func(w io.Writer) exporter { return &markdownExport{w: w} },
	"html":     func(w io.Writer) exporter { return &htmlExport{w: w} },
}

func (a *app) exportCmd() *cobra.Command {
	var branch, format, path string
	cmd := &cobra.Command{
		Use:   "export CONTEXT",
		Short: "Write the messages of a branch in another format",
		Long: `Write the messages of a branch: jsonl has each as the framework had it, one a line; openai is a JSON array of chat
messages; markdown and html are for reading.`,
		Example:           "  ctxtool export 7c2f --format markdown\n  ctxtool export 7c2f --branch alt --format html -o walk.html",
		Annotations:       exits("messages are missing or not complete", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			make, ok := exporters[format]
			if !ok {
				return usage(cmd, "--format: %q is none of jsonl, openai, markdown, html", format)
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				b, err := branchOf(c, branch)
				if err != nil {
					return err
				}
				bar := a.newProgress("Exporting")
				if path == "" || path == "-" {
					if a.onTerminal() {
						bar = nil // it would stand among the messages
					}
					return a.export(cmd.Context(), c, b, exporting(make, a.out), bar)
				}
				return writeFile(path, func(w io.Writer) error {
					return a.export(cmd.Context(), c, b, exporting(make, w), bar)
				})
			}, ctxdir.WithReadOnly(), ctxdir.WithMemoryLimit(transformed))
		},
	}
	a.branchFlag(cmd, &branch, "branch", "the `BRANCH`; the active one if not given")
	cmd.Flags().StringVar(&format, "format", "jsonl", "jsonl, openai, markdown or html")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write to `FILE`, which appears when it is complete")
	_ = cmd.RegisterFlagCompletionFunc(
		"format",
		cobra.FixedCompletions([]string{"jsonl", "openai", "markdown", "html"}, cobra.ShellCompDirectiveNoFileComp),
	)
	return cmd
}

// exporting returns an exporter, and tells a terminal what comes.
func exporting(make func(w io.Writer) exporter, w io.Writer) exporter {
	e := make(w)
	if o, ok := w.(*output); ok && !e.forPeople() {
		o.holdsJSON()
	}
	return e
}

func (a *app) export(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, e exporter, bar *progress) error {
	m := c.Metadata()
	for i := range m.Branches {
		if m.Branches[i].Name == b.Name() {
			prompt, err := c.SystemPrompt(ctx, b.Name())
			if err != nil {
				return err
			}
			m.Branches[i].SystemPrompt = prompt
		}
	}
	if err := e.begin(m, b.Name()); err != nil {
		return err
	}
	n, err := b.Len(ctx)
	if err != nil {
		return err
	}
	var lacks lacking
	err = each(ctx, b, 0, math.MaxInt64, func(m *ctxdir.Message) error {
		bar.steps("messages", m.Position, n)
		s, err := say(ctx, m, e.forPeople())
		if err != nil {
			return err
		}
		if err := e.message(ctx, s); err != nil {
			return err
		}
		if lacks.add(s) {
			bar.clear()
			what, why := "not complete", s.missing
			if m.Unavailable != nil {
				what, why = "left out", m.Unavailable
			}
			a.warn(errorRecord{Error: fmt.Sprintf("message %d (%s) is %s: %v", m.Position, m.ID, what, why)})
		} else if isErased(s) {
			bar.clear()
			a.note("message %d (%s) is left out: it was erased", m.Position, m.ID)
		}
		return nil
	})
	bar.clear()
	if err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return err
	}
	if n := e.leftOut(); n > 0 {
		a.note("%s left out that are no chat messages", plural(n, "record", "records"))
	}
	if err := lacks.err(c.ID(), "message is missing or not complete", "messages are missing or not complete"); err != nil {
		return err
	}
	return problemOf(c)
}

// writeFile lets write fill a file that takes the place of path when it is complete. What write says of
// problems does not keep the file from appearing. Something that is no file, such as /dev/stderr, is written to
// as it is.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	if info, serr := os.Stat(path); serr == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		o := newOutput(f)
		if _, ok := displayOf(f); ok {
			o.sanitiser = &sanitiser{}
		}
		return closing(f.Close, closing(o.Close, write(o)))
	}
	// A symbolic link goes on pointing at the file.
	if target, lerr := filepath.EvalSymlinks(path); lerr == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ctxtool-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Unwrap(err))
	}
	problems := buffered(f, write)
	if problems != nil && exitCode(context.Background(), problems) != exitProblems {
		f.Close()
		_ = os.Remove(f.Name())
		return problems
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return problems
}

func buffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 64<<10)
	err := write(w)
	if ferr := w.Flush(); ferr != nil {
		return ferr
	}
	return err
}
