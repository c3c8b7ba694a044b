package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type newRecord struct {
	Record string `json:"record"`
	ID     string `json:"id"`
}

type newFlags struct {
	id, parent, title, model, mode, prompt string
	config                                 []string
	labels                                 labelFlags
	kind, external                         string
}

func (a *app) newCmd() *cobra.Command {
	var f newFlags
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Create a context and print its id",
		Long: `Create a context with the branch main, and print its id.

--config KEY=VALUE: VALUE is JSON, or plain text if it is not valid JSON.`,
		Example: `  ctxtool new --title "First steps"
  ctxtool new --model small-1 --config agent=walker --system-prompt prompt.md`,
		Annotations: exits("", ofNewStore...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.newContext(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "give the context this `UUID`")
	flags.StringVar(&f.parent, "parent", "", "record `CONTEXT` as its parent")
	_ = cmd.RegisterFlagCompletionFunc("parent", a.completeContexts(-1))
	flags.StringVar(&f.title, "title", "", "set the title to `TITLE`")
	flags.StringVar(&f.model, "model", "", "set config.model_id to `MODEL`")
	flags.StringVar(&f.mode, "mode", "", "set config.mode to `MODE`")
	flags.StringVar(&f.prompt, "system-prompt", "", "read the system prompt from `FILE`, or from stdin for -")
	flags.StringArrayVar(&f.config, "config", nil, "set the config member `KEY=VALUE`; can be repeated")
	flags.StringVar(&f.kind, "kind", "", "give the context the kind `KIND`, which lists leave out")
	flags.StringVar(&f.external, "external-id", "", "derive the id from the kind and from `ID`, the id in another system")
	f.labels.add(cmd, "set the label `KEY=VALUE`; can be repeated")
	return cmd
}

func (a *app) newContext(cmd *cobra.Command, f *newFlags) error {
	m := ctxdir.Metadata{Title: f.title, Kind: f.kind, ExternalID: f.external}
	if !utf8.ValidString(f.title) {
		return usage(cmd, "--title is not valid UTF-8")
	}
	var err error
	if m.Labels, err = f.labels.parse(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("id") {
		if m.ID, err = parseID(cmd, "--id", f.id); err != nil {
			return err
		}
	}
	for _, s := range []struct{ key, value string }{{"model_id", f.model}, {"mode", f.mode}} {
		if s.value != "" {
			given := setting{value: textOf(s.value)}
			if err := given.into(&m.Config, []string{s.key}); err != nil {
				return err
			}
		}
	}
	for _, text := range f.config {
		s, err := parseSetting(cmd, "--config", text)
		if err != nil {
			return err
		}
		if err := s.into(&m.Config, s.path); err != nil {
			return usage(cmd, "--config %s: %v", text, err)
		}
	}
	var prompt []byte
	if f.prompt != "" {
		if prompt, err = a.readPrompt(f.prompt); err != nil {
			return err
		}
	}
	open := a.openOrInit
	if f.parent != "" { // a store to create has no parent
		open = func() (*ctxdir.Store, error) { return a.open() }
	}
	s, err := open()
	if err != nil {
		return err
	}
	return a.closeStore(cmd.Context(), s, a.create(cmd.Context(), s, m, f.parent, prompt))
}

// maxPrompt bounds a system prompt, in bytes.
const maxPrompt = 64 << 20

// readPrompt reads a system prompt verbatim.
func (a *app) readPrompt(path string) (text []byte, err error) {
	from := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	if text, err = io.ReadAll(io.LimitReader(from, maxPrompt+1)); err != nil {
		return nil, err
	}
	if len(text) > maxPrompt {
		return nil, fmt.Errorf("system prompt %s: %w: it exceeds the limit of %d bytes", path, ctxdir.ErrTooLarge, maxPrompt)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("system prompt %s: not valid UTF-8", path)
	}
	return text, nil
}

func (a *app) create(ctx context.Context, s *ctxdir.Store, m ctxdir.Metadata, parent string, prompt []byte) error {
	if parent != "" {
		id, err := resolve(s, parent)
		if err != nil {
			return err
		}
		m.ParentID = id
	}
	c, err := s.Create(ctx, m)
	if err != nil {
		return err
	}
	if len(prompt) > 0 {
		err = c.Update(ctx, func(m *ctxdir.Metadata) error {
			m.Branches[0].SystemPrompt = textOf(string(prompt))
			return nil
		})
	}
	if err == nil {
		err = a.result(newRecord{"context", c.ID().String()}, "%s", c.ID())
	}
	return closeAfter(c.Close, err)
}
