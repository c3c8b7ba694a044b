package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type contextSummary struct {
	Record     string   `json:"record"`
	Tokens     int      `json:"tokens"`
	MaxTokens  int      `json:"max_tokens"`
	Tokenizer  string   `json:"tokenizer"`
	Items      int      `json:"items"`
	Strategies []string `json:"strategies"`
	Behind     int64    `json:"behind"`
}

type contextFlags struct {
	request   assemble.Request
	format    string
	tokenizer string
	pinned    []string
	remote    remoteFlags
}

func (a *app) contextCmd() *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context CONTEXT",
		Short: "Assemble what a model should see, within a budget of tokens",
		Long: `Assemble what a model should see of a context: the system prompt, moments, the newest messages,
the files that messages name, and the passages of older messages that answer a query. The text
never exceeds --max-tokens, in any format. Without a server, the same store and query produce the
same text.

--format text is for reading and for prompts. openai and anthropic write messages for these APIs.
json, or --json, prints one line for each item, with its context, branch, position and id, and
then a summary; it counts the tokens of the text format.

Without --branch, passages come from all branches of CONTEXT; with --all, from the whole store.
With --root, the text includes the lines of code that messages refer to (see "ctxtool help ref"),
as they are now.

With --remote or --extraction, the text also includes a summary of what people and models said in
the best passages that do not fit, with their positions. local selects sentences of these
passages. With --remote, a model writes the summary: URL is a server with the chat API of OpenAI,
and $CTXDIR_REMOTE_KEY has its key. Only these passages leave this machine. Placeholders replace
code, paths, addresses, numbers, names, and all words that are not common English. If the server
fails, hybrid makes the summary locally.`,
		Example: `  ctxtool context 7c2f --query "which port does staging use" --max-tokens 4000
  ctxtool context 7c2f --query "flaky lock test" --all --explain
  ctxtool context 7c2f --query "flaky lock test" --format anthropic > request.json
  ctxtool context 7c2f --query "flaky lock test" --remote https://api.example.com/v1 --model small`,
		Annotations:       exits("", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(cmd); err != nil {
				return err
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, refs []string) error {
				return a.assemble(ctx, s, &f, refs[0])
			})(cmd, args)
		},
	}
	flags, r := cmd.Flags(), &f.request
	flags.StringVar(&r.Query, "query", "", "find passages that answer the query `Q`, in plain language")
	flags.IntVar(&r.MaxTokens, "max-tokens", 0, "limit the text to `N` tokens; by default the setting max_tokens, or 8,000")
	a.branchFlag(cmd, &r.Branch, "branch", "use the newest messages of `BRANCH`, and only its passages")
	flags.BoolVar(&r.All, "all", false, "use passages of every context of the store")
	flags.StringVar(&f.format, "format", string(assemble.Text), "write `FORMAT`: text, json, openai or anthropic")
	flags.StringSliceVar(&f.pinned, "pin", nil, "begin with `MESSAGE`: a position, an id, or a unique prefix of one; can be repeated")
	flags.StringVar(&r.Root, "root", "", "include the lines of code in `DIR` that messages refer to")
	_ = cmd.MarkFlagDirname("root")
	flags.StringVar(&f.tokenizer, "tokenizer", "o200k_base", "count tokens with `NAME`: o200k_base, or estimate from the size")
	f.remote.add(cmd, "summarise passages that do not fit", "summarise")
	flags.BoolVar(&r.Explain, "explain", false, "say why each item is included, and what was left out")
	return cmd
}

// parse checks the flags.
func (f *contextFlags) parse(cmd *cobra.Command) error {
	r := &f.request
	r.Format = assemble.Format(f.format)
	switch {
	case r.MaxTokens < 0 || r.MaxTokens == 0 && cmd.Flags().Changed("max-tokens"):
		return usage(cmd, "--max-tokens must be positive")
	case !slices.Contains(assemble.Formats, r.Format):
		return usage(cmd, "--format must be text, json, openai or anthropic")
	}
	switch f.tokenizer {
	case "o200k_base":
		r.Tokens = assemble.O200k()
	case "estimate":
		r.Tokens = assemble.Estimate()
	default:
		return usage(cmd, "--tokenizer must be o200k_base or estimate")
	}
	if _, err := parseMessageRefs(f.pinned); err != nil {
		return err
	}
	return f.remote.parse(cmd)
}

func (a *app) assemble(ctx context.Context, s *ctxdir.Store, f *contextFlags, ref string) error {
	id, err := resolve(s, ref)
	if err != nil {
		return err
	}
	r := &f.request
	r.Context = id
	if r.Pinned, err = pinned(ctx, s, id, r.Branch, f.pinned); err != nil {
		return err
	}
	if r.Compression, r.Endpoint, err = f.remote.resolve(ctx, s); err != nil {
		return err
	}
	done, err := assemble.Build(ctx, s, *r)
	if err != nil {
		return err
	}
	if done.RemoteErr != nil {
		a.doneHere(done.RemoteErr)
	}
	if a.json || f.request.Format == assemble.JSON {
		return a.assemblyRecords(done)
	}
	if _, err := a.out.Write([]byte(done.Text)); err != nil {
		return err
	}
	if f.request.Explain {
		a.explain(done)
	}
	return nil
}

// pinned returns the ids of the messages to pin.
func pinned(ctx context.Context, s *ctxdir.Store, id uuid.UUID, branch string, args []string) ([]uuid.UUID, error) {
	refs, err := parseMessageRefs(args)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	return idsOf(ctx, s, id, branch, refs)
}

func (a *app) assemblyRecords(done *assemble.Assembly) error {
	for i := range done.Items {
		r := record.OfItem(&done.Items[i])
		r.Record = "item"
		if err := a.record(r); err != nil {
			return err
		}
	}
	for i := range done.LeftOut {
		r := record.OfLeftOut(&done.LeftOut[i])
		r.Record = "left_out"
		if err := a.record(r); err != nil {
			return err
		}
	}
	return a.record(contextSummary{
		"summary", done.Tokens, done.MaxTokens, done.Tokenizer, len(done.Items), record.List(done.Strategies), done.Behind,
	})
}

// explain says on stderr why each item is in the text, and what is not.
func (a *app) explain(done *assemble.Assembly) {
	a.note("%d of %d tokens (%s): %s", done.Tokens, done.MaxTokens, done.Tokenizer, strings.Join(done.Strategies, ", "))
	for i := range done.Items {
		it := &done.Items[i]
		where := it.Branch
		if it.Position >= 0 {
			where = fmt.Sprintf("%s #%d", it.Branch, it.Position)
		}
		if it.Kind == assemble.File {
			where += " " + it.Text
		}
		a.note("%-8s %5d  %s: %s", it.Kind, it.Tokens, plain.OneLine(where), plain.OneLine(it.Why))
	}
	for _, l := range done.LeftOut {
		a.note("left out: %s (%s)", plain.Count(l.Items, string(l.Kind)), l.Reason)
	}
}
