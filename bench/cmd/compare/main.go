// Compare measures the library and what people would pick instead, side by side, and writes the report in
// docs/benchmarks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/report"
	"github.com/ctxdir/ctxdir/bench/rows"
)

func main() {
	if rows.Worker() {
		return
	}
	// An interrupt ends the run in order: gigabytes of stores are not to stay behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends it at once
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type options struct {
	quick    bool
	rows     string
	rounds   int
	dir      string
	out      string
	scale    int64
	testdata string
	profiles string
	render   bool
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "small sizes and few operations: a smoke test of less than a minute")
	f.StringVar(&o.rows, "rows", "", "run the rows whose name matches this regular expression")
	f.IntVar(&o.rounds, "rounds", 0, "rounds per row (default 5, with -quick 2)")
	f.StringVar(&o.dir, "dir", "", "folder on a real disk in which the stores are made (default: one here, removed at the end)")
	f.StringVar(&o.out, "out", "../docs/benchmarks", "folder to write the report to")
	f.Int64Var(&o.scale, "scale", 1_000_000, "messages in the largest context")
	f.StringVar(&o.testdata, "testdata", "../testdata", "folder with conversations to sample; "+corpus.DataEnv+" names another one")
	f.StringVar(&o.profiles, "profiles", "", "keep the raw processor profiles of rows that miss a goal in this folder")
	f.BoolVar(&o.render, "render", false, "only write report and charts again, from the results.json that is there")
	err := f.Parse(args)
	if o.rounds == 0 {
		o.rounds = 5
		if o.quick {
			o.rounds = 2
		}
	}
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.render {
		r, err := report.Read(o.out)
		if err != nil {
			return err
		}
		return r.Write(o.out)
	}
	match, err := regexp.Compile(o.rows)
	if err != nil {
		return err
	}
	c, err := corpus.Load(o.testdata)
	if err != nil {
		return err
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return err
		}
	}
	if o.dir == "" {
		o.dir = "."
	}
	dir, err := os.MkdirTemp(o.dir, ".stores-")
	if err != nil {
		return err
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
	}()
	// Workers are given the folder's path, and SQLite makes a URI of it.
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if fs := machine.FileSystem(dir); fs == "tmpfs" && !o.quick {
		return fmt.Errorf("the stores would be made on %s, where syncing costs nothing: name another folder with -dir", fs)
	}
	if err := machine.Spread(dir); err != nil {
		fmt.Fprintln(os.Stderr, "compare: the stores share a part of the disk with what was deleted before:", err)
	}
	return measureAll(ctx, o, match, c, dir)
}

func measureAll(ctx context.Context, o options, match *regexp.Regexp, c *corpus.Corpus, dir string) error {
	engines, missing := engine.All()
	start := time.Now()
	e := &rows.Env{
		Dir: dir, Corpus: c, Engines: engines, Rounds: o.rounds, Quick: o.quick, Scale: o.scale, Profiles: o.profiles,
		Logf: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
		},
	}
	r := &report.Report{
		Date: start.UTC().Format("2006-01-02 15:04 MST"), Machine: machine.Describe(dir), Missing: missing,
		Settings: report.Settings{
			Quick:  o.quick,
			Rounds: o.rounds,
			Scale:  o.scale,
			Rows:   o.rows,
			Corpus: report.Corpus{
				From:   c.About,
				Bodies: c.Len(),
				Mean:   c.Mean(),
				Median: c.Quantile(0.5),
				P90:    c.Quantile(0.9),
				P99:    c.Quantile(0.99),
			},
		},
	}
	for _, eng := range engine.Reading() {
		r.Engines = append(r.Engines, report.EngineInfo{
			Name: eng.Name, Version: machine.ModuleVersion(eng.Module), About: eng.About, Largest: eng.Largest,
		})
	}
	var err error
	if r.Settings.FileMade, err = e.Canary(ctx); err != nil {
		return err
	}
	e.Logf("making a file takes %s", r.Settings.FileMade)
	r.Results, err = e.Run(ctx, match)
	r.Builds, r.Took = e.Builds, time.Since(start)
	if err != nil {
		return err
	}
	return r.Write(o.out)
}
