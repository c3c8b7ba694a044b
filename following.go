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

	folder  uint64     // the number of the folder that is watched
	at      index.Spot // at rest
	journal uint64     // in which that is
	seen    [2]glance  // then, of the context's folder and of that journal
	seenAt  time.Time

	files    map[string]bool   // of messages, as FOLDER/NAME: they may have been edited by hand
	told     map[string]glance // edits
	unopened bool              // it could not be opened when it was to be followed
	arrived  bool              // the context came since the watcher began, and that is to be told
	turn     int               // how many events were told
	problem  string            // that was told last
}

// pending is metadata that was read in the journal, and counts once metadata.json bears its revision.
type pending struct {
	m      *Metadata
	seq    uint64
	before index.Spot // the place before its record
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
	f.c, f.tail, f.unopened = c, t, false
	f.begin()
	return nil
}

// begin finds out which metadata counts where the tail is. metadata.json is read behind the journal: so it is no older than that, but for a
// change that is under way or never came to an end.
func (f *follower) begin() {
	f.pending, f.stamp = nil, f.c.dir.MetadataStamp()
	last, at, before := f.tail.Metadata()
	now, _, err := f.c.dir.ReadMetadata()
	switch {
	case err != nil && last == nil:
		f.m = f.c.current()
	case err != nil:
		f.m = last
	case last == nil || last.Revision == now.Revision:
		f.m = now
	case last.Revision > now.Revision:
		if f.m = now; at.Seq+1 == f.tail.At().Seq { // and nothing is behind it
			f.pending = &pending{last, at.Seq + 1, at}
		}
	case before != nil && f.superseded(last, at.Seq+1):
		f.m = before
	default:
		f.m = last
	}
}

// place is where to go on later: behind everything that was told, or is not to be.
func (f *follower) place() index.Spot {
	if f.pending != nil {
		return f.pending.before
	}
	return f.tail.At()
}

// rest closes what is open, until [follower.wake].
func (f *follower) rest() {
	if f.c == nil {
		return
	}
	f.at, f.journal = f.place(), f.tail.Journal()
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
	if f.c != nil || f.arrived || f.problem != "" || f.seen != f.glances() {
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
	if f.unopened {
		return f.resync(ctx) // it could not be opened when it was to be followed
	}
	err := f.open(ctx, func(dir *ctxfolder.Dir) (*index.Tail, error) { return index.Resume(dir, f.at) })
	if errors.Is(err, index.ErrGap) {
		return f.resync(ctx)
	}
	return err
}

// arrive begins with what a new context has in its journals, and tells that it came. One that was followed before, and comes back, is gone on with: what was
// told is not told again.
func (f *follower) arrive(ctx context.Context) error {
	err := f.open(ctx, func(dir *ctxfolder.Dir) (*index.Tail, error) {
		if f.at != (index.Spot{}) {
			return index.Resume(dir, f.at)
		}
		return index.FollowFrom(dir, 0)
	})
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
	f.queue = append([]Event{{Kind: kind, Metadata: f.m, Branches: f.branches(), At: f.m.CreatedAt}}, f.queue...)
	return nil
}

// resync begins anew at the end.
func (f *follower) resync(ctx context.Context) error {
	f.rest()
	if err := f.open(ctx, index.FollowEnd); err != nil {
		return err
	}
	f.queue = []Event{{Kind: Resync, Seq: f.place().Seq, Metadata: f.m, Branches: f.branches(), At: f.m.UpdatedAt}}
	return nil
}

// branches describes the branches as they are where the follower is.
func (f *follower) branches() (all []BranchInfo) {
	for i := range f.m.Branches {
		all = append(all, f.describe(&f.m.Branches[i])...)
	}
	return all
}

// describe describes a branch as it is where the follower is. What is archived is not looked for.
func (f *follower) describe(b *ctxfolder.Branch) []BranchInfo {
	info, err := describe(f.m, b, f.tail.Counts())
	if err != nil {
		return nil
	}
	return []BranchInfo{info}
}

// next returns the next event. ok is false when there is none yet. It fails with [ErrGone] when the context is not there any more, or another one is
// in its place.
func (f *follower) next(ctx context.Context) (e Event, ok bool, err error) {
	var byHand *Metadata // what metadata.json has; if no record comes that says so, somebody edited it
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
			byHand = nil
			f.settle(true)
			f.take(rec)
		case byHand != nil:
			f.change(byHand, 0)
			byHand = nil
		default:
			if err = f.c.dir.Check(); err == nil && f.lookAtFiles(ctx) {
				break
			}
			if byHand = f.lookAtMetadata(); err == nil && byHand == nil {
				f.tail.Rest()
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
		if m, at, _ := f.tail.Metadata(); m != nil && at.Seq+1 == rec.Seq {
			f.pending = &pending{m, rec.Seq, at}
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
		f.queue = append(f.queue, Event{Kind: kind, Seq: rec.Seq, At: m.StoredAt, Branch: f.branchOf(m), Message: m, Metadata: f.m})
	}
}

// branchOf is the name of a branch that shows a message: the one that has its line, or else one that goes on from that line behind it. It is empty where
// none shows it, yet or any more.
func (f *follower) branchOf(m *Message) string {
	if b := branchOfLine(f.m, m.Line); b != nil {
		return b.Name
	}
	for i := range f.m.Branches {
		b := &f.m.Branches[i]
		for line, ok := f.m.Line(b.Line); ok && line.Parent != uuid.Nil; line, ok = f.m.Line(line.Parent) {
			if line.Parent == m.Line && m.Position < line.Base {
				return b.Name
			}
			if line.Base <= m.Position {
				break // what it shows there is its own
			}
		}
	}
	return ""
}

// settle decides whether metadata that was read counts. With behind, there is a record behind it: who wrote that held the lock, so it was decided
// before, and what metadata.json does not bear was never committed.
func (f *follower) settle(behind bool) {
	p := f.pending
	if p == nil {
		return
	}
	f.stamp = f.c.dir.MetadataStamp()
	now, _, err := f.c.dir.ReadMetadata()
	switch {
	case err != nil || now.Revision >= p.m.Revision && (alike(now, p.m) || !f.superseded(p.m, p.seq)):
		f.change(p.m, p.seq) // in place of one that is damaged the copy counts
	case err == nil && now.Revision < p.m.Revision && !behind:
		return
	}
	f.pending = nil
}

// superseded reports whether the metadata behind a number takes the place of m, which is what that record has: who wrote it did not find m in
// metadata.json, and gave its revision to another one.
func (f *follower) superseded(m *Metadata, seq uint64) bool {
	next, err := f.tail.NextMetadata(seq)
	return err == nil && next != nil && (next.Revision < m.Revision || next.Revision == m.Revision && !alike(next, m))
}

// change queues the events of another version of the metadata.
func (f *follower) change(m *Metadata, seq uint64) {
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

// lookAtMetadata returns metadata.json where it is another one than was looked at before.
func (f *follower) lookAtMetadata() *Metadata {
	stamp := f.c.dir.MetadataStamp()
	if stamp.Same(f.stamp) || f.pending != nil {
		return nil
	}
	f.stamp = stamp
	m, _, err := f.c.dir.ReadMetadata()
	if err != nil {
		return nil
	}
	return m
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
	a, ok := message.ParseAddress(message.Text(head))
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
