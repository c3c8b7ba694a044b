package index

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// Rescuer is what a rescue needs.
type Rescuer struct {
	// Copy returns another copy of a message, byte for byte, or nil.
	Copy func(*Entry) []byte
	// Keep copies a damaged file, by its path in the folder of the context, to the trash, durably.
	Keep func(path string) error
	// Hidden keeps a message, durably, that a segment has and the history does not show. It may be nil.
	Hidden func(line uuid.UUID, position int64, envelope []byte) error
	// Options says how segments are written.
	Options archive.Options
}

// Rescue makes the history whole again, without what is lost: segments take the place of those that are damaged or missing,
// and one that of all logs if one of them is. found is what [Index.Examine] found. The caller holds the lock of the context
// and the one for sealing.
//
// Crash order: a damaged file has a durable copy in the trash before a segment takes its place, since the next seal removes
// what a segment replaces. The segment is durable under its name, and counts, before those files go. Until then the history is
// damaged as before.
func (ix *Index) Rescue(found []Problem, x Rescuer) error {
	r := &rescue{Rescuer: x, ix: ix, suspects: map[string]bool{}}
	for i := range found {
		r.suspects[found[i].File] = true
	}
	for _, step := range []func() error{
		ix.Reload, r.segments, ix.Reload, r.hidden, ix.Prepare, ix.Rotate, r.logs, ix.Reload,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	left, err := ix.Problems()
	if err == nil && len(left) > 0 {
		err = damaged("what was rescued: %s", left[0].String())
	}
	return err
}

// hidden keeps what the segments have and the history does not show.
func (r *rescue) hidden() error {
	if r.Hidden == nil {
		return nil
	}
	return r.ix.keepHidden(r.Hidden)
}

type rescue struct {
	Rescuer
	ix       *Index
	suspects map[string]bool
	beside   []string // logs that the history does not read
}

// rescued is a segment, or what is left of one.
type rescued struct {
	*archive.Segment
	name    archive.Name
	damaged bool
	state   []byte           // at its end; nil if that is damaged
	to      journal.Position // where it ends; of a damaged one as far as it is known
}

func (p *rescued) path() string { return ctxfolder.Segments + "/" + p.name.File() }

// segments puts whole segments in the place of damaged ones. What is missing before a segment becomes a part of it, and
// one whose state is lost becomes one with the next, if there is one.
func (r *rescue) segments() error {
	all, err := r.ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	if r.beside, err = r.ix.otherLogs(); err != nil {
		return err
	}
	var run []*rescued
	defer func() {
		for _, p := range run {
			_ = p.Close() // it was only read
		}
	}()
	at, state := journal.Position{}, []byte(nil)
	for _, o := range all.all {
		p, err := r.open(o.name)
		if err != nil {
			return err
		}
		if run = append(run, p); p.state == nil {
			continue
		}
		if len(run) > 1 || p.damaged || p.From() != at {
			err = r.rewrite(run, at, state)
		}
		if err != nil {
			return err
		}
		at, state = p.to, p.state
		for _, p := range run {
			_ = p.Close() // likewise
		}
		run = nil
	}
	if len(run) == 0 {
		return nil
	}
	if run[len(run)-1].state, err = r.stateAfter(run, at, state); err != nil {
		return err
	}
	return r.rewrite(run, at, state)
}

// stateAfter returns the state after segments, as far as they tell it. b is that at the place before them.
func (r *rescue) stateAfter(run []*rescued, at journal.Position, b []byte) ([]byte, error) {
	s := r.restored(b, at)
	for _, p := range run {
		if err := s.fromSegment(p.Segment); err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
	}
	all, err := s.save()
	if err != nil {
		return nil, err
	}
	return all.encode()
}

// restored returns the state that a segment ends with; without metadata, and without lines, if that is damaged.
func (r *rescue) restored(b []byte, at journal.Position) *state {
	s := &state{context: r.ix.dir.Context, lossBudget: maxLost}
	if s.restore(b, at) != nil {
		*s = state{context: s.context, lossBudget: maxLost, lines: map[uuid.UUID]*line{}, metadata: metadata{context: s.context}}
	}
	return s
}

// open opens a segment, or what is left of it.
func (r *rescue) open(name archive.Name) (*rescued, error) {
	dir, file := r.ix.dir.Segments, name.File()
	fits := func(s *archive.Segment) bool {
		return archive.NameOf(s.From(), s.To()) == archive.Name{From: name.From, To: name.To, Chain: name.Chain}
	}
	s, err := archive.Open(dir, file)
	whole := err == nil && fits(s)
	if whole && r.suspects[file] {
		for range s.Verify() {
			whole = false
			break
		}
	}
	if !whole {
		if err == nil {
			_ = s.Close() // likewise
		} else if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		if s, err = archive.SalvageRest(dir, file); err != nil {
			return nil, err
		}
	}
	p := &rescued{Segment: s, name: name, damaged: !whole, to: s.To()}
	if fits(s) {
		p.state, err = s.State()
	} else {
		p.to = journal.Position{Seq: name.To, Chain: uint64(name.Chain) << 32} // the rest of the chain is lost
	}
	if err == nil && p.state == nil {
		err = r.ix.view(func(st *state) {
			for _, o := range st.logs {
				if tip(archive.NameOf(journal.Position{}, o.From())) == tip(name) {
					p.state, p.to = o.State(), o.From()
				}
			}
		})
	}
	if err != nil && !errors.Is(err, ErrDamaged) {
		_ = s.Close() // likewise
		return nil, err
	}
	return p, nil
}

// rewrite puts one segment, which begins at a place, in the place of several. state is that of the context there.
func (r *rescue) rewrite(run []*rescued, at journal.Position, state []byte) error {
	opts, in := r.Options, make([]*archive.Segment, len(run))
	for i, p := range run {
		in[i], opts.Edition = p.Segment, max(opts.Edition, p.name.Edition+1)
	}
	w, err := archive.Create(r.ix.dir.Segments, r.ix.dir.Context, opts)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, p := range run {
		if !p.damaged {
			continue
		}
		if err := r.Keep(p.path()); err != nil {
			return err
		}
	}
	follows := r.changesAfter(state, at)
	x := archive.Rewrite{
		Rescue: r.copyOf,
		Other: func(o *archive.Other) bool { // a version of a message whose row is lost has no number
			return o.Seq > 0 && follows(journal.Kind(o.Kind), o.Body)
		},
	}
	if err := x.Run(w, in); err != nil {
		return err
	}
	last := run[len(run)-1]
	if _, _, err := w.Commit(at, last.to, last.state); err != nil {
		return err
	}
	for _, p := range run {
		if err := r.ix.removeSegment(p.name.File()); err != nil {
			return err
		}
	}
	return r.ix.dir.Logs.SyncDir(ctxfolder.Segments)
}

// copyOf returns another copy of a message: also one of a log that a crash left beside the segment.
func (r *rescue) copyOf(row *archive.Row) []byte {
	e := entryOfRow(row, nil)
	b := r.Copy(&e)
	for i := 0; i < len(r.beside) && b == nil; i++ {
		b = r.ix.copyIn(r.beside[i], &e)
	}
	return b
}

// changesAfter returns a function that tells which records count after a state: where metadata is lost, later changes of it
// say nothing.
func (r *rescue) changesAfter(b []byte, at journal.Position) func(kind journal.Kind, body []byte) bool {
	s := r.restored(b, at)
	return func(kind journal.Kind, body []byte) bool {
		return kind != journal.Metadata && kind != journal.Change || s.metadata.take(kind, body) == nil
	}
}

// unsealed is what a state has after its segments.
type unsealed struct {
	segments   *segments
	logs       []*openLog
	unreadable []string // files of logs
	counts     map[uuid.UUID]Counts
}

// unsealed returns what a damaged history has after its segments; nil if it is not damaged.
func (r *rescue) unsealed() (u *unsealed, err error) {
	err = r.ix.view(func(s *state) {
		if !s.lenient {
			return
		}
		u = &unsealed{segments: s.segments, counts: map[uuid.UUID]Counts{}}
		u.segments.hold()
		for _, o := range s.logs {
			o.hold()
			u.logs = append(u.logs, o)
		}
		for i := range s.problems {
			file := s.problems[i].File
			_, ok := journal.ParseName(file)
			if ok && !slices.ContainsFunc(s.logs, func(o *openLog) bool { return o.Name() == file }) {
				u.unreadable = append(u.unreadable, file)
			}
		}
		for id, ln := range s.lines {
			u.counts[id] = ln.Counts
		}
	})
	return u, err
}

func (u *unsealed) release() {
	u.segments.release()
	for _, o := range u.logs {
		o.release()
	}
}

// logs makes one segment of what is whole in the logs, but for the newest, which is empty, if they are damaged, or records
// before one of them are missing. The positions of messages that are lost have no row there.
//
// Crash order: as in [Index.Seal], and in [Index.Rescue].
func (r *rescue) logs() error {
	u, err := r.unsealed()
	if err != nil || u == nil {
		return err
	}
	defer u.release()
	next := u.logs[len(u.logs)-1]
	x := newSealing(r.ix)
	at, state := journal.Position{}, []byte(nil)
	if last := u.segments.last(); last != nil {
		if state, err = last.state(); err != nil {
			return err
		}
		at = last.To()
	}
	follows := r.changesAfter(state, at)
	bad := u.unreadable
	var whole []string
	for _, o := range u.logs[:len(u.logs)-1] {
		damaged, err := x.readWhole(o, follows)
		if err == nil {
			err = x.keepPayloads(o)
		}
		if err != nil {
			return err
		}
		if x.payloads = nil; damaged {
			bad = append(bad, o.Name())
		} else {
			whole = append(whole, o.Name())
		}
	}
	before, err := r.ix.logsBefore(next)
	if err != nil {
		return err
	}
	bad = append(bad, before...)
	for _, name := range bad {
		if err := r.Keep(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if at != next.From() {
		if err := r.sealAll(x, u, at, next); err != nil {
			return err
		}
	}
	r.ix.Close()
	for _, name := range slices.Concat(whole, bad) {
		if err := r.ix.dir.Logs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.ix.dir.Logs.SyncDir(".")
}

// sealAll makes one segment, from a place to the newest log, of what was read of the logs before that.
func (r *rescue) sealAll(x *sealing, u *unsealed, at journal.Position, next *openLog) error {
	for id, rows := range x.lines {
		maps.DeleteFunc(rows, func(p int64, _ sealed) bool { return p >= u.counts[id].End() })
	}
	for id, c := range u.counts {
		x.cut[id] = c.End() // the record that says so may be lost
	}
	if err := x.eraseFromSegments(r.Options); err != nil {
		return err
	}
	w, err := archive.Create(r.ix.dir.Segments, r.ix.dir.Context, r.Options)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := x.write(w, func(v *sealed) ([]byte, error) {
		i := len(u.logs) - 1
		for u.logs[i].From().Seq >= v.Seq {
			i--
		}
		return u.logs[i].ReadBody(v.off)
	}); err != nil {
		return err
	}
	_, _, err = w.Commit(at, next.From(), next.State())
	return err
}
