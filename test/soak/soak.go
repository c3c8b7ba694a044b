// Package soak has processes at work on one store for a long time, and looks whether what they hold stays the same.
//
// Three processes do what writers do (package writer); one more follows the store, lists it, reads and checks it,
// beside them, and keeps the contexts open that they share. Each puts down, every so often, how many descriptors and
// goroutines it has and how much memory is in use. At the end they are killed and the store is audited.
package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// readerEnv makes a process the one that reads: the store's folder.
const readerEnv = "CTXDIR_TEST_SOAK_READER"

// Started does the work of a process that a soak started, and reports true, if this process is one. A program that
// soaks calls it first.
func Started() bool {
	every := time.Second
	if path := os.Getenv(sampleEnv); path != "" {
		sampling(path, every, read.Load)
	}
	dir := os.Getenv(readerEnv)
	if dir == "" {
		return writer.Started()
	}
	fmt.Fprintln(os.Stderr, reader(context.Background(), dir))
	os.Exit(1)
	return true
}

// pool is what the reader keeps of messages, in bytes: little, so that it is full soon.
const pool = 4 << 20

// read counts what the reader read.
var read atomic.Int64

// reader follows a store, and looks at everything in it again and again.
func reader(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir, ctxdir.Options{CacheSize: pool})
	if err != nil {
		return err
	}
	w, err := s.Watch(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		go func() {
			if err := stay(ctx, s, id); !passing(err) {
				failed <- fmt.Errorf("staying: %w", err)
			}
		}()
	}
	go func() {
		for e := range w.Events(ctx) {
			if read.Add(1); e.Problem != nil && !passing(e.Problem) {
				failed <- fmt.Errorf("following: %w", e.Problem)
			}
		}
	}()
	go func() {
		for {
			if err := lookAt(ctx, s); err != nil {
				failed <- err
			}
		}
	}()
	return <-failed
}

// passing reports whether an error is about what others remove or erase meanwhile.
func passing(err error) bool {
	return errors.Is(err, ctxdir.ErrNotExist) || errors.Is(err, ctxdir.ErrErased)
}

// lookAt reads a whole store. Contexts, branches and messages may go meanwhile.
func lookAt(ctx context.Context, s *ctxdir.Store) error {
	for sum, err := range s.List(ctx, ctxdir.ListOptions{}) {
		if err != nil {
			return err
		}
		if sum.Problem != nil {
			if passing(sum.Problem) {
				continue
			}
			return fmt.Errorf("listing: %w", sum.Problem)
		}
		if err := readContext(ctx, s, sum); err != nil && !passing(err) {
			return fmt.Errorf("reading: %w", err)
		}
	}
	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true}) {
		if err != nil && !passing(err) {
			return err
		}
		if err == nil && f.Severity == "error" {
			return fmt.Errorf("check: %s of context %s: %s", f.Kind, f.Context, f.Detail)
		}
	}
	return nil
}

// pause is between two looks at a context that stays open.
const pause = 20 * time.Millisecond

// stay keeps a context open and reads the ends of its branches again and again. What is unavailable twice in a row was
// not removed meanwhile.
func stay(ctx context.Context, s *ctxdir.Store, id uuid.UUID) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	var missed map[uuid.UUID]bool
	for range time.Tick(pause) {
		if err := c.Refresh(ctx); err != nil {
			return err
		}
		missing := map[uuid.UUID]bool{}
		for _, info := range c.Metadata().Branches {
			b, err := c.Branch(info.Name)
			if err != nil {
				return err
			}
			last, err := b.Last(ctx, 20)
			if err != nil && !passing(err) {
				return err
			}
			for _, m := range last {
				if read.Add(1); m.Unavailable == nil || errors.Is(m.Unavailable, ctxdir.ErrErased) {
					continue
				}
				if missed[m.ID] {
					return fmt.Errorf("branch %q of context %s, message %s at %d: %w", info.Name, id, m.ID, m.Position, m.Unavailable)
				}
				missing[m.ID] = true
			}
		}
		missed = missing
	}
	return nil
}

