// Soak has processes at work on one store for a long time, and looks whether what they hold stays the same: see package
// soak.
//
//	go run ./cmd/soak -for 30m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir/test/soak"
)

func main() {
	if soak.Started() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	var o soak.Options
	var in string
	flag.DurationVar(&o.For, "for", 30*time.Minute, "how long")
	flag.IntVar(&o.Writers, "writers", 3, "processes that write to the store; one more writes to its copy")
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "of what writers do")
	flag.StringVar(&in, "dir", "", "make the store in this `FOLDER`")
	flag.Parse()
	if o.Dir, err = os.MkdirTemp(in, "soak-"); err != nil {
		return err
	}
	res, err := soak.Run(ctx, o)
	report(res, o)
	if problems := res.Problems(); err != nil || len(problems) > 0 {
		return errors.Join(err, fmt.Errorf("%s; everything is in %s", strings.Join(problems, "; "), o.Dir))
	}
	return os.RemoveAll(o.Dir)
}

func report(res soak.Result, o soak.Options) {
	fmt.Printf("# Processes at work for %s\n\n%d write, and one writes to a copy of the store; seed %d. Beside them:\n\n",
		o.For, o.Writers, o.Seed)
	for _, r := range soak.Roles {
		fmt.Printf("- the %s %s\n", r.Name, r.Does)
	}
	fmt.Print("\nLower quartiles of the second quarter of the time and of the last one:\n\n| process |")
	line := "\n| --- |"
	for _, m := range soak.Measures {
		fmt.Printf(" %s |", strings.TrimSpace(m.Name+" "+m.Unit))
		line += " --- |"
	}
	fmt.Println(line)
	for i := range res.Processes {
		p := &res.Processes[i]
		if len(p.Samples) == 0 {
			continue
		}
		fmt.Printf("| %s |", p.Name)
		for _, m := range soak.Measures {
			early, late, _ := p.Trend(m)
			fmt.Printf(" %.0f, %.0f |", early, late)
		}
		fmt.Println()
	}
	fmt.Printf("\nAt the end: %s\n", res.Outcome)
}
