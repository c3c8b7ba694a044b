package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/export"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/spf13/cobra"
)

// exporter writes a branch in one format.
type exporter interface {
	begin(c *ctxdir.Metadata, branch string) error
	message(ctx context.Context, m *record.Loaded) error
	end() error
	omitted() omissions // what the format cannot hold
}

// reading says what exports for people show, and what they and JSON Lines replace.
type reading struct {
	all    bool   // bookkeeping of agent tools, too
	tools  string // tool calls and results: toolsNone, toolsShort or toolsFull
	redact bool
	words  []string            // to replace
	found  map[redact.Kind]int // what was replaced
}

// exportFormat makes exporters.
type exportFormat struct {
	forPeople bool
	files     bool // of package export: it reads messages itself, and can replace secrets
	exporter  func(w io.Writer, read reading) (exporter, error)
}

var exportFormats = map[string]exportFormat{
	"jsonl":       {false, true, fileExporter(export.JSONL)},
	"openai":      {false, false, other(newOpenAI)},
	"anthropic":   {false, false, other(newAnthropic)},
	"claude-code": {false, false, other(newClaude)},
	"codex":       {false, false, other(newCodex)},
	"chatgpt":     {false, false, other(newChatGPT)},
	"markdown":    {true, true, fileExporter(export.Markdown)},
	"html":        {true, true, fileExporter(export.HTML)},
}

func other(make func(w io.Writer, read reading) exporter) func(w io.Writer, read reading) (exporter, error) {
	return func(w io.Writer, read reading) (exporter, error) { return make(w, read), nil }
}

var exportFormatNames = []string{"jsonl", "markdown", "html", "openai", "anthropic", "claude-code", "codex", "chatgpt"}

func (a *app) exportCmd() *cobra.Command {
	var branch, name, path string
	read := reading{found: map[redact.Kind]int{}}
	cmd := &cobra.Command{
		Use:   "export CONTEXT",
		Short: "Export the messages of a branch",
		Long: `Export the messages of a branch. jsonl writes each message verbatim, one per line.

--redact replaces what looks like a secret in jsonl, markdown and html, by marks such as [key], and says
how many there were of each kind. Patterns find keys. They cannot know that a sentence is a secret, so
read the file before you share it. In jsonl, files and images then stay references.

markdown and html are for reading: thoughts and tool calls with their results are folded, and
bookkeeping of agent tools is left out without --all. A page in html needs no other file: images are
inside, and nothing in it runs.

openai and anthropic are messages that these APIs take, with each tool call followed by its result.
A note says what a form cannot hold, such as thoughts.
claude-code, codex and chatgpt are what these tools keep, so a conversation can continue there:
"claude --resume" finds ~/.claude/projects/PROJECT/ID.jsonl, and "codex resume"
~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl. Records of the same tool stay verbatim. Without
--branch, an imported session of Claude Code is written with all its branches.`,
		Example:           "  ctxtool export 7c2f --format markdown\n  ctxtool export 7c2f --branch alt --format html -o walk.html",
		Annotations:       exits("some messages are missing or incomplete", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, ok := exportFormats[name]
			if !ok {
				return usage(cmd, "--format: unknown format %q; use one of: %s", name, strings.Join(exportFormatNames, ", "))
			}
			if read.tools != toolsNone && read.tools != toolsShort && read.tools != toolsFull {
				return usage(cmd, "--tools: unknown form %q; use one of: %s, %s, %s", read.tools, toolsNone, toolsShort, toolsFull)
			}
			if read.redact = read.redact || len(read.words) > 0; read.redact && !format.files {
				return usage(cmd, "--redact: %s cannot be redacted; use one of: jsonl, markdown, html", name)
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				b, err := branchOf(c, branch)
				if err != nil {
					return err
				}
				messages := b.Messages(cmd.Context(), 0, ctxdir.End)
				if name == "claude-code" && branch == "" && isImportOf(c.Metadata(), importer.ClaudeCode) {
					messages = sessionMessages(cmd.Context(), c)
				}
				bar := a.newProgress("Exporting")
				if path == "" || path == "-" {
					if a.out.OnTerminal() {
						bar = nil // it would mix with the messages
					}
					return a.export(cmd.Context(), c, b, messages, format, read, a.out, bar)
				}
				return writeFile(path, func(w io.Writer) error {
					return a.export(cmd.Context(), c, b, messages, format, read, w, bar)
				})
			}, ctxdir.WithReadOnly(), ctxdir.WithMemoryLimit(maxParsedBody))
		},
	}
	a.branchFlag(cmd, &branch, "branch", "export `BRANCH` instead of the active one")
	cmd.Flags().StringVar(&name, "format", "jsonl", "write `FORMAT`: "+strings.Join(exportFormatNames, ", "))
	cmd.Flags().BoolVar(&read.all, "all", false, "export bookkeeping to markdown and html, too")
	cmd.Flags().StringVar(&read.tools, "tools", toolsFull, "export tool calls to markdown and html as `FORM`: none, short or full")
	cmd.Flags().BoolVar(&read.redact, "redact", false, "replace keys, tokens, mail addresses, home folders, private hosts and long base64")
	cmd.Flags().StringArrayVar(&read.words, "redact-word", nil, "replace `WORD`, too; can be repeated")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write to `FILE`; it appears when it is complete")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormatNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) export(
	ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, messages iter.Seq2[*ctxdir.Message, error],
	format exportFormat, read reading, w io.Writer, bar *term.Progress,
) error {
	if o, ok := w.(*term.Output); ok && !format.forPeople {
		o.ExpectJSON()
	}
	e, err := format.exporter(w, read)
	if err != nil {
		return err
	}
	m, err := metadataWithPrompt(ctx, c, b)
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
	var lacks incompleteCount
	err = forEach(messages, func(m *ctxdir.Message) error {
		bar.Steps("messages", m.Position, n)
		content := record.Full
		if format.files {
			content = record.None
		}
		s, err := record.Load(ctx, m, content)
		if err != nil {
			return err
		}
		if err := e.message(ctx, s); err != nil {
			return err
		}
		name := fmt.Sprintf("message %d (%s)", m.Position, m.ID)
		switch {
		case isErased(s):
			bar.Clear()
			a.note("left out %s: it was erased", name)
		case lacks.add(s):
			bar.Clear()
			text := fmt.Sprintf("%s is incomplete: %v", name, s.Missing)
			if m.Unavailable != nil {
				text = fmt.Sprintf("left out %s: %v", name, m.Unavailable)
			}
			a.warn(errorRecord{Error: text})
		}
		return nil
	})
	bar.Clear()
	if err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return err
	}
	if read.redact {
		a.note("replaced %s", replaced(read.found))
	}
	if lost := e.omitted().String(); lost != "" {
		a.note("left out %s that the format cannot hold", lost)
	}
	if err := lacks.err(c.ID()); err != nil {
		return err
	}
	return problemOf(c)
}

// forEach calls f for each message.
func forEach(messages iter.Seq2[*ctxdir.Message, error], f func(m *ctxdir.Message) error) error {
	for m, err := range messages {
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// metadataWithPrompt is the metadata of a context, with the system prompt of a branch in its place.
func metadataWithPrompt(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch) (*ctxdir.Metadata, error) {
	m := c.Metadata()
	for i := range m.Branches {
		if m.Branches[i].Name == b.Name() {
			prompt, err := b.SystemPrompt(ctx)
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
		o := term.NewOutput(f, term.NoColours)
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
