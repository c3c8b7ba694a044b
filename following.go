package ctxdir

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// follower tells what is committed to one context. Between two looks it can rest: then all that it holds is where it was.
type follower struct {
	s  *Store
	id uuid.UUID

	c       *Context // nil at rest
	tail    *index.Tail
	m       *Metadata // that counts at the tail's place
	pending *pending
	stamp   ctxfolder.Stamp // of the metadata.json that was looked at last
	queue   []Event         // that were read and not told yet

	at      index.Spot // at rest
	journal uint64     // in which that is
	seen    [2]glance  // then, of the context's folder and of that journal
	seenAt  time.Time

	files   map[string]bool   // of messages, as FOLDER/NAME: they may have been edited by hand
	told    map[string]glance // edits
	arrived bool              // the context came since the watcher began, and that is to be told
	turn    int               // how many events were told
	problem string            // that was told last
}

// pending is metadata that was read in the journal, and counts once metadata.json bears its revision.
type pending struct {
	m   *Metadata
	seq uint64
}

// glance is how a file looked.
type glance struct {
	number uint64
	size   int64
	at     time.Time
}

// open opens the context, behind a commit; without one, at the end. It fails with [index.ErrGap].
func (f *follower) open(ctx context.Context, begin func(dir *ctxfolder.Dir) (*index.Tail, error)) error {
	c, err := f.s.open(ctx, f.id)
	if err != nil {
		return err
	}
	t, err := begin(c.dir)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	f.c, f.tail = c, t
	f.begin()
	return nil
}

// begin finds out which metadata counts where the tail is.
func (f *follower) begin() {
	f.m, f.pending, f.stamp = f.c.current(), nil, f.c.stamp
	m, err := ctxfolder.ParseMetadata(f.tail.Metadata())
	switch {
	case err != nil:
	case m.Revision > f.m.Revision:
		f.pending = &pending{m, f.tail.At().Seq}
	case m.Revision < f.m.Revision:
		f.m = m
	}
}

// rest closes what is open, until [follower.wake].
func (f *follower) rest() {
	if f.c == nil {
		return
	}
	f.at, f.journal = f.tail.At(), f.tail.Journal()
	f.seen, f.seenAt = f.glances(), time.Now()
	f.tail.Close()
	_ = f.c.Close() // nothing was written through it
	f.c, f.tail, f.m, f.pending = nil, nil, nil, nil
}

// glances are how the context's folder and the journal look.
func (f *follower) glances() (seen [2]glance) {
	for i, name := range []string{f.id.String(), f.id.String() + "/" + ctxfolder.JournalFile(f.journal)} {
		if info, err := f.s.fs.Lstat(name); err == nil {
			seen[i] = glanceAt(info)
		}
	}
	return seen
}

func glanceAt(info fs.FileInfo) glance { return glance{vfs.Number(info), info.Size(), info.ModTime()} }

// still reports whether nothing can have been committed since the follower came to rest.
func (f *follower) still() bool {
	if f.c != nil || f.arrived || f.seen != f.glances() {
		return false
	}
	return !slices.ContainsFunc(f.seen[:], func(g glance) bool { return f.seenAt.Sub(g.at) < racy })
}

// wake goes on where the follower was. Where that cannot be, there is a [Resync] to be told.
func (f *follower) wake(ctx context.Context) error {
	if f.c != nil {
		return nil
	}
	if f.arrived {
		return f.arrive(ctx)
	}
	err := f.open(ctx, func(dir *ctxfolder.Dir) (*index.Tail, error) { return index.Resume(dir, f.at) })
	if errors.Is(err, index.ErrGap) {
		return f.resync(ctx)
	}
	return err
}

// arrive begins with what a new context has in its journals, and tells that it came.
func (f *follower) arrive(ctx context.Context) error {
	err := f.open(ctx, func(dir *ctxfolder.Dir) (*index.Tail, error) { return index.FollowFrom(dir, 0) })
	if errors.Is(err, index.ErrGap) {
		err = f.resync(ctx)
	}
	if err != nil {
		return err
	}
	f.arrived = false
	kind := ContextCreated
	if parseLegacy(f.m) != nil {
		kind = ContextMigrated
	}
	f.queue = append([]Event{{Kind: kind, Metadata: f.m, At: f.m.CreatedAt}}, f.queue...)
	return nil
}

