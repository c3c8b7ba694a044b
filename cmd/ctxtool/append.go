package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type appendedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Branch   string `json:"branch"`
	ID       string `json:"id"`
	Position int64  `json:"position"`
	Existed  bool   `json:"existed,omitempty"` // it was there already, with equal content, or lost
}

type appendFlags struct {
	branch, role, id string
	expect           int64
	jsonl, envelope  bool
	maxMessage       int64
	attach           []string
}

func (a *app) appendCmd() *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append CONTEXT [TEXT]",
		Short: "Append a message, or with --jsonl one per line of stdin",
		Long: `Append one message with the text of the argument or of stdin, and print its id.

With --jsonl each line of stdin is a message as the framework has it, a JSON object that is kept verbatim; with
--envelope too it is an object with "message" and, if known, "id", "created_at", "role" and "type". Ids are
printed as soon as their messages are durable. A line that cannot be stored is told, and the rest goes on.

A message whose --id is there already with equal content is not stored again.`,
		Example: `  ctxtool append 7c2f "What does the parser do?"
  agent --stream-json | ctxtool append 7c2f --jsonl
  ctxtool append 7c2f "What is wrong here?" --attach screenshot.png`,
		Annotations:       exits("some lines were not stored", ofStores...),
		Args:              between(1, 2),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.appendTo(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	a.branchFlag(cmd, &f.branch, "branch", "the `BRANCH`; the active one if not given")
	flags.StringVar(&f.role, "role", "user", "the role of the text")
	flags.StringVar(&f.id, "id", "", "the `UUID` it shall have")
	flags.Int64Var(&f.expect, "expect-position", 0, "append only if the (first) message gets position `N`")
	flags.BoolVar(&f.jsonl, "jsonl", false, "each line of stdin is a message")
	flags.BoolVar(&f.envelope, "envelope", false, "with --jsonl: each line is an object that holds a message")
	flags.Int64Var(&f.maxMessage, "max-message", 256<<20, "the largest message, in `BYTES`")
	flags.StringArrayVar(&f.attach, "attach", nil, "attach a `FILE`; given again, one more")
	return cmd
}

func (a *app) appendTo(cmd *cobra.Command, args []string, f *appendFlags) error {
	flags := cmd.Flags()
	switch {
	case f.envelope && !f.jsonl:
		return usage(cmd, "--envelope goes with --jsonl")
	case f.jsonl && len(f.attach) > 0:
		return usage(cmd, "--attach is for one message, not for --jsonl")
	case f.jsonl && len(args) > 1:
		return usage(cmd, "with --jsonl messages come from stdin, not from an argument")
	case f.jsonl && (flags.Changed("id") || flags.Changed("role")):
		return usage(cmd, "--id and --role are for one message; with --jsonl --envelope each line can bear its own")
	case flags.Changed("expect-position") && f.expect < 0:
		return usage(cmd, "--expect-position: a position is not below 0")
	case f.maxMessage <= 0:
		return usage(cmd, "--max-message: wanted a number above 0")
	case f.role == "" || len(f.role) > 64 || !utf8.ValidString(f.role):
		return usage(cmd, "--role: %q is no role", f.role)
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
		at, err := b.Append(cmd.Context(), draft, expecting(f.expect)...)
		if err != nil {
			return err
		}
		return a.acknowledge(c, b, at)
	}, ctxdir.WithMaxMessage(f.maxMessage))
}

func expecting(position int64) []ctxdir.WriteOption {
	if position < 0 {
		return nil
	}
	return []ctxdir.WriteOption{ctxdir.WithPosition(position)}
}

// textDraft makes a message of the argument or of stdin.
func (a *app) textDraft(cmd *cobra.Command, args []string, f *appendFlags) (d ctxdir.Draft, err error) {
	if cmd.Flags().Changed("id") {
		if d.ID, err = parseID(cmd, "--id", f.id); err != nil {
			return d, err
		}
	}
	var text string
	if len(args) > 0 {
		text = args[0]
	} else if _, terminal := displayOf(a.stdin); len(f.attach) > 0 && terminal {
		// Files need no words.
	} else if text, err = a.readText(cmd, f.maxMessage, len(f.attach) > 0); err != nil {
		return d, err
	}
	if !utf8.ValidString(text) {
		return d, fmt.Errorf("the text: %w: not UTF-8", ctxdir.ErrInvalid)
	}
	if len(f.attach) > 0 {
		id := d.ID
		if d, err = attachedDraft(f.role, text, f.attach); err != nil {
			return d, err
		}
		d.ID, d.CreatedAt = id, time.Now().UTC()
		return d, nil
	}
	d.CreatedAt = time.Now().UTC()
	d.Body = encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{f.role, text})
	return d, nil
}

// readText reads all of stdin. The line break at its end is none of the message's.
func (a *app) readText(cmd *cobra.Command, most int64, mayLack bool) (string, error) {
	if _, ok := displayOf(a.stdin); ok {
		a.note("reading the text from the terminal: end it with Ctrl-D")
	}
	var b []byte
	err := interruptible(cmd.Context(), func() (err error) {
		b, err = io.ReadAll(io.LimitReader(a.stdin, most+1))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading stdin: %w", err)
	}
	if int64(len(b)) > most {
		return "", fmt.Errorf("stdin: %w: more than %d bytes", ctxdir.ErrTooLarge, most)
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	b = bytes.TrimSuffix(b, []byte("\r"))
	if len(b) == 0 && !mayLack {
		return "", usage(cmd, "there is no text: neither an argument nor anything on stdin")
	}
	return string(b), nil
}

// interruptible returns when f does, or when ctx ends: reading from a terminal cannot be stopped otherwise.
func interruptible(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acknowledge prints where a message is, at once: somebody may wait for it.
func (a *app) acknowledge(c *ctxdir.Context, b *ctxdir.Branch, at ctxdir.AppendResult) error {
	if err := a.printAppended(c.ID(), b, at); err != nil {
		return err
	}
	return a.out.Flush()
}

func (a *app) printAppended(id uuid.UUID, b *ctxdir.Branch, at ctxdir.AppendResult) error {
	if a.json {
		return a.record(appendedRecord{"appended", id.String(), b.Name(), at.ID.String(), at.Position, at.Existed})
	}
	return a.printf("%s\n", at.ID)
}

// errUnheard: what was stored can no longer be told.
var errUnheard = errors.New("stdout was closed: the rest of the input is not stored")
