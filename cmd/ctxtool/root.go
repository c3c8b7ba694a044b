package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// app is one run of the command: where it reads and writes, and the global flags.
type app struct {
	stdin  io.Reader
	out    *output
	stderr io.Writer
	env    func(string) string

	storeDir    string
	json        bool
	quiet       bool
	verbose     bool
	noProgress  bool
	noPager     bool
	silent      bool // an interrupt is no error to be told
	noGC        bool
	dryRun      bool // the verb says what it would do; the store is opened for reading
	collects    bool // the verb is one that garbage is collected after
	lockTimeout time.Duration
}

// run is the command without the process around it. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	a, root := newRoot(stdin, stdout, stderr, env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if cerr := a.out.Close(); err == nil {
		err = cerr
	}
	// Where parsing the flags failed, --json may not have been met yet.
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	a.json = a.json || slices.Contains(args, "--json")
	return a.finish(ctx, err)
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer, env func(string) string) (*app, *cobra.Command) {
	a := &app{stdin: stdin, stderr: stderr, env: env, out: newOutput(stdout)}
	if a.onTerminal() {
		a.out.sanitiser = &sanitiser{colours: bool(a.colours(stdout))}
	}
	root := &cobra.Command{
		Use:   "ctxtool",
		Short: "Keep the conversations of language-model agents as plain files",
		Long: `ctxtool keeps the conversations of language-model agents as plain files: a store is a folder, each context
(one conversation with its branches) a folder in it, each message a file.

The store is the folder that --store names, else $CTXDIR_STORE, else the nearest .ctxdir from here upwards,
else $XDG_DATA_HOME/ctxdir. CONTEXT is an id or any unique beginning or end of one.`,
		Example: `  id=$(ctxtool new --title "First steps")
  ctxtool append $id "How do I begin?"
  ctxtool show $id
  ctxtool import ~/.claude/projects
  ctxtool ls`,
		Annotations:                exits("done, but problems were found or some items failed", ofStores...),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       needVerb,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case a.quiet && a.verbose:
			return usage(cmd, "--quiet and --verbose exclude each other")
		case a.lockTimeout < 0:
			return usage(cmd, "--lock-timeout: wanted a time from 0 on")
		}
		if a.json {
			a.out.holdsJSON()
		}
		a.collects = !a.noGC && a.env("CTXDIR_NO_GC") == "" && collectsAfter(cmd)
		return nil
	}
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, "%v", err)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.storeDir, "store", "", "the store's `DIR`")
	flags.BoolVar(&a.json, "json", false, "print JSON Lines")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print no notes and no progress")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	flags.BoolVar(&a.noProgress, "no-progress", false, "show no progress bar")
	flags.BoolVar(&a.noPager, "no-pager", false, "print long results as they are, without $PAGER")
	flags.BoolVar(&a.noGC, "no-gc", false, "do not collect garbage after the verb; $CTXDIR_NO_GC does the same")
	flags.DurationVar(&a.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another process")

	root.AddCommand(
		a.initCmd(), a.newCmd(), a.appendCmd(), a.lsCmd(), a.showCmd(), a.treeCmd(), a.branchCmd(), a.metaCmd(), a.duCmd(), a.rmCmd(),
		a.checkCmd(), a.repairCmd(), a.importCmd(), a.exportCmd(), a.filesCmd(), a.externaliseCmd(), a.archiveCmd(), a.unarchiveCmd(), a.gcCmd(),
		a.trashCmd(), a.eraseCmd(), a.backupCmd(), a.migrateCmd(), a.rollbackCmd(), a.watchCmd(), a.doctorCmd(), a.manCmd(), a.versionCmd(),
	)
	help := a.helpCmd()
	root.SetHelpCommand(help)
	root.AddCommand(help)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), a.help(cmd)) })
	_ = root.MarkPersistentFlagDirname("store")
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultCompletionCmd("completion")
	ownCompletion(root)
	group(root)
	return a, root
}

// collectsAfter reports whether garbage is collected after a verb: those that write. Where they open the store for reading, nothing
// is collected.
func collectsAfter(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return slices.Contains([]string{"append", "branch", "externalise", "import", "meta", "new", "repair", "rm"}, cmd.Name())
}

// ownCompletion makes the commands that cobra brings along like the others: wrong arguments are usage errors, and the help has everything.
func ownCompletion(root *cobra.Command) {
	files := map[string]string{
		"bash": "~/.local/share/bash-completion/completions/ctxtool", "zsh": "~/.zfunc/_ctxtool",
		"fish": "~/.config/fish/completions/ctxtool.fish", "powershell": "~/ctxtool.ps1",
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Print a script that completes verbs, contexts and branches in a shell"
		cmd.Long = cmd.Short + "."
		cmd.Example, cmd.Annotations = "  ctxtool completion bash > "+files["bash"], exits("")
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needVerb
		for _, shell := range cmd.Commands() {
			shell.Short = "Print the script for " + shell.Name()
			shell.Example, shell.Annotations = "  ctxtool completion "+shell.Name()+" > "+files[shell.Name()], exits("")
			shell.Args = between(0, 0)
		}
	}
}

// needVerb is what a command does that only holds others.
func needVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		_ = cmd.Help()
		return errHelp
	}
	err := usage(cmd, "unknown verb %q", strings.TrimPrefix(cmd.CommandPath()+" ", "ctxtool ")+args[0])
	err.hint = fmt.Sprintf("%q lists the verbs", cmd.CommandPath()+" --help")
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err.hint = "did you mean " + strings.Join(like, " or ") + "?"
	}
	return err
}

// between is the check of a verb's arguments, from least to most of them; most < 0 is any number.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && least == 1:
			return usage(cmd, "an argument is missing")
		case len(args) < least:
			return usage(cmd, "%d arguments are needed, %d given", least, len(args))
		case most >= 0 && len(args) > most:
			return usage(cmd, "unexpected argument %q", args[most])
		}
		return nil
	}
}

// note says something on stderr that is no error, behind the results that belong before it.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_ = a.out.Flush() // an error comes again when the verb ends
		fmt.Fprintln(a.stderr, "ctxtool: "+oneLine(fmt.Sprintf(format, args...)))
	}
}

// detail is a note for who wants to know more.
func (a *app) detail(format string, args ...any) {
	if a.verbose {
		a.note(format, args...)
	}
}

// output is stdout. Its errors are told apart from others: see errOutput.
type output struct {
	w         io.Writer  // as given, to find out whether it is a terminal
	sanitiser *sanitiser // nil where it is none
	buf       *bufio.Writer
	pager     *pager // nil where results go to w directly
}

func newOutput(w io.Writer) *output { return &output{w: w, buf: bufio.NewWriterSize(w, 64<<10)} }

func (o *output) Write(p []byte) (int, error) {
	shown := p
	if o.sanitiser != nil {
		shown = o.sanitiser.shown(p)
	}
	if _, err := o.buf.Write(shown); err != nil {
		return 0, errOutput{err}
	}
	return len(p), nil
}

// holdsJSON says that the results are JSON, whatever is in its texts.
func (o *output) holdsJSON() {
	if o.sanitiser != nil {
		o.sanitiser.json = true
	}
}

// Flush hands on what was written.
func (o *output) Flush() error {
	if err := o.buf.Flush(); err != nil {
		return errOutput{err}
	}
	return nil
}

// Close hands on what was written, and waits for who reads it in a pager.
func (o *output) Close() error {
	err := o.Flush()
	if o.pager != nil {
		if cerr := o.pager.Close(); err == nil && cerr != nil {
			err = errOutput{cerr}
		}
	}
	return err
}
