package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// run is the command without its process. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	a, root := newRoot(stdin, stdout, stderr, env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if cerr := a.out.Close(); err == nil {
		err = cerr
	}
	// Parsing may have failed before it reached --json.
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	a.json = a.json || slices.Contains(args, "--json")
	return a.finish(ctx, err)
}

// finish prints an error and returns the exit status.
func (a *app) finish(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	switch {
	case code == exitOK:
		return code
	case errors.Is(err, errHelp) && !a.json, code == exitInterrupted && a.silent:
		return code
	case code == exitInterrupted:
		term.EraseLine(a.stderr, a.env) // the ^C of the terminal, or a progress bar
		a.fail(errorRecord{Code: code, Error: "interrupted"})
		return code
	}
	rec := errorRecord{Code: code, Error: err.Error(), Hint: hint(err)}
	if errors.Is(err, ctxdir.ErrNoStore) {
		rec.Hint = a.noStoreHint()
	}
	for _, id := range libraryError(err).Matches {
		rec.Matches = append(rec.Matches, id.String())
	}
	a.fail(rec)
	return code
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer, env func(string) string) (*app, *cobra.Command) {
	a := &app{stdin: stdin, stderr: stderr, env: env, out: term.NewOutput(stdout, env)}
	root := &cobra.Command{
		Use:   "ctxtool",
		Short: "Store the conversations of language-model agents as plain files",
		Long: `Store the conversations of language-model agents as plain files. A store is a folder. Each
context, a conversation with all its branches, is a folder in the store, with a log of every commit
and a file for each message.

ctxtool uses the store that --store names, else $CTXDIR_STORE, else the nearest .ctxdir in the
current folder or above it, else $XDG_DATA_HOME/ctxdir. It does not use a .ctxdir of another user
unless --store or $CTXDIR_STORE names it. CONTEXT is the id of a context, any unique prefix or
suffix of the id, or an external id: KIND/ID, or ID alone if that is unique.`,
		Example: `  id=$(ctxtool new --title "First steps")
  ctxtool append $id "How do I begin?"
  ctxtool show $id
  ctxtool import ~/.claude/projects
  ctxtool ls`,
		Annotations:                exits("completed, but found problems or failed on some items", ofStores...),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       needVerb,
	}
	root.PersistentPreRunE = a.begin
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, "%v", err)
	})
	a.addGlobalFlags(root)
	root.AddCommand(
		a.initCmd(), a.newCmd(), a.appendCmd(), a.lsCmd(), a.showCmd(), a.treeCmd(), a.diffCmd(), a.logCmd(), a.branchCmd(), a.metaCmd(),
		a.duCmd(), a.rmCmd(), a.checkCmd(), a.repairCmd(), a.importCmd(), a.exportCmd(), a.filesCmd(), a.externaliseCmd(), a.refCmd(),
		a.archiveCmd(), a.unarchiveCmd(), a.gcCmd(), a.configCmd(), a.lsFilesCmd(),
		a.trashCmd(), a.eraseCmd(), a.backupCmd(), a.restoreCmd(), a.migrateCmd(), a.rollbackCmd(), a.watchCmd(), a.serveCmd(),
		a.searchCmd(), a.contextCmd(), a.grepCmd(), a.indexCmd(), a.momentCmd(), a.usageCmd(), a.statsCmd(),
		a.syncCmd(), a.mcpCmd(), a.modeCmd(), a.remoteCmd(), a.peerCmd(), a.mvCmd(), a.doctorCmd(), a.manCmd(), a.versionCmd(),
	)
	help := a.helpCmd()
	root.SetHelpCommand(help)
	root.AddCommand(help)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), a.help(cmd)) })
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultCompletionCmd("completion")
	ownCompletion(root)
	group(root)
	return a, root
}

func (a *app) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.storeDir, "store", "", "use the store in `DIR`")
	flags.BoolVar(&a.json, "json", false, "print results as JSON Lines")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print neither notes nor progress")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "print more notes on stderr")
	flags.BoolVar(&a.noProgress, "no-progress", false, "show no progress bar")
	flags.BoolVar(&a.noPager, "no-pager", false, "print long results without a pager")
	flags.BoolVar(&a.noGC, "no-gc", false, "skip the daily garbage collection (like $CTXDIR_NO_GC)")
	flags.DurationVar(&a.lockTimeout, "lock-timeout", 10*time.Second, "wait at most `DURATION` for a lock")
	flags.BoolP("help", "h", false, "show this help")
	root.Flags().Bool("version", false, "print the version")
	_ = root.MarkPersistentFlagDirname("store")
}

// begin checks the global flags before a verb runs.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	switch {
	case a.quiet && a.verbose:
		return usage(cmd, "--quiet and --verbose cannot be used together")
	case a.lockTimeout < 0:
		return usage(cmd, "--lock-timeout must not be negative")
	}
	if a.json {
		a.out.ExpectJSON()
	}
	a.collects = !a.noGC && a.env("CTXDIR_NO_GC") == "" && collectsAfter(cmd)
	return nil
}

// collectsAfter reports whether a verb writes, and so collects garbage when it closes the store. A store opened
// read-only collects nothing.
func collectsAfter(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return slices.Contains(
		[]string{"append", "branch", "externalise", "import", "meta", "moment", "new", "ref", "repair", "rm"}, cmd.Name())
}

// ownCompletion makes cobra's completion commands like the others: wrong arguments are usage errors, and the help is
// complete.
func ownCompletion(root *cobra.Command) {
	files := map[string]string{
		"bash": "~/.local/share/bash-completion/completions/ctxtool", "zsh": "~/.zfunc/_ctxtool",
		"fish": "~/.config/fish/completions/ctxtool.fish", "powershell": "~/ctxtool.ps1",
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Print a shell completion script"
		cmd.Long = "Print a script that lets a shell complete verbs, contexts and branches."
		cmd.Example, cmd.Annotations = "  ctxtool completion bash > "+files["bash"], exits("")
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needVerb
		for _, shell := range cmd.Commands() {
			shell.Short = "Print the script for " + shell.Name()
			shell.Example, shell.Annotations = "  ctxtool completion "+shell.Name()+" > "+files[shell.Name()], exits("")
			shell.Args = between(0, 0)
		}
	}
}
