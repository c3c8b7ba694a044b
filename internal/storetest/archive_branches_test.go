package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestBranchesOfArchived: forks, rewinds, renames, appends and replacements go on over archived messages as over others.
func TestBranchesOfArchived(t *testing.T) {
	ctx := context.Background()
	c := archivedContext(t)
	main := kit.Must[*engine.Branch](t)(c.Branch("main"))
	want := kit.ResolvedBodies(t, main)
	n := int64(len(want))
	// An archived message is there.
	third := engine.Draft{ID: kit.TestID(103), Body: []byte(`{"n":3}`)}
	if at, err := main.Append(ctx, third); err != nil || !at.Existed || at.Position != 3 {
		t.Errorf("a retry: %+v, %v", at, err)
	}
	if at, err := main.Append(ctx, third, engine.AtPosition(3)); err != nil || !at.Existed {
		t.Errorf("a retry at its position: %+v, %v", at, err)
	}
	if _, err := main.Append(ctx, engine.Draft{ID: kit.TestID(103), Body: []byte(`{"n":4}`)}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("another body: %v", err)
	}
	if _, err := main.Append(ctx, engine.Draft{Body: []byte(`{}`)}, engine.AtPosition(n-1)); !errors.Is(err, engine.ErrPosition) {
		t.Errorf("another position: %v", err)
	}
	at, err := main.Append(ctx, engine.Draft{Body: []byte(`{"end":1}`), Attachments: []engine.Attachment{}}, engine.AtPosition(n))
	if err != nil || at.Position != n {
		t.Errorf("the next position: %+v, %v", at, err)
	}
	with := kit.Attachment("/data", "attached "+strings.Repeat("content ", 1000))
	kit.Append(t, main, engine.Draft{Body: []byte(`{"data":""}`), Attachments: []engine.Attachment{with}})
	want = kit.ResolvedBodies(t, main)

	// A fork of it and one in the midst of it, a rewind into it.
	fork := kit.Must[*engine.Branch](t)(main.Fork(ctx, "fork", 7))
	same(t, "fork", kit.ResolvedBodies(t, fork), want[:7])
	kit.Append(t, fork, engine.Draft{ID: kit.TestID(109), Body: []byte(`{"fork":1}`)})
	at0 := kit.Must[*engine.Branch](t)(main.Fork(ctx, "at", 5))
	same(t, "at", kit.ResolvedBodies(t, at0), want[:kit.Must[int64](t)(at0.Len(ctx))])
	alt := kit.Must[*engine.Branch](t)(c.Branch("alt"))
	before := kit.ResolvedBodies(t, alt)
	kit.Check(t, alt.Rewind(ctx, 6))
	same(t, "rewound", kit.ResolvedBodies(t, alt), before[:6])
	taken := kit.Append(t, alt, engine.Draft{ID: kit.TestID(202), Body: []byte(`{"another":"of that id"}`)})
	if taken.Existed || taken.Position != 6 {
		t.Errorf("%+v", taken)
	}
	after := kit.ResolvedBodies(t, alt)
	kit.Check(t, c.Rename(ctx, "alt", "renamed"))
	renamed := kit.Must[*engine.Branch](t)(c.Branch("renamed"))
	same(t, "renamed", kit.ResolvedBodies(t, renamed), after)

	// A replacement has a file, and can be archived again.
	if err := main.Replace(ctx, kit.TestID(103), engine.Draft{Body: []byte(`{"n":33}`)}); !errors.Is(err, engine.ErrShared) {
		t.Errorf("replace what branches share: %v", err)
	}
	kit.Check(t, main.Replace(ctx, kit.TestID(110), engine.Draft{Body: []byte(`{"n":110}`)}))
	want[10] = `{"n":110}`
	same(t, "replaced", kit.ResolvedBodies(t, main), want)
	if at, err := main.Append(ctx, engine.Draft{ID: kit.TestID(110), Body: []byte(`{"n":110}`)}); err != nil || !at.Existed {
		t.Errorf("a retry of what was replaced: %+v, %v", at, err)
	}
	if _, err := main.Append(ctx, engine.Draft{ID: kit.TestID(110), Body: []byte(`{"n":10}`)}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a retry of what it was before: %v", err)
	}
	clean(t, c.Store)
	for round := range 3 {
		switch round {
		case 0, 2:
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		case 1:
			if done := kit.Must[archiving.Result](t)(archiving.Unarchive(ctx, c, nil)); done.Stayed > 0 {
				t.Errorf("%+v", done)
			}
		}
		same(t, "main", kit.ResolvedBodies(t, main), want)
		same(t, "renamed", kit.ResolvedBodies(t, renamed), after)
		same(t, "fork", kit.ResolvedBodies(t, fork), append(slices.Clone(want[:7]), `{"fork":1}`))
		clean(t, c.Store)
		if m := kit.Must[*engine.Message](t)(renamed.Message(ctx, kit.TestID(202))); !bytes.Contains(m.Stored, []byte("another")) {
			t.Errorf("%s", m.Stored)
		}
		retry := engine.Draft{ID: kit.TestID(202), Body: []byte(`{"another":"of that id"}`)}
		if at, err := renamed.Append(ctx, retry); err != nil || !at.Existed {
			t.Errorf("%+v, %v", at, err)
		}
	}
	kit.Check(t, c.Close())
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d messages, wanted %d", what, len(got), len(want))
	}
}

// TestArchiveRenamed: through a handle that does not know of the branch's name yet.
func TestArchiveRenamed(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 3)
	other := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer other.Close()
	kit.Check(t, other.Rename(ctx, "main", "first"))
	if done := kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{Branch: "first"})); done.Messages != 3 {
		t.Errorf("%d messages archived, want 3", done.Messages)
	}
}
