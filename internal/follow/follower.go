package follow

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// follower reads what is committed to one context. At rest between two looks, it holds only its place.
type follower struct {
	s  *engine.Store
	id uuid.UUID

	c     *engine.Context // nil at rest
	tail  *index.Tail
	m     *engine.Metadata // the metadata that counts at the tail's place
	stamp ctxfolder.Stamp  // of the metadata.json that was read last
	queue []Event          // events that are read and not delivered yet

	folder uint64           // the number of the watched folder
	at     journal.Position // the place at rest
	log    string           // the log of that place
	seen   [2]fileState     // how the context's folder and that log looked then
	seenAt time.Time

	files    map[string]bool      // message files that may have been edited by hand, as FOLDER/NAME
	reported map[string]fileState // delivered edits
	unopened bool                 // the context could not be opened when following began
	arrived  bool                 // the context came after the watcher began; its event is due
	turn     int                  // number of delivered events
	problem  string               // the problem that was delivered last
}

// fileState is the state of a file at one look.
type fileState struct {
	number uint64
	size   int64
	at     time.Time
}

// open opens the context, and its tail with begin. It fails with [index.ErrGap].
func (f *follower) open(ctx context.Context, begin func(ix *index.Index) (*index.Tail, error)) error {
	c, err := f.s.Open(ctx, f.id)
	if err != nil {
		return err
	}
	t, err := begin(c.Index)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	f.c, f.tail, f.unopened = c, t, false
	f.begin()
	return nil
}

// begin takes the metadata at the tail's place. At the end of the history that includes what a person changed in
// metadata.json; behind an earlier place the change is an event.
func (f *follower) begin() {
	if f.m = f.tail.Metadata(); f.m == nil {
		f.m = f.c.Current()
	}
	f.stamp = ctxfolder.Stamp{}
	if at, err := f.c.Index.At(); err != nil || at.Seq > f.tail.At().Seq {
		return
	}
	if m := f.lookAtMetadata(); m != nil {
		f.m = m
	}
}

// rest closes the context and its tail, until wake.
func (f *follower) rest() {
	if f.c == nil {
		return
	}
	f.at = f.tail.At()
	f.log, _ = f.tail.Log() // without it, only the folder counts
	f.seen, f.seenAt = f.fileStates(), time.Now()
	f.tail.Close()
	_ = f.c.Close() // nothing was written through it
	f.c, f.tail, f.m = nil, nil, nil
}

// fileStates returns how the context's folder and the log look.
func (f *follower) fileStates() (seen [2]fileState) {
	for i, name := range []string{f.id.String(), f.id.String() + "/" + f.log} {
		if info, err := f.s.FS.Lstat(name); err == nil {
			seen[i] = fileStateOf(info)
		}
	}
	return seen
}

func fileStateOf(info fs.FileInfo) fileState {
	return fileState{vfs.Number(info), info.Size(), info.ModTime()}
}

// isUnchanged reports whether nothing can have been committed since the follower came to rest.
func (f *follower) isUnchanged() bool {
	if f.c != nil || f.arrived || f.problem != "" || f.seen != f.fileStates() {
		return false
	}
	return !slices.ContainsFunc(f.seen[:], func(g fileState) bool { return f.seenAt.Sub(g.at) < freshness.TimeResolution })
}

// wake resumes at the follower's place. If that is impossible, it queues a [Resync].
func (f *follower) wake(ctx context.Context) error {
	if f.c != nil {
		return nil
	}
	if f.arrived {
		return f.arrive(ctx)
	}
	if f.unopened {
		return f.resync(ctx) // there is no place to resume at
	}
	err := f.open(ctx, func(ix *index.Index) (*index.Tail, error) { return ix.Resume(f.at) })
	if isGap(err) {
		return f.resync(ctx)
	}
	return err
}

// isGap reports whether a tail cannot continue, since records are missing or damaged.
func isGap(err error) bool { return errors.Is(err, index.ErrGap) || errors.Is(err, index.ErrDamaged) }

// behind returns a function that begins behind a commit. The first one creates the context: what it has is not an event.
func behind(seq uint64) func(ix *index.Index) (*index.Tail, error) {
	return func(ix *index.Index) (*index.Tail, error) { return ix.Tail(max(seq, 1)) }
}

// arrive begins with the first commit of a new context, and queues the event of its arrival. If the context was
// followed before and comes back, arrive resumes: nothing is delivered twice.
func (f *follower) arrive(ctx context.Context) error {
	err := f.open(ctx, func(ix *index.Index) (*index.Tail, error) {
		if f.at != (journal.Position{}) {
			return ix.Resume(f.at)
		}
		return behind(0)(ix)
	})
	if isGap(err) {
		err = f.resync(ctx)
	}
	if err != nil {
		return err
	}
	f.arrived = false
	kind := ContextCreated
	if migrate.ParseOrigin(f.m) != nil {
		kind = ContextMigrated
	}
	f.queue = append([]Event{{Kind: kind, Metadata: f.m, Branches: f.branches(), At: f.m.CreatedAt}}, f.queue...)
	return nil
}

