// Command ctxserver serves the conversations of many users. "ctxserver --help" lists its verbs; docs/SERVER.md begins with
// nothing and ends with two users.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends the process at once
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv)
}
