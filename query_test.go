package ctxdir_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
	"github.com/google/uuid"
)

// TestQuery compares queries with a filter over everything.
func TestQuery(t *testing.T) {
	ctx, s := t.Context(), ctxdirtest.New(t)
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	var drafts []ctxdir.Draft
	for i := range 200 {
		d, err := ctxdir.NewDraft(map[string]string{"role": []string{"user", "assistant", "tool"}[i%3], "content": fmt.Sprint("a < b & ", i)})
		if err != nil {
			t.Fatal(err)
		}
		d.Type = []string{"", "thought"}[i%2]
		drafts = append(drafts, d)
	}
	placed, err := c.Active().AppendBatch(ctx, drafts)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range []ctxdir.Query{
		{}, {From: 7}, {To: 9}, {From: 7, To: 130, Backward: true}, {Backward: true}, {From: 300}, {To: 300, Backward: true}, {From: 9, To: 7},
		{After: placed[150].ID}, {After: placed[199].ID}, {After: placed[10].ID, From: 100, Backward: true}, {Roles: []string{"user", "tool"}},
		{Roles: []string{"assistant"}, Types: []string{"thought"}, Backward: true, After: placed[3].ID}, {Types: []string{"none"}},
	} {
		var want, got []int64
		for p, d := range drafts {
			at := int64(p)
			behind := q.After == uuid.Nil || at > int64(slices.IndexFunc(placed, func(r ctxdir.AppendResult) bool { return r.ID == q.After }))
			role := []string{"user", "assistant", "tool"}[p%3]
			if at >= q.From && (q.To == 0 || at < q.To) && behind && (q.Roles == nil || slices.Contains(q.Roles, role)) &&
				(q.Types == nil || slices.Contains(q.Types, d.Type)) {
				want = append(want, at)
			}
		}
		if q.Backward {
			slices.Reverse(want)
		}
		for m, err := range c.Active().Query(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Position)
		}
		if !slices.Equal(got, want) {
			t.Errorf("query %d: %v instead of %v", i, got, want)
		}
	}
	for name, q := range map[string]ctxdir.Query{"position": {From: -1}, "message": {After: uuid.New()}} {
		for _, err := range c.Active().Query(ctx, q) {
			if want := map[string]error{"position": ctxdir.ErrPosition, "message": ctxdir.ErrNotExist}[name]; !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for m := range c.Active().Query(ctx, ctxdir.Query{Backward: true}) {
		if string(m.Stored) != `{"content":"a < b & 199","role":"assistant"}` {
			t.Errorf("%s", m.Stored)
		}
		break
	}
	for _, v := range []any{func() {}, []int{1}, "text", nil} {
		if _, err := ctxdir.NewDraft(v); !errors.Is(err, ctxdir.ErrInvalid) {
			t.Errorf("a draft of %T: %v", v, err)
		}
	}
}

// TestBranchWatch follows one of two branches: the last event of a commit that it yields says that no more follow.
func TestBranchWatch(t *testing.T) {
	ctx, s := t.Context(), ctxdirtest.New(t)
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.Active().Fork(ctx, "left", 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := left.Watch(ctx, c.Summary().Sequence)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	all, err := c.Watch(ctx, c.Summary().Sequence)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	say := ctxdir.Draft{Body: []byte(`{"role":"user","content":"Which way?"}`)}
	if _, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
		return errors.Join(tx.Append("left", say, say), tx.Append("main", say))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
		return errors.Join(tx.Rewind("left", 1), tx.NewBranch("right"), tx.Rewind("main", 0))
	}); err != nil {
		t.Fatal(err)
	}
	more, of := map[uint64][]bool{}, map[uint64]bool{}
	for e := range all.Pending(ctx) {
		more[e.Seq] = append(more[e.Seq], e.More)
	}
	var got []string
	for e := range w.Pending(ctx) {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Op, " ", e.Branch))
		of[e.Seq] = e.More
	}
	if want := []string{"message appended left", "message appended left", "branch moved left"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for seq, last := range of {
		if last {
			t.Errorf("the last event of commit %d says that another one follows", seq)
		}
	}
	if several := slices.MaxFunc(slices.Collect(maps.Values(more)), func(a, b []bool) int { return len(a) - len(b) }); len(several) < 3 {
		t.Errorf("no commit has several events: %v", more)
	}
}
