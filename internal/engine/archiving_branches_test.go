package engine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBranchesOfArchived: forks, rewinds, renames, appends and replacements go on over messages in packs as over those in files.
func TestBranchesOfArchived(t *testing.T) {
	ctx := context.Background()
	c, dir := archivedContext(t)
	main := must[*Branch](t)(c.Branch("main"))
	want := resolvedBodies(t, main)
	n := int64(len(want))
	// An id that is in a pack is there.
	if at, err := main.Append(ctx, Draft{ID: testID(103), Body: []byte(`{"n":3}`)}); err != nil || !at.Existed || at.Position != 3 {
		t.Errorf("a retry: %+v, %v", at, err)
	}
	if at, err := main.Append(ctx, Draft{ID: testID(103), Body: []byte(`{"n":3}`)}, AtPosition(3)); err != nil || !at.Existed {
		t.Errorf("a retry at its position: %+v, %v", at, err)
	}
	if _, err := main.Append(ctx, Draft{ID: testID(103), Body: []byte(`{"n":4}`)}); !errors.Is(err, ErrConflict) {
		t.Errorf("another body: %v", err)
	}
	if _, err := main.Append(ctx, Draft{Body: []byte(`{}`)}, AtPosition(n-1)); !errors.Is(err, ErrPosition) {
		t.Errorf("another position: %v", err)
	}
	at, err := main.Append(ctx, Draft{Body: []byte(`{"end":1}`), Attachments: []Attachment{}}, AtPosition(n))
	if err != nil || at.Position != n {
		t.Errorf("the next position: %+v, %v", at, err)
	}
	with := attachment("/data", "attached "+strings.Repeat("content ", 1000))
	must[Appended](t)(main.Append(ctx, Draft{Body: []byte(`{"data":""}`), Attachments: []Attachment{with}}))
	want = resolvedBodies(t, main)

	// A fork of it and one in the midst of it, a rewind into it: the line that goes on shares the folder.
	fork := must[*Branch](t)(main.Fork(ctx, "fork", 7))
	same(t, "fork", resolvedBodies(t, fork), want[:7])
	must[Appended](t)(fork.Append(ctx, Draft{ID: testID(109), Body: []byte(`{"fork":1}`)}))
	at0 := must[*Branch](t)(main.ForkAt(ctx, "at", testID(104)))
	same(t, "at", resolvedBodies(t, at0), want[:must[int64](t)(at0.Len(ctx))])
	alt := must[*Branch](t)(c.Branch("alt"))
	before := resolvedBodies(t, alt)
	check(t, alt.Rewind(ctx, 6))
	same(t, "rewound", resolvedBodies(t, alt), before[:6])
	taken := must[Appended](t)(alt.Append(ctx, Draft{ID: testID(202), Body: []byte(`{"another":"of that id"}`)}))
	if taken.Existed || taken.Position != 6 {
		t.Errorf("%+v", taken)
	}
	// Its file has a derived name, so the archived one can come back.
	own := filepath.Join(dir, c.ID().String(), "messages", "branch-alt", testID(202).String()+".json")
	if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of another line's message: %v", err)
	}
	after := resolvedBodies(t, alt)
	check(t, c.Rename(ctx, "alt", "renamed"))
	renamed := must[*Branch](t)(c.Branch("renamed"))
	same(t, "renamed", resolvedBodies(t, renamed), after)

	// A replacement lies in a file, and can be archived again.
	if err := main.Replace(ctx, testID(103), Draft{Body: []byte(`{"n":33}`)}); !errors.Is(err, ErrShared) {
		t.Errorf("replace what branches share: %v", err)
	}
	check(t, main.Replace(ctx, testID(110), Draft{Body: []byte(`{"n":110}`)}))
	want[10] = `{"n":110}`
	same(t, "replaced", resolvedBodies(t, main), want)
	if at, err := main.Append(ctx, Draft{ID: testID(110), Body: []byte(`{"n":110}`)}); err != nil || !at.Existed {
		t.Errorf("a retry of what was replaced: %+v, %v", at, err)
	}
	if _, err := main.Append(ctx, Draft{ID: testID(110), Body: []byte(`{"n":10}`)}); !errors.Is(err, ErrConflict) {
		t.Errorf("a retry of what it was before: %v", err)
	}
	clean(t, c.store)
	for round := range 3 {
		switch round {
		case 0, 2:
			must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
		case 1:
			if done := must[Archived](t)(c.Unarchive(ctx, nil)); done.Stayed > 0 {
				t.Errorf("%+v", done)
			}
		}
		same(t, "main", resolvedBodies(t, main), want)
		same(t, "renamed", resolvedBodies(t, renamed), after)
		same(t, "fork", resolvedBodies(t, fork), append(slices.Clone(want[:7]), `{"fork":1}`))
		clean(t, c.store)
		if m := must[*Message](t)(renamed.Message(ctx, testID(202))); !bytes.Contains(m.Stored, []byte("another")) {
			t.Errorf("%s", m.Stored)
		}
		if at, err := renamed.Append(ctx, Draft{ID: testID(202), Body: []byte(`{"another":"of that id"}`)}); err != nil || !at.Existed {
			t.Errorf("%+v, %v", at, err)
		}
	}
	check(t, c.Close())
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
	s, _ := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	fill(t, c.Active(), 3)
	other := must[*Context](t)(s.Context(ctx, c.ID()))
	defer other.Close()
	check(t, other.Rename(ctx, "main", "first"))
	if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{Branch: "first"})); done.Messages != 3 {
		t.Errorf("%d messages archived, want 3", done.Messages)
	}
}
