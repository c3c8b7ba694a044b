package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/test/writer"
)

// roleEnv makes a process one beside the writers, by the name of its role; storeEnv is its store.
const (
	roleEnv  = "CTXDIR_TEST_SOAK_ROLE"
	storeEnv = "CTXDIR_TEST_SOAK_STORE"
)

// Role is what a process beside the writers does, until ctx ends.
type Role struct {
	Name, Does string
	do         func(ctx context.Context, store string) error
}

// Roles are the roles. Each has a process.
var Roles = []Role{
	{"reader", "lists, reads and checks, and keeps contexts open", reader},
	{"follower", "follows the store", follower},
	{"searcher", "updates the search index and searches", searcher},
	{"syncer", "syncs the store with the copy", syncer},
	{"server", "serves the store, with a client that lists, reads, searches and follows", server},
}

// did counts what this process did.
var did atomic.Int64

// Started does the work of a process that a soak started, and reports true, if this process is one. A program that
// soaks calls it first.
func Started() bool {
	if path := os.Getenv(sampleEnv); path != "" {
		sampling(path, time.Second, did.Load)
	}
	at := slices.IndexFunc(Roles, func(r Role) bool { return r.Name == os.Getenv(roleEnv) })
	if at < 0 {
		return writer.Started()
	}
	ctx, end := context.WithCancel(context.Background())
	go func() { // until whoever started this closes it, or is gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	if err := Roles[at].do(ctx, os.Getenv(storeEnv)); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// process is one that has a role.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  strings.Builder
	lead  io.Closer
	ended chan struct{} // closed when it has ended
}

func start(r Role, store, scratch string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: r.Name, cmd: exec.Command(self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+r.Name, storeEnv+"="+store, sampleEnv+"="+samplesOf(scratch, r.Name))
	p.cmd.Stderr = &p.said
	if p.lead, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state has it
	}()
	return p, nil
}

func samplesOf(scratch, name string) string { return filepath.Join(scratch, name+".samples") }

// patience is how long a process may take for what it is about to complete: the syncer has the most.
const patience = 5 * time.Minute

// end lets the process end, and returns what went wrong with it: what it said, or that it ended before.
func (p *process) end() (failed string) {
	early := false
	select {
	case <-p.ended:
		early = true
	default:
	}
	_ = p.lead.Close() // it may be gone
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.kill()
		return "it does not end; " + p.said.String()
	}
	if failed = strings.TrimSpace(p.said.String()); failed == "" && (early || !p.cmd.ProcessState.Success()) {
		failed = p.cmd.ProcessState.String()
	}
	return failed
}

// kill does nothing to a process that has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// pause is the least time between the beginnings of two rounds of the same work.
const pause = 20 * time.Millisecond

// again does a piece of work again and again.
func again(ctx context.Context, do func() error) error {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		if err := do(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}
