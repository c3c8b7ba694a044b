package integrity

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
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

// Payloads are a store's blobs. Each is checked once, no matter how many contexts refer to it.
type Payloads struct {
	Store vfs.FS
	Blobs *blob.Store
	// Alone runs f while no process stores a blob, or refers to an existing one.
	Alone func(ctx context.Context, f func() error) error

	referred map[blob.Sum]bool  // blobs that something refers to
	looked   map[blob.Sum]error // what the newest look at each found
	short    error              // the shortage that prevented a look
}

// again makes the next look at each bad blob a fresh one.
func (p *Payloads) again() {
	maps.DeleteFunc(p.looked, func(_ blob.Sum, wrong error) bool { return wrong != nil })
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

// listing is the content of a folder, and which of its files belong to messages.
type listing struct {
	files []uuid.UUID // sorted
	taken []bool
	other []string // names that no message file has
}

// unfinished is what the note of an unfinished erase or purge names.
type unfinished struct {
	messages map[uuid.UUID]bool
	cut      []ctxfolder.CutLine
}

// errStopped ends an examination whose caller wants no more results.
var errStopped = errors.New("stopped")

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

// abandoned is the age at which a temporary file has no owner any more.
const abandoned = time.Hour

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

// effective returns the metadata that counts, and the state of metadata.json. m is nil if nothing has it.
func (c *Context) effective() (m *ctxfolder.Metadata, is ctxfolder.Projection, err error) {
	committed, err := c.Index.Metadata()
	if err != nil {
		return nil, ctxfolder.ProjectionUnusable, err
	}
	m, is, _, err = c.Dir.EffectiveMetadata(committed)
	return m, is, err
}
