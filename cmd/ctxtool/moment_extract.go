package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type momentSummary struct {
	Record   string `json:"record"`
	Contexts int    `json:"contexts"`
	Moments  int    `json:"moments"` // new
	Failed   int    `json:"failed"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

func (a *app) momentExtractCmd() *cobra.Command {
	var f momentFlags
	var branch string
	var r remoteFlags
	cmd := &cobra.Command{
		Use:   "extract [CONTEXT…]",
		Short: "Find moments in contexts and keep them",
		Long: `Find moments in contexts, by default in all contexts without a kind, and store the new ones. A
moment is a verbatim sentence of the conversation that states a decision, a convention, the
solution of a problem, or a fact about the work. A short answer is stored with the question or the
option that it answers. extract understands English only. Running it again adds nothing.

With --remote, a model judges the sentences: URL is a server with the chat API of OpenAI, and
$CTXDIR_REMOTE_KEY has its key. Before a sentence leaves this machine, code, paths, addresses,
numbers, names, and all words that are not common English become placeholders. With --extraction
hybrid, local rules judge the sentences if the server fails.`,
		Example:           "  ctxtool moment extract 7c2f --dry-run\n  ctxtool moment extract --type decision --min-relevance 0.5",
		Annotations:       exits("some contexts failed", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			types, err := f.parse(cmd)
			if err != nil {
				return err
			}
			o := moment.Options{Branch: branch, Types: types, Relevance: f.relevance, Limit: f.limit, DryRun: a.dryRun}
			if branch != "" && len(args) != 1 {
				return usage(cmd, "--branch needs one CONTEXT")
			}
			if err := r.parse(cmd); err != nil {
				return err
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, refs []string) error {
				if o.Extractor, err = a.extractor(ctx, s, &r); err != nil {
					return err
				}
				return a.extractMoments(ctx, s, o, refs)
			})(cmd, args)
		},
	}
	f.add(cmd, "keep")
	a.branchFlag(cmd, &branch, "branch", "read `BRANCH` only, instead of all branches")
	r.add(cmd, "judge the sentences", "judge")
	a.dryRunFlag(cmd)
	return cmd
}

// extractor returns what judges sentences.
func (a *app) extractor(ctx context.Context, s *ctxdir.Store, r *remoteFlags) (moment.Extractor, error) {
	mode, endpoint, err := r.resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	remote := moment.Remote{Endpoint: endpoint}
	switch mode {
	case compress.ModeRemote:
		return remote, nil
	case compress.ModeHybrid:
		return moment.Hybrid{Remote: remote, Failed: a.doneHere}, nil
	}
	return moment.Local{}, nil
}

func (a *app) extractMoments(ctx context.Context, s *ctxdir.Store, o moment.Options, refs []string) error {
	ids, err := resolveAll(s, refs)
	if err == nil && len(refs) == 0 {
		ids, err = conversationIDs(ctx, s)
	}
	if err != nil {
		return err
	}
	sum := momentSummary{Record: "summary", Contexts: len(ids), DryRun: a.dryRun}
	sum.Failed, err = eachContext(ctx, a, "extracting", ids, func(id uuid.UUID) (found []moment.Moment, err error) {
		err = withOpen(ctx, s, id, func(c *ctxdir.Context) error {
			found, err = moment.Extract(ctx, c, o)
			return err
		})
		return found, err
	}, func(_ uuid.UUID, found []moment.Moment) error {
		sum.Moments += len(found)
		for i := range found {
			m := &found[i]
			if err := a.momentResult(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.json {
		err = a.record(sum)
	} else {
		a.note("%s", map[bool]string{true: "would keep ", false: "kept "}[a.dryRun]+plain.Count(sum.Moments, "moment"))
	}
	if err != nil {
		return err
	}
	return failures("read", sum.Failed, len(ids))
}

// momentResult prints a moment: a line on a terminal, else a record.
func (a *app) momentResult(m *moment.Moment) error {
	if a.json {
		return a.record(a.momentRecord(m))
	}
	return a.printFitting(fmt.Sprintf("%s  %-8s  %.2f  %s", m.ID.String()[:minShortID], m.Type, m.Relevance, plain.OneLine(m.Content)))
}

// conversationIDs returns the contexts without a kind.
func conversationIDs(ctx context.Context, s *ctxdir.Store) (ids []uuid.UUID, err error) {
	all, err := listAll(ctx, s, ctxdir.ListOptions{})
	for _, sum := range all {
		if sum.Legacy == "" {
			ids = append(ids, sum.ID)
		}
	}
	return ids, err
}

func (a *app) momentAddCmd() *cobra.Command {
	m := moment.Moment{}
	var kind string
	var from, files []string
	cmd := &cobra.Command{
		Use:   "add CONTEXT [TEXT]",
		Short: "Add a moment by hand",
		Long: `Add a moment by hand, and print its id. The text is the argument, or else stdin. Adding the same
text with the same source again changes nothing.`,
		Example: `  ctxtool moment add 7c2f "Tests start a real database." --type pattern --tag tests
  ctxtool moment add 7c2f "We keep SQLite." --type decision --from 0197f3c2-7a1e`,
		Annotations:       exits("", ofStores...),
		Args:              between(1, 2),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := textOrStdin(cmd, args)
			if err != nil {
				return err
			}
			refs, err := parseMessageRefs(from)
			if err != nil {
				return err
			}
			for _, file := range files {
				m.References = append(m.References, moment.Reference{File: filepath.ToSlash(file)})
			}
			m.Type, m.Content = moment.Type(kind), strings.TrimSpace(text)
			return a.onContext(func(ctx context.Context, c *ctxdir.Context, _ []string) error {
				for i := range refs {
					id, err := refs[i].idOf(ctx, c, c.Active())
					if err != nil {
						return err
					}
					m.From = append(m.From, id)
				}
				return a.addMoment(ctx, c, m)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "type", string(moment.Context), "give it the type `TYPE`: "+strings.Join(momentTypes(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(momentTypes(), cobra.ShellCompDirectiveNoFileComp))
	flags.StringSliceVar(&m.Tags, "tag", nil, "give it the tag `TAG`; can be repeated")
	flags.Float64Var(&m.Relevance, "relevance", moment.DefaultRelevance, "give it the relevance `R`, from 0 to 1")
	flags.StringArrayVar(&from, "from", nil, "name a source `MESSAGE`: a position, an id, or a unique prefix of one; can be repeated")
	flags.StringArrayVar(&files, "file", nil, "refer to `FILE`, a relative path; can be repeated")
	flags.StringVar(&m.Background, "background", "", "add `TEXT` as background: what the moment refers to")
	return cmd
}

// maxMomentText bounds a moment on stdin, in bytes.
const maxMomentText = 64 << 10

func textOrStdin(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 1 {
		return args[1], nil
	}
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxMomentText+1))
	return string(b), err
}

func (a *app) addMoment(ctx context.Context, c *ctxdir.Context, m moment.Moment) error {
	added, err := moment.Add(ctx, c, m)
	if errors.Is(err, ctxdir.ErrInvalid) {
		return badArgument("", "%v", cause(err))
	}
	if err != nil {
		return err
	}
	if len(added) == 0 {
		a.note("this moment was added before")
		return nil
	}
	return a.momentResult(&added[0])
}
