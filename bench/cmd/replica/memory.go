package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

// isChild does the part of a child process: "peer STORE" answers on standard input and output, "sync STORE" calls there. Both
// say in the end how much memory they took.
func isChild() bool {
	if len(os.Args) != 3 || os.Args[1] != "peer" && os.Args[1] != "sync" {
		return false
	}
	err := child(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, machine.PeakRSS())
	return true
}

func child(ctx context.Context, what, dir string) error {
	debug.SetGCPercent(50) // as ctxtool does
	s, err := ctxdir.Init(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	if what == "peer" {
		return replica.ServePipe(ctx, replica.NewFolder(s), replica.Limits{}, os.Stdin, os.Stdout)
	}
	c := replica.NewClient(replica.NewPipe(os.Stdin, os.Stdout), uuid.Nil)
	total, err := replica.Sync(ctx, replica.NewFolder(s), c, replica.Options{Host: "here"})
	if total.Failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d contexts failed", total.Failed))
	}
	return errors.Join(err, os.Stdout.Close())
}

// memory measures the most memory of two processes that bring a store and an empty one together, and then again without what
// they agreed on.
func memory(ctx context.Context, o options) ([]row, error) {
	s, err := makeStore(ctx, o, "most", 1, o.most)
	if err != nil {
		return nil, err
	}
	from, to := s.Info().Path, filepath.Join(o.dir, "most-peer")
	if err := s.Close(); err != nil {
		return nil, err
	}
	var rows []row
	for _, what := range []string{"first copy", "compared anew", "nothing new"} {
		if what == "compared anew" {
			if err := os.RemoveAll(filepath.Join(from, "replicas")); err != nil {
				return nil, err
			}
		}
		here, there, err := processes(ctx, from, to)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			fmt.Sprintf("memory of both sides, a context of %s messages, %s", plain(o.most), what), "≤ 64 MiB",
			fmt.Sprintf("%.1f and %.1f MiB", mib(here), mib(there)), max(here, there) <= 64<<20,
		})
	}
	return rows, nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// processes brings two stores together in two processes, and returns how much memory each took.
func processes(ctx context.Context, from, to string) (here, there int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	sync, peer := exec.CommandContext(ctx, self, "sync", from), exec.CommandContext(ctx, self, "peer", to)
	var said [2]strings.Builder
	sync.Stderr, peer.Stderr = &said[0], &said[1]
	var ends []io.Closer
	for _, x := range [][2]*exec.Cmd{{sync, peer}, {peer, sync}} {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, 0, err
		}
		x[0].Stdout, x[1].Stdin = w, r
		ends = append(ends, r, w)
	}
	err = errors.Join(peer.Start(), sync.Start())
	for _, end := range ends {
		err = errors.Join(err, end.Close())
	}
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(sync.Wait(), peer.Wait()); err != nil {
		return 0, 0, fmt.Errorf("%w: %s%s", err, &said[0], &said[1])
	}
	here, err = strconv.ParseInt(strings.TrimSpace(said[0].String()), 10, 64)
	if err == nil {
		there, err = strconv.ParseInt(strings.TrimSpace(said[1].String()), 10, 64)
	}
	return here, there, err
}