func readContext(ctx context.Context, s *ctxdir.Store, sum ctxdir.Summary) error {
	c, err := s.Open(ctx, sum.ID)
	if err != nil {
		return err
	}
	defer c.Close()
	last, err := c.Active().Last(ctx, 50)
	if err != nil {
		return err
	}
	read.Add(int64(len(last)))
	last = slices.DeleteFunc(last, func(m *ctxdir.Message) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) })
	_, err = ctxdir.ResolveAll(ctx, last)
	return err
}

// Options say what is done.
type Options struct {
	Dir     string // a folder, for everything
	For     time.Duration
	Writers int
	Seed    uint64
}

// Process is what became of a process.
type Process struct {
	Name    string
	Samples []Sample
	Failed  string // why it ended by itself
}

// Result is what a soak showed.
type Result struct {
	Processes []Process
	Outcome   audit.Outcome
}

// Run soaks.
func Run(ctx context.Context, o Options) (res Result, err error) {
	store, scratch := filepath.Join(o.Dir, "store"), filepath.Join(o.Dir, "scratch")
	for _, dir := range []string{scratch, filepath.Join(o.Dir, "legacy")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return res, err
		}
	}
	shared, err := writer.Found(store, 2)
	if err != nil {
		return res, err
	}
	before, err := audit.Look(ctx, store)
	if err != nil {
		return res, err
	}
	ended, stop, err := startReader(store, filepath.Join(scratch, "reader.samples"))
	if err != nil {
		return res, err
	}
	defer stop()
	var crew writer.Crew
	defer func() { crew.Kill() }()
	for i := range o.Writers {
		name := fmt.Sprintf("w%d", i+1)
		if err := os.Setenv(sampleEnv, filepath.Join(scratch, name+".samples")); err != nil {
			return res, err
		}
		p, err := writer.Start(writer.Job{
			Name: name, Seed: o.Seed + uint64(i), Store: store, Legacy: filepath.Join(o.Dir, "legacy"), Shared: shared, Scratch: scratch,
			Account: filepath.Join(scratch, name+".account"),
		})
		if err != nil {
			return res, err
		}
		crew = append(crew, p)
	}
	failed := wait(ctx, o.For, crew, ended)
	said := stop()
	crew.Kill()
	for _, p := range crew {
		res.add(p.Job.Name, scratch, "")
	}
	res.add("reader", scratch, said)
	if failed != nil {
		return res, failed
	}
	res.Outcome, err = audit.Audit(ctx, store, audit.Round{Before: before, Shared: shared, Accounts: crew.Accounts()})
	return res, err
}

func (r *Result) add(name, scratch, failed string) {
	samples, err := readSamples(filepath.Join(scratch, name+".samples"))
	if err != nil && failed == "" {
		failed = err.Error()
	}
	r.Processes = append(r.Processes, Process{name, samples, failed})
}

// wait waits until the time is over, or a writer or the reader ends by itself. Why the reader did is part of the
// result.
func wait(ctx context.Context, long time.Duration, crew writer.Crew, reader <-chan struct{}) error {
	over := time.After(long)
	ended := make(chan string, len(crew))
	for _, p := range crew {
		go func() {
			<-p.Ended()
			ended <- p.Job.Name
		}()
	}
	select {
	case <-over:
		return nil
	case <-reader:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case name := <-ended:
		return fmt.Errorf("writer %s ended by itself", name)
	}
}

// startReader starts the process that reads. ended is closed when it ends; stop ends it, and returns what it had said
// if it had ended before.
func startReader(store, samples string) (ended <-chan struct{}, stop func() (said string), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	var out strings.Builder
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), readerEnv+"="+store, sampleEnv+"="+samples), &out
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // out says why
	}()
	return over, func() string {
		_ = cmd.Process.Kill() // fails when it has ended
		<-over
		return out.String()
	}, nil
}