// attempts bounds how often a place is looked for that folds take away meanwhile.
const attempts = 8

// start goes to the place that the context's handle knows, and describes the branches there: so that this, and what comes, fit together.
func (f *follower) start(ctx context.Context) (branches []BranchInfo, err error) {
	for range attempts {
		f.rest()
		if err = f.open(ctx, index.FollowEnd); err != nil {
			continue
		}
		var seq uint64
		if seq, err = f.c.log.Seq(); err != nil {
			continue
		}
		if seq != f.tail.At().Seq {
			var t *index.Tail
			if t, err = index.FollowFrom(f.c.dir, seq); err != nil {
				continue
			}
			f.tail.Close()
			f.tail = t
			f.begin()
		}
		for i := range f.m.Branches {
			branches = append(branches, f.describe(&f.m.Branches[i])...)
		}
		return branches, nil
	}
	return nil, err
}

// resync begins anew at the end.
func (f *follower) resync(ctx context.Context) error {
	branches, err := f.start(ctx)
	if err != nil {
		return err
	}
	f.queue = []Event{{Kind: Resync, Context: f.id, Seq: f.tail.At().Seq, Metadata: f.m, Branches: branches, At: f.m.UpdatedAt}}
	return nil
}

// next returns the next event. ok is false when there is none yet. It fails with [ErrGone] when the context is not there any more, or another one is
// in its place.
func (f *follower) next(ctx context.Context) (e Event, ok bool, err error) {
	for len(f.queue) == 0 {
		if f.settle(false); len(f.queue) > 0 {
			break
		}
		rec, ok, err := f.tail.Next()
		switch {
		case errors.Is(err, index.ErrGap):
			if err = f.c.dir.Check(); err == nil {
				err = f.resync(ctx)
			}
		case err != nil:
		case ok:
			f.settle(true)
			f.take(rec)
		default:
			if err = f.c.dir.Check(); err == nil && !f.lookAtMetadata() && !f.lookAtFiles(ctx) {
				return e, false, nil
			}
		}
		if err != nil {
			return e, false, err
		}
	}
	e, f.queue = f.queue[0], f.queue[1:]
	e.Context, e.More = f.id, len(f.queue) > 0 && f.queue[0].Seq == e.Seq
	return e, true, nil
}

// take queues the events that a record makes.
func (f *follower) take(rec index.Record) {
	switch rec.Kind {
	case index.KindMetadata:
		if m, err := ctxfolder.ParseMetadata(rec.Body); err == nil {
			f.pending = &pending{m, rec.Seq}
		}
	case index.KindAppend, index.KindReplace:
		m := f.c.load.Committed(bytes.Clone(rec.Body))
		if m == nil {
			return
		}
		if m.HasPayloads() {
			_ = f.c.log.Refresh() // they may be in the journal still; where they are not to be had, the message says so
		}
		kind := MessageAppended
		if rec.Kind == index.KindReplace {
			kind = MessageReplaced
		}
		f.queue = append(f.queue, Event{Kind: kind, Seq: rec.Seq, At: m.StoredAt, Branch: f.branchOf(m.Line, rec.Body), Message: m, Metadata: f.m})
	}
}

// branchOf is the name of the branch that has a line, or where none has it the one that it had when the message was written.
func (f *follower) branchOf(line uuid.UUID, envelope []byte) string {
	if b := branchOfLine(f.m, line); b != nil {
		return b.Name
	}
	env, _ := message.ParseTrusted(envelope) // it was parsed before
	return env.Branch
}

