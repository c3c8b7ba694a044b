package search_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/outline"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/go-cmp/cmp"
)

// sameOutlines compares what the index knows of the turns of every branch with what the messages say, and returns the
// number of turns.
func sameOutlines(t *testing.T, when string, s *ctxdir.Store, x *search.Index) (turns int) {
	t.Helper()
	ctx := t.Context()
	for sum, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		check(t, err)
		c, err := s.Open(ctx, sum.ID)
		check(t, err)
		branches, err := c.Branches(ctx)
		check(t, err)
		for i := range branches {
			turns += sameOutline(t, when, c, &branches[i], x)
		}
		check(t, c.Close())
	}
	return turns
}

func sameOutline(t *testing.T, when string, c *ctxdir.Context, info *ctxdir.BranchInfo, x *search.Index) int {
	t.Helper()
	notes := notesOf(t, c, info)
	b, err := x.Outline(t.Context(), c.ID(), info.Line, info.Messages)
	check(t, err)
	var got []outline.Note
	for n, err := range x.Notes(t.Context(), c.ID(), info.Line, 0, info.Messages) {
		check(t, err)
		got = append(got, n)
	}
	if d := cmp.Diff(notes, got); d != "" {
		t.Fatalf("%s: notes of %s (-messages +index): %s", when, info.Name, d)
	}
	want := foldedOf(notes, info.Messages)
	turns, err := x.Turns(t.Context(), c.ID(), info.Line, b, 0, b.Turns()+1)
	check(t, err)
	if d := cmp.Diff(want, turns); d != "" {
		t.Fatalf("%s: turns of %s (-messages +index): %s", when, info.Name, d)
	}
	for _, filter := range []string{"erase", "LOCK tes", "none of these"} {
		numbers, err := x.FindTurns(t.Context(), c.ID(), info.Line, b, filter, 2, 3)
		check(t, err)
		if expected := turnsWith(notes, b, filter); !slices.Equal(numbers, expected) {
			t.Fatalf("%s: turns of %s with %q: %d, want %d", when, info.Name, filter, numbers, expected)
		}
	}
	return len(turns)
}

// notesOf are the notes of what a branch shows.
func notesOf(t *testing.T, c *ctxdir.Context, info *ctxdir.BranchInfo) (all []outline.Note) {
	t.Helper()
	b, err := c.Branch(info.Name)
	check(t, err)
	for m, err := range b.Messages(t.Context(), 0, ctxdir.End) {
		check(t, err)
		if m.Unavailable != nil {
			continue
		}
		body, err := m.Texts(t.Context())
		if err != nil && len(body) == 0 {
			body = m.Stored
		}
		n := outline.Of(m.Role, body, transcript.Parts(body))
		n.Position, n.ID, n.At = m.Position, m.ID, m.CreatedAt
		if n.At.IsZero() {
			n.At = m.StoredAt
		}
		n.At = n.At.UTC()
		all = append(all, n)
	}
	return all
}

// foldedOf are the turns that notes make.
func foldedOf(notes []outline.Note, length int64) []outline.Turn {
	all := []outline.Turn{{}}
	replied := true
	for i := range notes {
		n := &notes[i]
		if n.Marks&outline.Prompt != 0 && replied {
			all[len(all)-1].To = n.Position
			all, replied = append(all, outline.Turn{Number: int64(len(all)), From: n.Position}), false
		}
		replied = replied || n.Marks&outline.Reply != 0
		all[len(all)-1].Add(n)
	}
	all[len(all)-1].To = length
	return all
}

// turnsWith are the turns from 2 on whose prompts have the words of a filter: the first three.
func turnsWith(notes []outline.Note, b *outline.Branch, filter string) (all []int64) {
	for i := range notes {
		n := &notes[i]
		turn := b.TurnAt(n.Position)
		if n.Marks&outline.Prompt == 0 || turn < 2 || slices.Contains(all, turn) || len(all) == 3 {
			continue
		}
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(filter)), func(word string) bool {
			return !strings.Contains(strings.ToLower(n.Text), word)
		}) {
			all = append(all, turn)
		}
	}
	return all
}

// TestNoOutline: the index knows nothing of a context that it does not have.
func TestNoOutline(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer c.Close()
	branches, err := c.Branches(t.Context())
	check(t, err)
	if _, err := x.Outline(t.Context(), c.ID(), branches[0].Line, 0); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("the outline of an unknown context: %v", err)
	}
	check(t, x.UpdateContext(t.Context(), c.ID()))
	b, err := x.Outline(t.Context(), c.ID(), branches[0].Line, 0)
	check(t, err)
	if b.Turns() != 0 || b.Length() != 0 {
		t.Errorf("an empty branch has %d turns and %d messages", b.Turns(), b.Length())
	}
}
