package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
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

// examination is one pass over a context.
type examination struct {
	*Context
	metadata *ctxfolder.Metadata
	yield    func(problem) bool
	done     Progress
	seen     map[string]*listing           // by branch folder
	kept     map[string]map[uuid.UUID]bool // see keptIn
	suspects []suspect
	alone    bool // nobody else writes

	indexTold bool // a problem of the index was reported
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
	if err := x.interrogate(ctx); err != nil {
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

// tell yields a problem.
func (x *examination) tell(p problem) error {
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

// patiently reports what look finds at every try: a writer may be in the middle of a change.
func (x *examination) patiently(look func() ([]problem, error)) error {
	problems, err := x.insist(look)
	if err != nil {
		return err
	}
	return x.tellAll(problems)
}

// insist is patiently, but returns the problems.
func (x *examination) insist(look func() ([]problem, error)) (problems []problem, err error) {
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

func (x *examination) tellAll(problems []problem) error {
	for _, p := range problems {
		if err := x.tell(p); err != nil {
			return err
		}
	}
	return nil
}

// openMetadata reads metadata.json or its best substitute. Without either, metadata stays nil.
func (x *examination) openMetadata() error {
	m, source, err := x.usableMetadata()
	if err == nil {
		x.metadata = m
		return nil
	}
	if !errors.Is(err, ctxfolder.ErrMetadata) {
		return err
	}
	p := problem{Finding: Finding{
		Kind: KindMetadata, Severity: SeverityError, Path: ctxfolder.MetadataFile, Detail: err.Error(), Repairable: m != nil,
	}}
	if m != nil {
		p.Detail += "; recoverable from " + source
	}
	x.metadata = m
	x.Dir.Assume(m)
	return x.tell(p)
}

// usableMetadata returns metadata.json, or its best substitute with the source and the error of metadata.json.
func (c *Context) usableMetadata() (m *ctxfolder.Metadata, source string, err error) {
	for try := range usualTries {
		c.wait(try)
		m, _, err = c.Dir.ReadMetadata()
		if err == nil {
			c.Dir.SetRenaming(m.Renaming)
			return m, "", nil
		}
	}
	if !errors.Is(err, ctxfolder.ErrMetadata) {
		return nil, "", err
	}
	if raw, cerr := c.Log.MetadataCopy(); cerr == nil && raw != nil {
		if m, cerr := ctxfolder.ParseMetadata(raw); cerr == nil && m.ID == c.Dir.ID {
			return completed(m, c.Dir), "the journal", err
		}
	}
	if m := copied(c.Dir); m != nil {
		return m, "the context that it was copied from", err
	}
	m, rerr := reconstruct(c.Dir)
	if rerr != nil {
		return nil, "", errors.Join(err, rerr)
	}
	return m, "the messages", err
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

// openIndex reads the index and the journals.
func (x *examination) openIndex() error {
	if err := x.indexProblems(func() error { return nil }); err != nil {
		return err
	}
	if !x.ReadData {
		return nil
	}
	if err := x.replaced(); err != nil {
		return err
	}
	harmed, err := x.Log.DamagedJournals()
	if err != nil {
		return err
	}
	for gen, why := range harmed {
		err := x.tell(problem{Finding: Finding{
			Kind: KindJournal, Severity: SeverityWarning, Path: ctxfolder.JournalFile(gen), Detail: why.Error(), Repairable: true,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// rows reports damaged rows: reading them rebuilt the index.
func (x *examination) rows(ctx context.Context) error {
	if x.indexTold {
		return nil
	}
	return x.indexProblems(func() error {
		for _, line := range x.metadata.Lines {
			for _, err := range x.Log.Pages(ctx, line.ID, 0, math.MaxInt64) {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// indexProblems reports the problems that the log meets at every try, since a writer may be at work. read repeats the
// reads that met them.
func (x *examination) indexProblems(read func() error) error {
	var problems []index.Problem
	for try := range x.tries() {
		x.wait(try)
		err := x.Log.Refresh()
		if err == nil {
			err = x.Log.Complete()
		}
		if err == nil && try > 0 {
			err = read()
		}
		if err == nil {
			problems, err = x.Log.Problems()
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(problems, ofIndex) {
			return nil
		}
		if try < x.tries()-1 {
			_ = x.Log.Close() // the next try begins anew
		}
	}
	x.indexTold = true
	for _, p := range problems {
		if ofIndex(p) {
			f := problem{Finding: Finding{Kind: Kind(p.Kind), Severity: SeverityError, Detail: p.Detail, Repairable: true}}
			if err := x.tell(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofIndex reports whether a problem of the log concerns the index. Problems of messages are found again one by one.
func ofIndex(p index.Problem) bool {
	return p.Kind == string(KindIndex) || p.Kind == string(KindJournal)
}

// structure compares metadata.json with the messages. The two are not read at one moment, so it looks more than once.
func (x *examination) structure() error {
	return x.patiently(func() (problems []problem, err error) {
		wrong, _, err := wrongLines(x.metadata, x.Dir, x.Log)
		for _, detail := range wrong {
			problems = append(problems, problem{Finding: Finding{
				Kind: KindStructure, Severity: SeverityError, Path: ctxfolder.MetadataFile, Detail: detail, Repairable: true,
			}})
		}
		return problems, err
	})
}

// messages checks the messages of a line.
func (x *examination) messages(ctx context.Context, line ctxfolder.Line) error {
	counts, ok, err := x.Log.Counts(line.ID)
	if err != nil || !ok {
		return err
	}
	x.done.Messages, x.done.Of = 0, counts.Count
	for entries, err := range x.Log.Pages(ctx, line.ID, counts.Base, counts.End()) {
		if err != nil {
			return err
		}
		for i, g := range x.glances(line.Folder, entries) {
			if err := x.message(line, &entries[i], g); err != nil {
				return err
			}
		}
		x.done.Messages += int64(len(entries))
		x.done.Total += int64(len(entries))
		if x.Progress != nil {
			x.Progress(x.done)
		}
	}
	return nil
}

// message checks one message. If it looks wrong, it becomes a suspect.
func (x *examination) message(line ctxfolder.Line, e *index.Entry, g glance) error {
	x.seen[ctxfolder.Messages+"/"+line.Folder].take(e.FileID())
	if !g.fine {
		x.suspects = append(x.suspects, suspect{line, e.Position})
		return nil
	}
	if e.Payloads == 0 {
		return nil
	}
	if len(x.payloadsOf(e, g.raw)) > 0 {
		x.suspects = append(x.suspects, suspect{line, e.Position})
	}
	return nil
}

// erasing checks the note of an unfinished erase.
func (x *examination) erasing() error {
	n, err := ctxfolder.ReadErasing(x.Dir.FS)
	for i := 0; err == nil && i < len(n.Blobs); i++ {
		_, err = blob.ParseSum(n.Blobs[i])
	}
	info, serr := x.Dir.FS.Lstat(ctxfolder.ErasingFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(serr, fs.ErrNotExist) {
		return nil
	}
	p := problem{Finding: Finding{Kind: KindErasing, Severity: SeverityWarning, Path: ctxfolder.ErasingFile}}
	switch {
	case errors.Is(err, ctxfolder.ErrVersion):
		p.Detail = err.Error()
	case err != nil:
		p.Detail, p.Repairable = fmt.Sprintf("the note of an erase that was interrupted cannot be used: %v", err), true
	case serr == nil && time.Since(info.ModTime()) < abandoned:
		p.Severity, p.Detail = SeverityInfo, "an erase is running, or was just interrupted: repeat it to complete it"
	default:
		p.Detail = "an erase was interrupted: repeat it to complete it"
	}
	return x.tell(p)
}

// payloadsOf returns the problems of a message's payloads.
func (x *examination) payloadsOf(e *index.Entry, raw []byte) []problem {
	if blob.Count(raw) == 0 {
		return nil
	}
	env, err := message.Parse(raw)
	if err != nil {
		return nil // the damaged file is reported elsewhere
	}
	return x.references(env.Body, e.ID)
}

// prompts checks the payloads of the system prompts.
func (x *examination) prompts() error {
	return x.patiently(func() (problems []problem, err error) {
		for _, b := range x.metadata.Branches {
			problems = append(problems, x.references(b.SystemPrompt, uuid.Nil)...)
		}
		return problems, nil
	})
}

// references returns the problems of the payloads that stored refers to.
func (x *examination) references(stored []byte, id uuid.UUID) (problems []problem) {
	if len(stored) == 0 {
		return nil
	}
	refs, err := blob.Refs(stored)
	if err != nil {
		return nil // strings that only look like references are the framework's business
	}
	for _, ref := range refs {
		if ref.Problem != "" {
			continue
		}
		if f := x.look(ref.Sum); f != nil {
			f.ID, f.Detail = id, fmt.Sprintf("payload at %q: %s", ref.Path, f.Detail)
			problems = append(problems, problem{sum: ref.Sum, Finding: *f})
		}
	}
	return problems
}