// settle decides whether metadata that was read counts. With behind, there is a record behind it: who wrote that held the lock, so it was decided
// before, and what metadata.json does not bear was never committed.
func (f *follower) settle(behind bool) {
	if f.pending == nil {
		return
	}
	f.stamp = f.c.dir.MetadataStamp()
	now, _, err := f.c.dir.ReadMetadata()
	switch {
	case err != nil || now.Revision >= f.pending.m.Revision && (sameJSONText(now, f.pending.m) || !f.superseded()):
		f.change(f.pending.m, f.pending.seq) // in place of one that is damaged the copy counts
	case err == nil && now.Revision < f.pending.m.Revision && !behind:
		return
	}
	f.pending = nil
}

// superseded reports whether the metadata that comes next in the journals takes the place of what is pending: who wrote that did not find it in
// metadata.json, and gave its revision to another one.
func (f *follower) superseded() bool {
	raw, err := f.tail.NextMetadata(f.pending.seq)
	if err != nil || raw == nil {
		return false
	}
	next, err := ctxfolder.ParseMetadata(raw)
	return err == nil && (next.Revision < f.pending.m.Revision || next.Revision == f.pending.m.Revision && !sameJSONText(next, f.pending.m))
}

// change queues the events of another version of the metadata.
func (f *follower) change(m *Metadata, seq uint64) {
	was := f.m
	f.m = m
	for _, e := range changes(was, m) {
		e.Seq = seq
		if b, ok := m.Branch(e.Branch); ok {
			_ = f.c.log.Refresh()
			e.Branches = f.describe(b)
		}
		f.queue = append(f.queue, e)
	}
}

// describe describes a branch, as far as the index can be read.
func (f *follower) describe(b *ctxfolder.Branch) []BranchInfo {
	counts, _, _ := f.c.log.AllCounts()
	info, err := f.c.describe(f.m, b, counts)
	if err != nil {
		return nil
	}
	return []BranchInfo{info}
}

// lookAtMetadata queues what was changed in metadata.json by hand: then its revision is what it was. It reports whether there was something.
func (f *follower) lookAtMetadata() bool {
	stamp := f.c.dir.MetadataStamp()
	if stamp.Same(f.stamp) || f.pending != nil {
		return false
	}
	f.stamp = stamp
	m, _, err := f.c.dir.ReadMetadata()
	if err == nil && m.Revision == f.m.Revision {
		f.change(m, 0)
	}
	return len(f.queue) > 0
}

// lookAtFiles queues which message files were edited, of those that something happened to.
func (f *follower) lookAtFiles(ctx context.Context) bool {
	for path := range f.files {
		folder, name, _ := strings.Cut(path, "/")
		f.edited(ctx, folder, name)
	}
	clear(f.files)
	return len(f.queue) > 0
}

// edited queues that a message's file was changed by hand, if it was. A file of ours bears the time that stands in it.
func (f *follower) edited(ctx context.Context, folder, name string) {
	file, ok := ctxfolder.ParseMessageFile(name)
	if !ok || !ctxfolder.ValidFolder(folder) {
		return
	}
	info, err := f.c.dir.StatMessage(folder, file)
	if err != nil {
		return
	}
	now := glanceAt(info)
	head, err := f.c.dir.LoadMessage(folder, file, headBytes)
	if err != nil || f.told[folder+"/"+name] == now {
		return
	}
	a, ok := message.ParseAddress(head)
	if ok && info.ModTime().Equal(a.StoredAt) {
		return
	}
	id := file
	if ok {
		id = a.ID // the file may be called otherwise
	}
	if f.c.Refresh(ctx) != nil {
		return
	}
	for _, b := range f.c.current().Branches {
		at, err := f.c.Branch(b.Name)
		if err != nil {
			continue
		}
		m, err := at.Message(ctx, id)
		if err != nil || !m.Edited {
			continue
		}
		if len(f.told) >= mostTold {
			clear(f.told)
		}
		f.told[folder+"/"+name] = now
		f.queue = append(f.queue, Event{Kind: MessageEdited, At: info.ModTime(), Branch: b.Name, Message: m, Metadata: f.m})
		return
	}
}

// headBytes are as many of a message's file as hold what stands before the message.
const headBytes = 4 << 10

// mostTold bounds how many edits are remembered, for editors that write a file several times.
const mostTold = 1 << 10
