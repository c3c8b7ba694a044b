// Command ctxtool works with stores of agent contexts: see package ctxdir for what they are, and
// "ctxtool --help" for the verbs.
//
// The verbs parse, call the library and print. Results go to stdout, everything else to stderr.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	// A reader that goes away shall give an error instead of ending the process: contexts are to be closed. Ignoring the
	// signal would do too, but a pager would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second Ctrl-C ends the process at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
}
