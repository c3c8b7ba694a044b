package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/spf13/cobra"
)

// app is one run of the command.
type app struct {
	stdout, stderr io.Writer
	config         *config
	json           bool
}

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a fault of the arguments.
type usageError struct{ error }

func wrong(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run is the command without its process. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	a := &app{stdout: stdout, stderr: stderr, config: newConfig(env)}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitOK
	}
	code := exitFailed
	if errors.As(err, &usageError{}) || errors.Is(err, users.ErrInvalid) {
		code = exitUsage
	}
	if a.json {
		_ = json.NewEncoder(stderr).Encode(map[string]any{"record": "error", "code": code, "error": err.Error()})
		return code
	}
	fmt.Fprintf(stderr, "ctxserver: %v\n", err)
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ctxserver",
		Short: "Serve the conversations of many users",
		Long: `Serve the conversations of many users. Each has a store of their own, and sees nothing of the others.

Without a verb, ctxserver serves until it is told to end. It keeps users and stores in the folder --dir, or
encrypted with --key in the PostgreSQL database --db, with large content in the object store --blobs if you want.
Each flag is also an environment variable, such as CTXSERVER_LISTEN for --listen, and a line of the file
--config, such as "listen: 127.0.0.1:7434". The environment wins over flags, and flags over the file.
With _FILE after its name, a variable names a file with the value: so secrets stay out of the environment.`,
		Example: `  ctxserver --dir data user add ada
  ctxserver --dir data user token ada
  ctxserver --dir data`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no verb %q; see ctxserver --help", args[0])
			}
			return nil
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.config.apply(cmd.Root()); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
		Version: version(),
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print results as JSON Lines")
	a.config.flags(root)
	root.AddCommand(a.userCmd(), a.keyCmd(), a.blobsCmd(), a.configCmd())
	return root
}

// print prints a result: as a line of JSON, or as text.
func (a *app) print(record any, format string, args ...any) error {
	if a.json {
		e := json.NewEncoder(a.stdout)
		e.SetEscapeHTML(false)
		return e.Encode(record)
	}
	_, err := fmt.Fprintf(a.stdout, format+"\n", args...)
	return err
}

// version is that of the build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// day is a duration in days, such as 90d, or what [time.ParseDuration] takes.
type day time.Duration

func (d *day) String() string { return time.Duration(*d).String() }
func (d *day) Type() string   { return "duration" }
func (d *day) Set(s string) error {
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); err == nil && n == 1 && s == fmt.Sprintf("%dd", days) && days < 100_000 {
		*d = day(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	x, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("expected a duration such as 90d or 12h")
	}
	*d = day(x)
	return nil
}
