package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/replica"
)

// lane is a way to copy a store.
type lane struct {
	name string
	copy func(ctx context.Context, from, to string) error
	took []time.Duration
}

// first measures a first copy, durable, to an empty folder.
func first(ctx context.Context, o options) ([]row, error) {
	s, err := makeStore(ctx, o, "first", 100, o.copied)
	if err != nil {
		return nil, err
	}
	from := s.Info().Path
	if err := s.Close(); err != nil {
		return nil, err
	}
	lanes := []*lane{{name: "sync", copy: syncTo}, {name: "sync over a pipe", copy: pipeTo}, {name: "cp -a", copy: command("cp", "-a")}}
	if _, err := exec.LookPath("rsync"); err == nil {
		lanes = append(lanes, &lane{name: "rsync -a", copy: command("rsync", "-a")})
	}
	if _, err := exec.LookPath("git"); err == nil {
		lanes = append(lanes, &lane{name: "git add, commit, push", copy: gitTo})
	}
	for round := range o.rounds {
		for i := range lanes {
			l := lanes[(i+round)%len(lanes)]
			to := filepath.Join(o.dir, fmt.Sprintf("first-%d-%d", round, i))
			if err := machine.SyncAll(o.dir); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := errors.Join(l.copy(ctx, from, to), machine.SyncAll(o.dir)); err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			l.took = append(l.took, time.Since(began))
		}
	}
	ours := measure.Quantile(lanes[0].took, 0.5)
	var rows []row
	for _, l := range lanes[1:] {
		theirs := measure.Quantile(l.took, 0.5)
		goal, met := "", true
		ratio := float64(ours) / float64(theirs)
		switch l.name {
		case "cp -a":
			goal, met = "≤ 1.3 ×", ratio <= 1.3
		case "git add, commit, push":
			goal, met = "≤ 0.2 ×", ratio <= 0.2
		}
		rows = append(rows, row{
			fmt.Sprintf("first copy of %s messages, beside %s", plain(o.copied), l.name), goal,
			fmt.Sprintf("%.2f × (%v, %v)", ratio, rounded(ours), rounded(theirs)), met,
		})
	}
	return rows, nil
}

func syncTo(ctx context.Context, from, to string) error {
	return between(from, to, func(s, peer *ctxdir.Store) error {
		_, err := replica.Sync(ctx, replica.NewFolder(s), replica.NewFolder(peer), replica.Options{Host: "here"})
		return err
	})
}

func pipeTo(ctx context.Context, from, to string) error {
	return between(from, to, func(s, peer *ctxdir.Store) error {
		_, _, err := syncOver(ctx, s, peer, false, 0)
		return err
	})
}

func between(from, to string, do func(s, peer *ctxdir.Store) error) error {
	s, err := ctxdir.Open(from)
	if err != nil {
		return err
	}
	peer, err := ctxdir.Init(to)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	// The next round begins anew.
	return errors.Join(do(s, peer), s.Close(), peer.Close(), os.RemoveAll(filepath.Join(from, "replicas")))
}

func command(name string, args ...string) func(ctx context.Context, from, to string) error {
	return func(ctx context.Context, from, to string) error {
		return output(exec.CommandContext(ctx, name, append(args, from+"/.", to)...))
	}
}

func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// gitTo commits a store, in a repository beside it, and pushes it to another repository.
func gitTo(ctx context.Context, from, to string) error {
	git := func(args ...string) error { return output(exec.CommandContext(ctx, "git", args...)) }
	mine := []string{"--git-dir", to + ".git", "--work-tree", from, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}
	for _, args := range [][]string{
		{"init", "-q", "--bare", to},
		{"init", "-q", "--bare", to + ".git"},
		append(mine, "add", "-A"),
		append(mine, "commit", "-q", "-m", "All"),
		append(mine, "push", "-q", to, "HEAD:main"),
	} {
		if err := git(args...); err != nil {
			return err
		}
	}
	return nil
}
