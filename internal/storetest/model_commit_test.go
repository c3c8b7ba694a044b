package storetest_test

import (
	"errors"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// planned is a change of one commit: what it does to the context. The model has it already.
type planned func(tx *engine.Tx) error

func unchanged(*engine.Tx) error { return nil }

// commit makes several changes in one commit. Sometimes the last change fails: then none of them happens.
func (d *driver) commit() {
	c := d.handle()
	if rapid.IntRange(0, 4).Draw(d.t, "fails") == 0 {
		d.commitNothing(c)
		return
	}
	named := map[uuid.UUID]*modelLine{}
	for _, b := range c.Metadata().Branches {
		named[b.Line] = d.m.branches[b.Name]
	}
	renamed, stored := false, map[*modelMessage]bool{}
	var plan []planned
	var states []map[string]*modelLine // after each change
	for range rapid.IntRange(0, 6).Draw(d.t, "changes") {
		changes := []string{"append", "append", "fork", "rewind", "switch", "rename", "remove", "title", "replace"}
		switch what := rapid.SampledFrom(changes).Draw(d.t, "change"); what {
		case "rename":
			if renamed {
				continue
			}
			renamed = true
			plan = append(plan, d.planRename())
		case "append":
			plan = append(plan, d.planAppend(stored))
		case "replace":
			plan = append(plan, d.planReplace(stored))
		default:
			plan = append(plan, d.planBranches(what))
		}
		states = append(states, maps.Clone(d.m.branches))
	}
	lines := map[uuid.UUID]*modelLine{}
	done, err := c.Commit(d.ctx(), func(tx *engine.Tx) error {
		clear(lines)
		for i, change := range plan {
			if err := change(tx); err != nil {
				return err
			}
			for name, l := range states[i] {
				if b, ok := tx.Metadata().Branch(name); ok {
					lines[b.Line] = l
				}
			}
		}
		return nil
	})
	d.check(err)
	maps.Copy(named, lines)
	for id, l := range named {
		if !slices.Contains(slices.Collect(maps.Values(d.m.branches)), l) {
			d.trash[id] = l
		}
	}
	if more := d.after(c, done.Sequence); more != "" {
		d.t.Fatalf("the commit has number %d, and %s follows", done.Sequence, more)
	}
}

func (d *driver) planAppend(stored map[*modelMessage]bool) planned {
	name := d.branch()
	l := d.m.branches[name]
	var drafts []engine.Draft
	at := int64(len(l.view()))
	for range rapid.IntRange(1, 3).Draw(d.t, "messages") {
		draft := engine.Draft{ID: uuid.New(), Body: []byte(d.body())}
		m := &modelMessage{draft.ID, string(draft.Body)}
		drafts, l.own, stored[m] = append(drafts, draft), append(l.own, m), true
	}
	return func(tx *engine.Tx) error {
		return errors.Join(tx.Append(name, drafts, engine.AtPosition(at)), tx.Append(name, drafts)) // the second time they exist
	}
}

// planReplace replaces a message that only one branch shows.
func (d *driver) planReplace(stored map[*modelMessage]bool) planned {
	name := d.branch()
	view := d.m.branches[name].view()
	if len(view) == 0 {
		return unchanged
	}
	m := rapid.SampledFrom(view).Draw(d.t, "message")
	if stored[m] {
		return unchanged
	}
	stored[m], m.body = true, d.body()
	body := m.body
	return func(tx *engine.Tx) error {
		return tx.Replace(name, m.id, engine.Draft{Body: []byte(body)}, engine.Shared())
	}
}

func (d *driver) planRename() planned {
	name, to := d.branch(), d.name()
	if d.m.branches[to] != nil {
		return unchanged
	}
	l := d.m.branches[name]
	delete(d.m.branches, name)
	d.m.branches[to] = l
	if d.m.active == name {
		d.m.active = to
	}
	return func(tx *engine.Tx) error { return tx.Rename(name, to) }
}

func (d *driver) planBranches(what string) planned {
	name := d.branch()
	l := d.m.branches[name]
	at := rapid.IntRange(0, len(l.view())).Draw(d.t, "at")
	switch what {
	case "fork":
		to := d.name()
		if d.m.branches[to] != nil {
			return unchanged
		}
		d.m.branches[to] = d.m.begin(l, at)
		return func(tx *engine.Tx) error { return tx.Fork(to, name, int64(at)) }
	case "rewind":
		if at != len(l.view()) {
			d.m.branches[name] = d.m.begin(l, at)
		}
		return func(tx *engine.Tx) error { return tx.Rewind(name, int64(at)) }
	case "switch":
		d.m.active = name
		return func(tx *engine.Tx) error { return tx.Switch(name) }
	case "remove":
		if name == d.m.active {
			return unchanged
		}
		delete(d.m.branches, name)
		return func(tx *engine.Tx) error { return tx.Remove(name) }
	}
	title := d.body()
	d.m.title = title
	return func(tx *engine.Tx) error {
		return tx.Update(func(m *engine.Metadata) error { m.Title = title; return nil })
	}
}

// commitNothing makes a commit whose last change fails, and ignores the failure.
func (d *driver) commitNothing(c *engine.Context) {
	name := d.branch()
	before := d.failingCommit(c, name)
	if more := d.after(c, before); more != "" {
		d.t.Fatalf("a failed commit wrote %s", more)
	}
	_, err := c.Commit(d.ctx(), func(*engine.Tx) error { return nil }, engine.AtSequence(before))
	d.check(err)
	if _, err := c.Commit(d.ctx(), func(*engine.Tx) error { return nil }, engine.AtSequence(before+2)); !errors.Is(err, engine.ErrPosition) {
		d.t.Fatalf("a commit at another sequence number: %v, wanted ErrPosition", err)
	}
}

// after returns the kind of the first record after a number; the end of a log, which a seal writes, is none.
func (d *driver) after(c *engine.Context, seq uint64) (kind string) {
	tail, err := c.Index.Tail(seq)
	d.check(err)
	defer tail.Close()
	r, _, err := tail.Next()
	d.check(err)
	return string(r.Kind)
}

// failingCommit returns the newest sequence number before the commit.
func (d *driver) failingCommit(c *engine.Context, name string) (before uint64) {
	d.check(c.Write(d.ctx(), func(*engine.Metadata) error { // it takes an edit by hand in
		at, err := c.Index.At()
		before = at.Seq
		return err
	}))
	_, err := c.Commit(d.ctx(), func(tx *engine.Tx) error {
		changes := []error{
			tx.Append(name, []engine.Draft{{Body: []byte(d.body())}}), tx.Fork("never", name, 0),
			tx.Update(func(m *engine.Metadata) error { m.Title = "never"; return nil }),
		}
		if i := slices.IndexFunc(changes, func(err error) bool { return err != nil }); i >= 0 {
			return changes[i]
		}
		_ = tx.Fork("never", name, 0)
		return nil
	})
	if !errors.Is(err, engine.ErrExist) {
		d.t.Fatalf("a commit with a failed change: %v, wanted ErrExist", err)
	}
	return before
}
