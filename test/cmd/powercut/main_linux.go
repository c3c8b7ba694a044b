// Powercut cuts the power of disks on which several processes write to a store, again and again, and audits what is
// left: see package powercut. It takes root, and mkfs of the file systems.
//
//	go run ./cmd/powercut -fs ext4,xfs,btrfs -cuts 100
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

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/powercut"
	"github.com/ctxdir/ctxdir/test/writer"
)

func main() {
	if writer.Started() || disk.Started() {
		return
	}
	os.Exit(powercut.InPrivate(func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "powercut:", err)
			return 1
		}
		return 0
	}))
}

func run(ctx context.Context) (err error) {
	began := time.Now()
	o := powercut.Options{Logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	fs := flag.String("fs", strings.Join(disk.FileSystems(), ","), "file systems")
	in := flag.String("dir", "", "make images in this `FOLDER`")
	flag.IntVar(&o.Cuts, "cuts", 20, "how often the power of each is cut")
	flag.IntVar(&o.Life, "life", 6, "cuts of a file system and its store")
	flag.IntVar(&o.Writers, "writers", 4, "processes at work at once")
	flag.DurationVar(&o.Longest, "longest", 1200*time.Millisecond, "how long they work at most until the cut")
	flag.Uint64Var(&o.Seed, "seed", uint64(began.UnixNano()), "of what writers do, when the power is cut, and what is lost")
	flag.Float64Var(&o.Refuse, "refuse", 0, "the `SHARE` of writes to logs, segments and blobs that the disk refuses, 0 to 1")
	flag.BoolVar(&o.Keep, "keep", false, "copy each image before it is mounted again")
	flag.Parse()
	for name := range strings.SplitSeq(*fs, ",") {
		if why := powercut.Missing(name); why != "" {
			return fmt.Errorf("%s: %s", name, why)
		}
	}
	if o.Dir, err = os.MkdirTemp(*in, "powercut-"); err != nil {
		return err
	}
	o.Logf("seed %d, in %s", o.Seed, o.Dir)
	var tallies []*powercut.Tally
	for name := range strings.SplitSeq(*fs, ",") {
		t, rerr := powercut.Run(ctx, name, o)
		tallies = append(tallies, t...)
		if err = rerr; err != nil {
			break
		}
	}
	report(tallies, o, time.Since(began))
	for _, t := range tallies {
		if len(t.Troubles) > 0 {
			return errors.Join(err, fmt.Errorf("there are problems; what they were found in is in %s", o.Dir))
		}
	}
	return errors.Join(err, os.RemoveAll(o.Dir))
}

func report(tallies []*powercut.Tally, o powercut.Options, took time.Duration) {
	fmt.Printf("# Power cuts\n\n%d writers, up to %s to a cut; a new file system every %d cuts; "+
		"%g %% of the writes to logs, segments and blobs refused; seed %d; %s.\n\n",
		o.Writers, o.Longest, o.Life, 100*o.Refuse, o.Seed, took.Round(time.Second))
	fmt.Printf("*Not flushed* are blocks of 4 KiB in the disk's cache at the cuts, *lost* those of them that the disk lost.\n\n")
	fmt.Printf("| file system | cut | not flushed | lost | refused writes | not mounted |%s\n"+
		"| --- | --- | --- | --- | --- | --- %s\n", audit.TallyHead, audit.TallyLine)
	for _, t := range tallies {
		fmt.Printf("| %s | %s | %d | %d | %d | %d |%s\n", t.FileSystem, t.Way, t.Unflushed, t.LostBlocks, t.Refused, t.Unmounted, t.Row())
	}
}
