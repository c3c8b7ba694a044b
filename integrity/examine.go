package integrity

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// Context is a context to check or repair.
type Context struct {
	Dir      *ctxfolder.Dir
	Log      *index.Log
	Payloads *Payloads
	ReadData bool           // read every byte, not only what looks wrong
	Progress func(Progress) // called now and then; may be nil
	Wait     time.Duration  // the longest wait for locks
	Pause    time.Duration  // before the second look at a suspect; later pauses are longer

	salvaged map[blob.Sum]string // by payload: the journal in the trash that has it; nil until the first search
}

// Progress is the progress of a check.
type Progress struct {
	Messages int64 // checked in the current line
	Of       int64 // messages of that line
	Total    int64 // checked in the context
}

// problem is a finding with what its repair needs.
type problem struct {
	Finding
	line  uuid.UUID
	entry index.Entry
	found string   // the path of a misplaced file, in the context's folder
	sum   blob.Sum // of a payload
	pack  uuid.UUID
	stray uint64 // a journal of another history
	// several is the number of messages concerned, if it is not one.
	several int
	due     bool  // the missing message file may be about to appear
	taken   bool  // another message's file has its name
	spelled bool  // the file holds what was committed, in another spelling
	short   error // a shortage of descriptors or memory, which leaves the state unknown
}

// repairable returns a problem that a repair fixes.
func repairable(kind Kind, severity Severity, path, detail string) problem {
	return problem{Finding: Finding{Kind: kind, Severity: severity, Path: path, Detail: detail, Repairable: true}}
}

// examination is one pass over a context.
type examination struct {
	*Context
	metadata *ctxfolder.Metadata
	yield    func(problem) bool
	done     Progress
	seen     map[string]*listing // by branch folder
	suspects []suspect
	alone    bool // nobody else writes

	indexReported bool // a problem of the index was reported
}

// errStopped ends an examination whose caller wants no more results.
var errStopped = errors.New("stopped")

// Check yields the problems of a context.
func (c *Context) Check(ctx context.Context, yield func(Finding) bool) error {
	return c.examine(ctx, func(p problem) bool { return yield(p.Finding) })
}

func (c *Context) examine(ctx context.Context, yield func(problem) bool) error {
	x := &examination{Context: c, yield: yield, seen: map[string]*listing{}}
	err := x.run(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

func (x *examination) run(ctx context.Context) error {
	if err := x.names(ctx); err != nil {
		return err
	}
	if err := x.openMetadata(); err != nil || x.metadata == nil {
		return err
	}
	// List the folders before reading the index: a file listed then was committed before, or never.
	if err := x.list(ctx, ctxfolder.Messages); err != nil {
		return err
	}
	if err := x.openIndex(); err != nil {
		return err
	}
	if err := x.structure(); err != nil {
		return err
	}
	for _, line := range x.metadata.Lines {
		if err := x.messages(ctx, line); err != nil {
			return err
		}
	}
	if err := x.rows(ctx); err != nil {
		return err
	}
	if err := x.packs(ctx); err != nil {
		return err
	}
	if err := x.strays(ctx); err != nil {
		return err
	}
	if err := x.checkSuspects(ctx); err != nil {
		return err
	}
	if err := x.leftovers(ctx); err != nil {
		return err
	}
	if err := x.prompts(); err != nil {
		return err
	}
	return x.erasing()
}

// report yields a problem.
func (x *examination) report(p problem) error {
	if err := cmp.Or(p.short, x.Payloads.short); err != nil {
		return err
	}
	p.Context = x.Dir.ID
	if p.Path != "" && p.Kind != KindPayload && p.Kind != KindBlob {
		p.Path = x.Dir.ID.String() + "/" + p.Path
	}
	if !x.yield(p) {
		return errStopped
	}
	return nil
}

// reportConfirmed reports what look finds at every try: a writer may be in the middle of a change.
func (x *examination) reportConfirmed(look func() ([]problem, error)) error {
	problems, err := x.confirm(look)
	if err != nil {
		return err
	}
	return x.reportAll(problems)
}

// confirm is reportConfirmed, but returns the problems.
func (x *examination) confirm(look func() ([]problem, error)) (problems []problem, err error) {
	for try := range x.tries() {
		x.wait(try)
		if try > 0 {
			if err := x.refresh(); err != nil {
				return nil, err
			}
		}
		if problems, err = look(); err != nil || len(problems) == 0 {
			break
		}
	}
	return problems, err
}

func (x *examination) reportAll(problems []problem) error {
	for _, p := range problems {
		if err := x.report(p); err != nil {
			return err
		}
	}
	return nil
}

// usualTries is how many looks in a row must find a problem: a writer may be in the middle of a change.
const usualTries = 4

func (x *examination) tries() int {
	if x.alone {
		return 1
	}
	return usualTries
}

// wait pauses longer with each try.
func (c *Context) wait(try int) {
	if try > 0 {
		time.Sleep(time.Duration(try*try*try) * c.Pause)
	}
}

// structure compares metadata.json with the messages. The two are not read at one moment, so it looks more than once.
func (x *examination) structure() error {
	return x.reportConfirmed(func() (problems []problem, err error) {
		wrong, _, err := wrongLines(x.metadata, x.Dir, x.Log)
		for _, detail := range wrong {
			problems = append(problems, repairable(KindStructure, SeverityError, ctxfolder.MetadataFile, detail))
		}
		return problems, err
	})
}
