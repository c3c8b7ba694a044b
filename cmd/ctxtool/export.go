package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/export"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/spf13/cobra"
)

// exportFormats are the names of the formats.
var exportFormats = func() (names []string) {
	for _, f := range export.Formats {
		names = append(names, string(f))
	}
	return names
}()

func (a *app) exportCmd() *cobra.Command {
	var branch, name, path string
	var redacts bool
	var words []string
	var o export.Options
	cmd := &cobra.Command{
		Use:   "export CONTEXT",
		Short: "Export the messages of a branch",
		Long: `Export the messages of a branch. jsonl writes each message verbatim, one per line.

--redact replaces secrets in jsonl, markdown and html with marks such as [key], and counts each
kind. It finds keys by patterns, and cannot know that a sentence is a secret: read the file before
you share it. In jsonl, files and images then stay references.

markdown and html are for reading: thoughts and tool calls with their results are folded, and
bookkeeping of agent tools is left out without --all. A page in html needs no other file: images
are embedded, and it runs no scripts.

openai and anthropic write messages for these APIs, with each tool call followed by its result. A
note says what a format cannot hold, such as thoughts. claude-code, codex and chatgpt write the
files of these tools, so a conversation can continue there: "claude --resume" finds
~/.claude/projects/PROJECT/ID.jsonl, and "codex resume"
~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl. Records of the same tool stay verbatim.
Without --branch, an imported session of Claude Code is written with all its branches.`,
		Example:           "  ctxtool export 7c2f --format markdown\n  ctxtool export 7c2f --branch alt --format html -o walk.html",
		Annotations:       exits("some messages are missing or incomplete", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Format = export.Format(name)
			switch redacts = redacts || len(words) > 0; {
			case !slices.Contains(export.Formats, o.Format):
				return usage(cmd, "--format: unknown format %q; use one of: %s", name, strings.Join(exportFormats, ", "))
			case o.Tools != toolsNone && o.Tools != toolsShort && o.Tools != toolsFull:
				return usage(cmd, "--tools: unknown form %q; use one of: %s, %s, %s", o.Tools, toolsNone, toolsShort, toolsFull)
			case redacts && !o.Format.Redactable():
				return usage(cmd, "--redact: %s cannot be redacted; use one of: jsonl, markdown, html", name)
			case redacts:
				o.Redact = &redact.Options{Kinds: redact.Kinds, Words: words}
			}
			if err := o.Check(); errors.Is(err, redact.ErrOptions) {
				return badArgument("", "--redact-word: want at most %d words of at most %d bytes", redact.MaxWords, redact.MaxWord)
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				set, err := s.Settings()
				if err != nil {
					return err
				}
				o.Here = set.Here
				return a.inContext(cmd.Context(), s, args[0], func(c *ctxdir.Context) error {
					return a.exportTo(cmd.Context(), c, branch, path, o)
				})
			}, ctxdir.Options{ReadOnly: true, MemoryLimit: maxParsedBody})
		},
	}
	a.branchFlag(cmd, &branch, "branch", "export `BRANCH` instead of the active one")
	cmd.Flags().StringVar(&name, "format", "jsonl", "write `FORMAT`: "+strings.Join(exportFormats, ", "))
	cmd.Flags().BoolVar(&o.All, "all", false, "export bookkeeping to markdown and html, too")
	cmd.Flags().StringVar(&o.Tools, "tools", toolsFull, "export tool calls to markdown and html as `FORM`: none, short or full")
	cmd.Flags().BoolVar(&redacts, "redact", false, "replace keys, tokens, mail addresses, home folders, private hosts and long base64")
	cmd.Flags().StringArrayVar(&words, "redact-word", nil, "replace `WORD`, too; can be repeated")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write to `FILE`; it appears when it is complete")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// exportTo writes a branch to a file, or to standard output if path is empty or "-". Without a name, that is the active branch, or
