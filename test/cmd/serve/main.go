// Serve kills the server of the API in the middle of appends, and repeats them: see package serve.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/ctxdir/ctxdir/test/serve"
)

func main() {
	if serve.Started() {
		return
	}
	rounds := flag.Int("rounds", 200, "number of kills")
	clients := flag.Int("clients", 4, "number of clients")
	longest := flag.Duration("longest", time.Second, "longest life of a server")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "repeat the choices of another run")
	flag.Parse()
	if err := run(*rounds, *clients, *longest, *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run leaves the store of a failed run for a look.
func run(rounds, clients int, longest time.Duration, seed uint64) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "ctxdir-serve-")
	if err != nil {
		return err
	}
	got, err := serve.Run(ctx, serve.Options{
		Dir: dir, Rounds: rounds, Clients: clients, Longest: longest, Seed: seed,
		Logf: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	fmt.Printf("%d kills, %d messages, %d requests repeated, of which %d had been stored before the kill\n",
		got.Kills, got.Messages, got.Repeated, got.Existed)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
