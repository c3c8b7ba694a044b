package main

import (
	"bytes"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/attach"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

func (a *app) appendCmd() *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append CONTEXT [TEXT]",
		Short: "Append a message, or with --jsonl many from stdin",
		Long: `Append one message and print its id. The text is the argument, or else stdin.

With --jsonl, append one message per line of stdin. Each line is a JSON object, stored verbatim.
With --envelope too, each line is an object that holds the message as "message", and can hold "id",
"created_at", "role", "type" and "references". ctxtool prints each id as soon as its message is
durable. It reports a line that it cannot store, and continues with the next one.

To retry an append, repeat it with the same --id. A message that exists with equal content is not
stored again.`,
		Example: `  ctxtool append 7c2f "What does the parser do?"
  agent --stream-json | ctxtool append 7c2f --jsonl
  ctxtool append 7c2f "What is wrong here?" --attach screenshot.png`,
		Annotations:       exits("failed to store some lines", ofStores...),
		Args:              between(1, 2),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.appendTo(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	a.branchFlag(cmd, &f.branch, "branch", "append to `BRANCH` instead of the active one")
	flags.StringVar(&f.role, "role", "user", "set the `ROLE` of the message")
	flags.StringVar(&f.id, "id", "", "give the message this `UUID`")
	flags.Int64Var(&f.expect, "expect-position", 0, "append only if the first message gets position `N`")
	flags.BoolVar(&f.jsonl, "jsonl", false, "append one message per line of stdin")
	flags.BoolVar(&f.envelope, "envelope", false, "with --jsonl, unpack each message from an envelope")
	flags.Int64Var(&f.maxMessage, "max-message", 256<<20, "limit messages to `BYTES`")
	flags.StringArrayVar(&f.attach, "attach", nil, "attach `FILE`; can be repeated")
	return cmd
}

func (a *app) appendTo(cmd *cobra.Command, args []string, f *appendFlags) error {
	flags := cmd.Flags()
	switch {
	case f.envelope && !f.jsonl:
		return usage(cmd, "--envelope requires --jsonl")
	case f.jsonl && len(f.attach) > 0:
		return usage(cmd, "--attach cannot be used with --jsonl")
	case f.jsonl && len(args) > 1:
		return usage(cmd, "TEXT cannot be used with --jsonl, which reads stdin")
	case f.jsonl && (flags.Changed("id") || flags.Changed("role")):
		return usage(cmd, "--id and --role cannot be used with --jsonl; an --envelope can hold them")
	case flags.Changed("expect-position") && f.expect < 0:
		return usage(cmd, "--expect-position must not be negative")
	case f.maxMessage <= 0:
		return usage(cmd, "--max-message must be positive")
	case f.role == "" || len(f.role) > 64 || !utf8.ValidString(f.role):
		return usage(cmd, "--role must be 1 to 64 bytes of UTF-8")
	}
	var draft ctxdir.Draft
	if !f.jsonl {
		var err error
		if draft, err = a.textDraft(cmd, args[1:], f); err != nil {
			return err
		}
	}
	if !flags.Changed("expect-position") {
		f.expect = -1
	}
	return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
		b, err := branchOf(c, f.branch)
		if err != nil {
			return err
		}
		if f.jsonl {
			return a.appendLines(cmd.Context(), c, b, f)
		}
		at, err := b.Append(cmd.Context(), draft, expect(f.expect))
		if err != nil {
			return err
		}
		if err := a.printAppended(c, b, at); err != nil {
			return err
		}
		return a.out.Flush() // the caller may wait for the id, and closing the context may seal
	}, ctxdir.Options{MaxMessage: f.maxMessage})
}

// textDraft is a message with the text of the argument, or of stdin.
func (a *app) textDraft(cmd *cobra.Command, args []string, f *appendFlags) (d ctxdir.Draft, err error) {
	if cmd.Flags().Changed("id") {
		if d.ID, err = parseID(cmd, "--id", f.id); err != nil {
			return d, err
		}
	}
	var text string
	if len(args) > 0 {
		text = args[0]
	} else if len(f.attach) > 0 && term.Is(a.stdin) {
		// A message of attachments needs no text.
	} else if text, err = a.readText(cmd, f.maxMessage, len(f.attach) > 0); err != nil {
		return d, err
	}
	if !utf8.ValidString(text) {
		return d, fmt.Errorf("text: %w: not valid UTF-8", ctxdir.ErrInvalid)
	}
	if len(f.attach) > 0 {
		id := d.ID
		if d, err = attach.Draft(f.role, text, f.attach); err != nil {
			return d, err
		}
		d.ID, d.CreatedAt = id, time.Now().UTC()
		return d, nil
	}
	d.CreatedAt = time.Now().UTC()
	d.Body = record.Encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{f.role, text})
	return d, nil
}

// readText reads all of stdin, without the line break at its end.
func (a *app) readText(cmd *cobra.Command, limit int64, optional bool) (string, error) {
	if term.Is(a.stdin) {
		a.note("reading the text from the terminal; end it with Ctrl-D")
	}
	var b []byte
	err := interruptible(cmd.Context(), func() (err error) {
		b, err = io.ReadAll(io.LimitReader(a.stdin, limit+1))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cannot read stdin: %w", err)
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("stdin: %w: it exceeds the limit of %d bytes", ctxdir.ErrTooLarge, limit)
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	b = bytes.TrimSuffix(b, []byte("\r"))
	if len(b) == 0 && !optional {
		return "", usage(cmd, "no text: pass TEXT, or write it to stdin")
	}
	return string(b), nil
}