// resync begins again at the end, and queues a [Resync].
func (f *follower) resync(ctx context.Context) error {
	f.rest()
	if err := f.open(ctx, (*index.Index).TailEnd); err != nil {
		return err
	}
	f.queue = []Event{{Kind: Resync, Seq: f.tail.At().Seq, Metadata: f.m, Branches: f.branches(), At: f.m.UpdatedAt}}
	return nil
}

// branches describes the branches at the follower's place.
func (f *follower) branches() (all []engine.BranchInfo) {
	for i := range f.m.Branches {
		all = append(all, f.describe(&f.m.Branches[i])...)
	}
	return all
}

// describe describes a branch at the follower's place, except how much of it is archived.
func (f *follower) describe(b *ctxfolder.Branch) []engine.BranchInfo {
	info, err := engine.DescribeBranch(f.m, b, f.tail.Counts())
	if err != nil {
		return nil
	}
	return []engine.BranchInfo{info}
}

// take queues the events of a record.
func (f *follower) take(ctx context.Context, rec *index.Tailed) {
	kind := MessageAppended
	switch rec.Kind {
	case journal.Metadata, journal.Change:
		if m := f.tail.Metadata(); m != nil {
			f.change(m, rec.Seq)
		}
		return
	case journal.Replace:
		kind = MessageReplaced
	case journal.Add:
	default:
		return
	}
	m := f.message(ctx, rec)
	if m == nil {
		return
	}
	if m.HasPayloads() {
		_ = f.c.Index.Refresh() // they may still be in a log; the message reports those that are unavailable
	}
	e := f.messageEvent(kind, m)
	e.Seq, e.At = rec.Seq, rec.Entry.StoredAt()
	f.queue = append(f.queue, e)
}

// message returns the message of a record, or its current version if that of the record is gone: it was replaced or erased.
// It returns nil if the line ends before it now.
func (f *follower) message(ctx context.Context, rec *index.Tailed) *engine.Message {
	now, ok, err := f.c.Index.Entry(rec.Entry.Line, rec.Entry.Position)
	if m := f.c.Loader.Committed(rec.Body); m != nil && (!ok || !now.IsErased()) {
		return m
	}
	if err != nil || !ok {
		return nil
	}
	m, err := f.c.Loader.Load(ctx, loader.Span{Line: now.Line, Folder: f.c.Current().Folders()[now.Line]}, &now)
	if err != nil {
		return nil
	}
	return m
}

// messageEvent returns an event about a message, with the branches that show it.
func (f *follower) messageEvent(kind EventKind, m *engine.Message) Event {
	e := Event{Kind: kind, At: m.StoredAt, Message: m, Metadata: f.m}
	for i := range f.m.Branches {
		b := &f.m.Branches[i]
		if !f.shows(b, m) {
			continue
		}
		if e.Branch == "" || b.Line == m.Line {
			e.Branch = b.Name
		}
		e.Branches = append(e.Branches, f.describe(b)...)
	}
	return e
}

// shows reports whether a branch shows a message: its line owns the message, or continues behind it.
func (f *follower) shows(b *ctxfolder.Branch, m *engine.Message) bool {
	line, ok := f.m.Line(b.Line)
	for ok && line.ID != m.Line && m.Position < line.Base {
		line, ok = f.m.Line(line.Parent)
	}
	return ok && line.ID == m.Line
}

// change queues the events of a new version of the metadata.
func (f *follower) change(m *engine.Metadata, seq uint64) {
	was := f.m
	f.m = m
	for _, e := range changes(was, m) {
		e.Seq = seq
		if b, ok := m.Branch(e.Branch); ok {
			e.Branches = f.describe(b)
		}
		f.queue = append(f.queue, e)
	}
}

// lookAtMetadata returns the metadata with the changes that a person made in metadata.json since the last look, nil for
// none.
func (f *follower) lookAtMetadata() *engine.Metadata {
	stamp := f.c.Dir.MetadataStamp()
	if stamp.Same(f.stamp) {
		return nil
	}
	f.stamp = stamp
	_ = f.c.Index.Refresh() // what other processes committed is not an edit
	committed, err := f.c.Index.Metadata()
	if err != nil {
		return nil
	}
	m, is, _, err := f.c.Dir.EffectiveMetadata(committed)
	if err != nil || is != ctxfolder.ProjectionEdited && is != ctxfolder.ProjectionNewer {
		return nil
	}
	return m
}
