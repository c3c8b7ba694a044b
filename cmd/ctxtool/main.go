// Command ctxtool works with stores of agent contexts. Package ctxdir describes stores; "ctxtool --help" lists the
// verbs.
//
// A verb parses its arguments, calls the library and prints. Results go to stdout, everything else to stderr.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	// A closed stdout returns an error instead of ending the process, so that contexts get closed. The signal is not
	// ignored, because a pager would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second Ctrl-C ends the process at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
}
