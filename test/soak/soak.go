// Package soak has processes at work on one store for a long time, and looks whether what they hold stays the same.
//
// Several processes do what writers do (package writer), one of them in a copy of the store. Beside them, one process
// has each of the roles: they read, follow, search, sync with the copy, and serve. Each process puts down, every so
// often, how many descriptors and goroutines it has and how much memory is in use. At the end the writers are killed,
// store, copy and search index are compared, and the store is audited.
package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// Options say what is done.
type Options struct {
	Dir     string // a folder, for everything
	For     time.Duration
	Writers int // of the store; one more is in the copy
	Seed    uint64
}

// Process is what became of a process.
type Process struct {
	Name    string
	Samples []Sample
	Failed  string // why it ended by itself, or what it said
}

// Result is what a soak showed.
type Result struct {
	Processes []Process
	Differ    []string // where the store differs from its copy or from its search index, in the end
	Outcome   audit.Outcome
}

// Run soaks.
func Run(ctx context.Context, o Options) (res Result, err error) {
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	b := bench{Options: o, store: in("store"), scratch: in("scratch"), legacy: in("legacy")}
	for _, dir := range []string{b.scratch, b.legacy} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return res, err
		}
	}
	shared, err := writer.Found(b.store, 2)
	if err != nil {
		return res, err
	}
	before, err := audit.Look(ctx, b.store)
	if err != nil {
		return res, err
	}
	sharedThere, err := writer.Found(copyOf(b.store), 1)
	if err != nil {
		return res, err
	}
	defer b.kill()
	if err := b.start(shared, sharedThere); err != nil {
		return res, err
	}
	if err := b.wait(ctx); err != nil {
		return res, err
	}
	b.end(&res)
	for _, compare := range []func(context.Context, string) ([]string, error){agree, indexed} {
		differ, err := compare(ctx, b.store)
		if err != nil {
			return res, err
		}
		res.Differ = append(res.Differ, differ...)
	}
	shared = append(shared, sharedThere...)
	res.Outcome, err = audit.Audit(ctx, b.store, audit.Round{Before: before, Shared: shared, Accounts: b.crew.Accounts()})
	return res, err
}

// bench is where the processes are at work.
type bench struct {
	Options
	store, scratch, legacy string
	crew                   writer.Crew
	others                 []*process
}

// start starts the writers, which share contexts, and the process of each role.
func (b *bench) start(shared, sharedThere []uuid.UUID) error {
	for _, r := range Roles {
		p, err := start(r, b.store, b.scratch)
		if err != nil {
			return err
		}
		b.others = append(b.others, p)
	}
	for i := range b.Writers {
		j := writer.Job{Name: fmt.Sprintf("w%d", i+1), Seed: b.Seed + uint64(i), Store: b.store, Shared: shared}
		if err := b.startWriter(j); err != nil {
			return err
		}
	}
	return b.startWriter(writer.Job{Name: "away", Seed: b.Seed + uint64(b.Writers), Store: copyOf(b.store), Shared: sharedThere})
}

func (b *bench) startWriter(j writer.Job) error {
	j.Scratch, j.Legacy, j.Account = b.scratch, b.legacy, filepath.Join(b.scratch, j.Name+".account")
	if err := os.Setenv(sampleEnv, samplesOf(b.scratch, j.Name)); err != nil {
		return err
	}
	p, err := writer.Start(j)
	if err == nil {
		b.crew = append(b.crew, p)
	}
	return err
}

// wait waits until the time is over, or a process ends by itself. Why it did is part of the result.
func (b *bench) wait(ctx context.Context) error {
	over := time.After(b.For)
	ended := make(chan struct{}, len(b.crew)+len(b.others))
	for _, p := range b.crew {
		go func() {
			<-p.Ended()
			ended <- struct{}{}
		}()
	}
	for _, p := range b.others {
		go func() {
			<-p.ended
			ended <- struct{}{}
		}()
	}
	select {
	case <-over:
	case <-ended:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// end kills the writers, lets the others end, and adds all to the result. The account of a writer says why it ended by
// itself.
func (b *bench) end(res *Result) {
	for _, p := range b.crew {
		failed := ""
		select {
		case <-p.Ended():
			failed = "see the audit"
		default:
		}
		p.Kill()
		res.add(p.Job.Name, b.scratch, failed)
	}
	for _, p := range b.others {
		res.add(p.name, b.scratch, p.end())
	}
}

// kill kills what is left.
func (b *bench) kill() {
	b.crew.Kill()
	for _, p := range b.others {
		p.kill()
	}
}

func (r *Result) add(name, scratch, failed string) {
	samples, err := readSamples(samplesOf(scratch, name))
	if err != nil && failed == "" {
		failed = err.Error()
	}
	r.Processes = append(r.Processes, Process{name, samples, failed})
}
