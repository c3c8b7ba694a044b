package integrity

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// Context is a context to check or repair.
type Context struct {
	Dir      *ctxfolder.Dir
	Index    *index.Index
	Payloads *Payloads
	ReadData bool           // read every byte, not only what looks wrong
	Progress func(Progress) // called now and then; may be nil
	Wait     time.Duration  // the longest wait for locks
	Pause    time.Duration  // before the second look at a suspect; later pauses are longer
}

// Progress is the progress of a check.
type Progress struct {
	Messages int64 // checked in the current line
	Of       int64 // messages of that line
	Total    int64 // checked in the context
}

// place is where a message is.
type place struct {
	line     uuid.UUID
	position int64
}

// problem is a finding with what its repair needs.
type problem struct {
	Finding
	place
	file     string    // of the history
	found    string    // the path of a file that is not in its place, in the context's folder
	storedAt time.Time // of the message in that file
	sum      [32]byte  // of a payload
	several  int       // how many messages it is about, if not one
	due      bool      // a file that its writer may be about to make
	seq      uint64    // the number of the record that committed the message
}

// subject is what a problem is about: it is the same problem at two looks if it is about the same.
type subject struct {
	kind Kind
	path string
	place
	id uuid.UUID
}

func (p *problem) subject() subject { return subject{p.Kind, p.Path, p.place, p.ID} }

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
	seen     map[string]*listing // by folder
	blocked  map[string]bool     // folders in whose place something else is
	suspects []place             // messages that looked wrong
	lost     []problem           // messages of which no copy is known
	found    map[place]bool      // lost messages of which there is a file after all
	alone    bool                // no other process writes
	note     *unfinished         // nil until it is read
}

// errStopped ends an examination whose caller wants no more results.
var errStopped = errors.New("stopped")

// Check yields the problems of a context.
func (c *Context) Check(ctx context.Context, yield func(Finding) bool) error {
	return c.examine(ctx, func(p problem) bool { return yield(p.Finding) })
}

func (c *Context) examine(ctx context.Context, yield func(problem) bool) error {
	x := &examination{
		Context: c, yield: yield, seen: map[string]*listing{}, blocked: map[string]bool{}, found: map[place]bool{},
	}
	err := x.run(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

func (x *examination) run(ctx context.Context) error {
	if usable, err := x.folder(ctxfolder.Segments, SeverityError); err != nil || !usable {
		return err // nothing else can be examined
	}
	if err := x.openMetadata(); err != nil {
		return err
	}
	if err := x.summary(); err != nil {
		return err
	}
	// List the folders before reading the history: a file listed then was committed before, or never.
	if err := x.list(ctx, ctxfolder.Messages); err != nil {
		return err
	}
	broken, err := x.history(ctx)
	if err != nil || x.metadata == nil {
		return errors.Join(err, x.reportAll(broken))
	}
	if err := x.structure(); err != nil {
		return err
	}
	for i := range x.metadata.Lines {
		if err := x.messages(ctx, x.metadata.Lines[i].ID); err != nil {
			return err
		}
	}
	for _, look := range []func(context.Context) error{x.checkSuspects, x.leftovers} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	x.dropFound()
	if err := x.reportAll(x.withLost(broken)); err != nil {
		return err
	}
	if err := x.reportAll(inRuns(x.lost)); err != nil {
		return err
	}
	if err := x.prompts(); err != nil {
		return err
	}
	return x.erasing()
}

// report yields a problem.
func (x *examination) report(p problem) error {
	if err := x.Payloads.short; err != nil {
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

func (x *examination) reportAll(problems []problem) error {
	for _, p := range problems {
		if err := x.report(p); err != nil {
			return err
		}
	}
	return nil
}

// confirm returns what look finds at each of several tries and found at the one before as well: a writer may be in the middle
// of a change, and then of another one.
func (x *examination) confirm(look func() ([]problem, error)) (problems []problem, err error) {
	var before map[subject]bool
	for try := range x.tries() {
		if try > 0 {
			time.Sleep(time.Duration(try*try*try) * x.Pause)
			if err := x.refresh(); err != nil {
				return nil, err
			}
		}
		if problems, err = look(); err != nil || len(problems) == 0 {
			break
		}
		now := map[subject]bool{}
		for i := range problems {
			now[problems[i].subject()] = true
		}
		if try > 0 {
			problems = slices.DeleteFunc(problems, func(p problem) bool { return !before[p.subject()] })
		}
		before = now
	}
	return problems, err
}

// reportConfirmed reports what confirm returns.
func (x *examination) reportConfirmed(look func() ([]problem, error)) error {
	problems, err := x.confirm(look)
	if err != nil {
		return err
	}
	return x.reportAll(problems)
}

// usualTries is how many looks in a row must find a problem.
const usualTries = 4

func (x *examination) tries() int {
	if x.alone {
		return 1
	}
	return usualTries
}

// refresh reads what others committed, and forgets the problems of blobs and the note of an erase.
func (x *examination) refresh() error {
	x.Payloads.again()
	x.note = nil
	err := x.Index.Refresh()
	if err == nil {
		m, _, merr := x.effective()
		if m != nil {
			x.metadata = m
		} else if !errors.Is(merr, ctxfolder.ErrMetadata) {
			err = merr
		}
	}
	return err
}

// now returns a line as the metadata has it, and its entry at a position; nil for both if there is none any more.
func (x *examination) now(at place) (*ctxfolder.Line, *index.Entry, error) {
	line, ok := x.metadata.Line(at.line)
	if !ok {
		return nil, nil, nil
	}
	e, ok, err := x.Index.Entry(at.line, at.position)
	if err != nil || !ok {
		return nil, nil, err
	}
	return line, &e, nil
}

func comparePlaces(a, b problem) int {
	return cmp.Or(compareID(a.line, b.line), cmp.Compare(a.position, b.position))
}
