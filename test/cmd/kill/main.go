// Kill kills writers of a store in the middle of their work, again and again, and audits what they leave: see package
// kill.
//
//	go run ./cmd/kill -rounds 500
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/kill"
	"github.com/ctxdir/ctxdir/test/writer"
)

func main() {
	if writer.Started() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	began := time.Now()
	o := kill.Options{Logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	var in string
	flag.IntVar(&o.Rounds, "rounds", 20, "how often writers are killed")
	flag.IntVar(&o.Life, "life", 6, "rounds of a store")
	flag.IntVar(&o.Writers, "writers", 4, "processes at work at once")
	flag.DurationVar(&o.Longest, "longest", 800*time.Millisecond, "how long a writer works at most")
	flag.Uint64Var(&o.Seed, "seed", uint64(began.UnixNano()), "of what writers do, and when they are killed")
	flag.StringVar(&in, "dir", "", "make stores in this `FOLDER`")
	flag.Parse()
	if o.Dir, err = os.MkdirTemp(in, "kill-"); err != nil {
		return err
	}
	o.Logf("seed %d, in %s", o.Seed, o.Dir)
	tally, err := kill.Run(ctx, o)
	report(tally, o, time.Since(began))
	if len(tally.Troubles) > 0 {
		return errors.Join(err, fmt.Errorf("there are problems: %v; what they were found in is in %s", tally.Troubles, o.Dir))
	}
	if rerr := os.RemoveAll(o.Dir); err == nil {
		err = rerr
	}
	return err
}

func report(tally audit.Tally, o kill.Options, took time.Duration) {
	fmt.Printf("# Writers killed in the middle of their work\n\n%d at a time, up to %s each; a new store every %d rounds; seed %d; %s.\n\n",
		o.Writers, o.Longest, o.Life, o.Seed, took.Round(time.Second))
	fmt.Printf("|%s\n%s\n|%s\n", audit.TallyHead, audit.TallyLine, tally.Row())
}
