package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

func (a *app) importCmd() *cobra.Command {
	var format, project string
	var yes, follow bool
	names := make([]string, 0, len(importer.Formats()))
	for _, f := range importer.Formats() {
		names = append(names, string(f))
	}
	cmd := &cobra.Command{
		Use:   "import [PATH…]",
		Short: "Import the histories of other tools",
		Long: `Import the histories of other tools: files, and in folders all files whose names end in .jsonl,
.json, .traj, .zst or .db. Each conversation becomes a context, and each record a message, stored
verbatim. Importing again adds only what is new; of an export, later values replace earlier ones.
A file whose size, time and end have not changed is not read again. Without PATH, import looks
where the tools keep their histories, says what it found, and asks. --follow keeps importing what
the tools write, until Ctrl-C.

The content decides the format. These are known:

  claude-code     sessions of Claude Code, ~/.claude/projects
  codex           rollouts of Codex CLI, ~/.codex/sessions, also compressed
  opencode        storage folders, databases and exports of opencode
  gemini          sessions of Gemini CLI, ~/.gemini/tmp
  copilot         events of GitHub Copilot CLI, ~/.copilot/session-state
  pi              sessions of the pi coding agent, ~/.pi/agent/sessions
  openhands       events of OpenHands: an array, or a folder of files
  swe-agent       trajectories of SWE-agent
  mini-swe-agent  trajectories of mini-swe-agent
  chatgpt         exports of ChatGPT
  librechat       exports of LibreChat
  oasst           message trees of OpenAssistant
  openai          messages of the OpenAI chat API
  jsonl           any other JSON objects, one per line`,
		Example: `  ctxtool import ~/.claude/projects ~/.codex/sessions
  ctxtool import --format chatgpt conversations.json
  ctxtool import --project . ~/.claude/projects`,
		Annotations: exits("failed to import some files or records", ofNewStore...),
		Args:        between(0, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if !slices.Contains(names, format) {
				return usage(cmd, "--format: unknown format %q; use one of: %s", format, strings.Join(names, ", "))
			}
			if len(paths) == 0 {
				var err error
				if paths, err = a.choosePlaces(cmd, yes); err != nil {
					return err
				}
			}
			target, err := a.openTarget()
			if err != nil {
				return err
			}
			i := newImportRun(a, target, importer.Format(format))
			if i.into.project, err = projectOf(cmd.Context(), target.store, project); err != nil {
				return err
			}
			i.progress = a.newProgress("Importing")
			if follow {
				i.live = newLiveImport()
			}
			return target.close(cmd.Context(), i.run(cmd.Context(), paths))
		},
	}
	cmd.Flags().StringVar(&format, "format", "auto", "read `FORMAT`: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(&project, "project", "", "import only conversations of the project in the folder `PROJECT`")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "without PATH, import all that is found")
	cmd.Flags().BoolVar(&follow, "follow", false, "keep importing what the tools write")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (i *importRun) run(ctx context.Context, paths []string) error {
	i.paths = paths
	files := i.files
	if i.live != nil {
		files = i.follow
	}
	i.short = newGrowingIDs(i.target.store)
	stopped := files(ctx, paths)
	i.target.save()
	i.progress.Clear()
	if stopped != nil && ctx.Err() == nil {
		return stopped
	}
	i.sum.Record, i.sum.Contexts = "summary", len(i.contexts)
	if err := i.printSummary(); err != nil {
		return err
	}
	switch failed, done := i.sum.Failed, len(i.contexts)+i.sum.Same; {
	case stopped != nil:
		return stopped
	case failed > 0 && done == 0 && i.sum.Files == 1:
		if i.a.json {
			return i.firstErr
		}
		return &verbError{exitCode(ctx, i.firstErr), "imported nothing", ""}
	case failed > 0 && done == 0:
		return fmt.Errorf("failed to import any of %s", plain.Count(i.sum.Files, "file"))
	case failed > 0:
		return problems("", "failed to import %d of %s", failed, plain.Count(i.sum.Files, "file"))
	case i.sum.Problems > 0:
		return problems("", "failed to import %s", plain.Count(i.sum.Problems, "record"))
	}
	return nil
}

// follow imports every file under the paths, and then those that change, until the end of ctx.
func (i *importRun) follow(ctx context.Context, paths []string) (err error) {
	f := importer.Follow(paths, func(string) { i.sum.Passed++ })
	defer func() { err = closeAfter(f.Close, err) }()
	i.live.follower = f
	i.a.silent = true // it ends with an interrupt
	for ; ; i.live.again = true {
		i.sum.Passed = 0
		for path, err := range f.Histories() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := i.found(ctx, path, err); err != nil {
				return err
			}
		}
		i.target.save()
		if err := i.ready(f); err != nil {
			return err
		}
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
}

// ready prints what was imported, and at first that import follows now.
func (i *importRun) ready(f *importer.Follower) error {
	i.progress.Clear()
	if polling := f.Polling(); !i.live.again {
		i.live.first()
		i.progress = nil
		if i.a.json {
			if err := i.a.record(readyRecord{Record: "ready", Polling: record.Problem(polling)}); err != nil {
				return err
			}
		}
		if polling != nil {
			i.a.note("polling for changes, since notifications are not available: %v", polling)
		}
		i.a.note("following; press Ctrl-C to stop")
	}
	return i.a.out.Flush()
}
