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
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/message"
	"github.com/spf13/cobra"
)

// exporter writes a branch in one format. message returns errUnsupported for a message that the format cannot hold.
type exporter interface {
	begin(c *ctxdir.Metadata, branch string) error
	message(ctx context.Context, m *loadedMessage) error
	end() error
}

var errUnsupported = errors.New("the format cannot hold this message")

// exportFormat makes exporters. A format for people holds no binary payloads.
type exportFormat struct {
	forPeople bool
	verbatim  bool
	exporter  func(w io.Writer) exporter

	all bool // with bookkeeping
}

var exportFormats = map[string]exportFormat{
	"jsonl":    {verbatim: true, exporter: func(w io.Writer) exporter { return &jsonlExport{w: w} }},
	"openai":   {exporter: func(w io.Writer) exporter { return &openaiExport{w: w} }},
	"markdown": {forPeople: true, exporter: func(w io.Writer) exporter { return &markdownExport{w: w} }},
	"html":     {forPeople: true, exporter: func(w io.Writer) exporter { return &htmlExport{w: w} }},
}

var exportFormatNames = []string{"jsonl", "openai", "markdown", "html"}

func (a *app) exportCmd() *cobra.Command {
	var branch, name, path string
	var all bool
	cmd := &cobra.Command{
		Use:   "export CONTEXT",
		Short: "Export the messages of a branch",
		Long: `Export the messages of a branch. jsonl writes each message verbatim, one per line. openai writes a
JSON array of chat messages. markdown and html are for reading. Without --all, they leave out
bookkeeping, as show does; jsonl never does.`,
		Example:           "  ctxtool export 7c2f --format markdown\n  ctxtool export 7c2f --branch alt --format html -o walk.html",
		Annotations:       exits("some messages are missing or incomplete", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, ok := exportFormats[name]
			if !ok {
				return usage(cmd, "--format: unknown format %q; use one of: %s", name, strings.Join(exportFormatNames, ", "))
			}
			format.all = all || format.verbatim
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				b, err := branchOf(c, branch)
				if err != nil {
					return err
				}
				bar := a.newProgress("Exporting")
				if path == "" || path == "-" {
					if a.onTerminal() {
						bar = nil // it would mix with the messages
					}
					return a.export(cmd.Context(), c, b, format, a.out, bar)
				}
				return writeFile(path, func(w io.Writer) error { return a.export(cmd.Context(), c, b, format, w, bar) })
			}, ctxdir.WithReadOnly(), ctxdir.WithMemoryLimit(maxParsedBody))
		},
	}
	a.branchFlag(cmd, &branch, "branch", "export `BRANCH` instead of the active one")
	cmd.Flags().StringVar(&name, "format", "jsonl", "write `FORMAT`: "+strings.Join(exportFormatNames, ", "))
	cmd.Flags().BoolVar(&all, "all", false, "export bookkeeping too")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write to `FILE`; it appears when it is complete")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormatNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) export(
	ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, format exportFormat, w io.Writer, bar *progress,
) error {
	if o, ok := w.(*output); ok && !format.forPeople {
		o.expectJSON()
	}
	e := format.exporter(w)
	m, err := metadataWithPrompt(ctx, c, b.Name())
	if err != nil {
		return err
	}
	if err := e.begin(m, b.Name()); err != nil {
		return err
	}
	n, err := b.Len(ctx)
	if err != nil {
		return err
	}
	unsupported := 0
	var lacks incompleteCount
	err = eachMessage(ctx, b, 0, math.MaxInt64, func(m *ctxdir.Message) error {
		bar.steps("messages", m.Position, n)
		if !format.all && message.IsBookkeeping(m.Role) {
			return nil
		}
		s, err := loadMessage(ctx, m, format.forPeople)
		if err != nil {
			return err
		}
		if err := e.message(ctx, s); errors.Is(err, errUnsupported) {
			unsupported++
		} else if err != nil {
			return err
		}
		name := fmt.Sprintf("message %d (%s)", m.Position, m.ID)
		switch {
		case isErased(s):
			bar.clear()
			a.note("left out %s: it was erased", name)
		case lacks.add(s):
			bar.clear()
			text := fmt.Sprintf("%s is incomplete: %v", name, s.missing)
			if m.Unavailable != nil {
				text = fmt.Sprintf("left out %s: %v", name, m.Unavailable)
			}
			a.warn(errorRecord{Error: text})
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
	if unsupported > 0 {
		a.note("left out %s that the format cannot hold", count(unsupported, "record"))
	}
	if err := lacks.err(c.ID()); err != nil {
		return err
	}
	return problemOf(c)
}

// metadataWithPrompt is the metadata of a context, with the system prompt of a branch in its place.
func metadataWithPrompt(ctx context.Context, c *ctxdir.Context, branch string) (*ctxdir.Metadata, error) {
	m := c.Metadata()
	for i := range m.Branches {
		if m.Branches[i].Name == branch {
			prompt, err := c.SystemPrompt(ctx, branch)
			if err != nil {
				return nil, err
			}
			m.Branches[i].SystemPrompt = prompt
		}
	}
	return m, nil
}

// writeFile replaces a file with what write writes, once that is complete. Problems that write reports do not prevent
// it. A path that is not a regular file, such as /dev/stderr, is written to directly.
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
		return closeAfter(f.Close, closeAfter(o.Close, write(o)))
	}
	// A symbolic link keeps pointing at the file.
	if target, lerr := filepath.EvalSymlinks(path); lerr == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ctxtool-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
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