// all branches of a session of Claude Code in the form of this tool.
func (a *app) exportTo(ctx context.Context, c *ctxdir.Context, branch, path string, o export.Options) error {
	b, err := branchOf(c, branch)
	if err != nil {
		return err
	}
	if branch == "" && c.Metadata().Labels["tool"] == string(importer.ClaudeCode) && o.Format == export.ClaudeCode {
		b = nil // all of them
	}
	bar := a.newProgress("Exporting")
	if path == "" || path == "-" {
		if a.out.OnTerminal() {
			bar = nil // it would mix with the messages
		}
		return a.export(ctx, c, b, o, a.out, bar)
	}
	return writeFile(path, func(w io.Writer) error { return a.export(ctx, c, b, o, w, bar) })
}

// export writes a branch, or all of them if b is nil.
func (a *app) export(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, o export.Options, w io.Writer, bar *term.Progress) error {
	if out, ok := w.(*term.Output); ok && !o.Format.ForPeople() {
		out.ExpectJSON()
	}
	active := b
	if b == nil {
		active = c.Active()
	}
	n, err := active.Len(ctx)
	if err != nil {
		return err
	}
	var lacks incompleteCount
	found := map[redact.Kind]int{}
	var lost export.Omissions
	o.Progress = func(m *ctxdir.Message) { bar.Steps("messages", m.Position, n) }
	o.Found = func(_ *ctxdir.Message, _ string, f redact.Finding) { found[f.Kind]++ }
	o.Omitted = func(all export.Omissions) { lost = all }
	o.Missing = func(m *ctxdir.Message, err error) {
		bar.Clear()
		a.noteMissing(m, err, &lacks)
	}
	if b == nil {
		err = export.AllBranches(ctx, w, c, o)
	} else {
		err = export.Branch(ctx, w, c, b, o)
	}
	bar.Clear()
	if err != nil {
		return err
	}
	if o.Redact != nil {
		a.note("replaced %s", replaced(found))
	}
	if text := omitted(lost); text != "" {
		a.note("left out %s that the format cannot hold", text)
	}
	if err := lacks.err(c.ID()); err != nil {
		return err
	}
	return problemOf(c)
}

// noteMissing says that a message is not in a file completely, and counts it unless it was erased.
func (a *app) noteMissing(m *ctxdir.Message, err error, lacks *incompleteCount) {
	l := &record.Loaded{Message: m}
	if m.Unavailable == nil {
		l.Missing = err
	}
	name := fmt.Sprintf("message %d (%s)", m.Position, m.ID)
	switch {
	case isErased(l):
		a.note("left out %s: it was erased", name)
	case lacks.add(l):
		text := fmt.Sprintf("%s is incomplete: %v", name, err)
		if m.Unavailable != nil {
			text = fmt.Sprintf("left out %s: %v", name, err)
		}
		a.warn(errorRecord{Error: text})
	}
}

// omitted names what a form cannot hold, "" if it holds everything.
func omitted(o export.Omissions) string {
	var parts []string
	if o.Prompt {
		parts = append(parts, "the system prompt")
	}
	if o.Messages > 0 {
		parts = append(parts, plain.Count(o.Messages, "message"))
	}
	if o.Thoughts > 0 {
		parts = append(parts, plain.Count(o.Thoughts, "thought"))
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return strings.Join(parts, "")
}

// kindNames are the nouns for what is replaced.
var kindNames = map[redact.Kind]string{
	redact.Key: "key", redact.Token: "token", redact.Mail: "mail address", redact.Path: "home folder", redact.Host: "private host",
	redact.Base64: "long base64 text", redact.Word: "word",
}

// replaced counts what was replaced, by kind.
func replaced(found map[redact.Kind]int) string {
	var parts []string
	for _, k := range redact.Kinds {
		if n := found[k]; n > 0 {
			parts = append(parts, plain.Count(n, kindNames[k]))
		}
	}
	if parts == nil {
		return "nothing: no pattern found a secret"
	}
	return strings.Join(parts, ", ")
}
