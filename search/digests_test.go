package search_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// strict is an index that fails the test where it would make a counter read messages.
type strict struct {
	t *testing.T
	x *search.Index
}

func (s strict) UpdateContext(ctx context.Context, id uuid.UUID) error {
	err := s.x.UpdateContext(ctx, id)
	if err != nil {
		s.t.Errorf("%s: %v", id, err)
	}
	return err
}

func (s strict) Digests(ctx context.Context, id, line uuid.UUID, from int64) iter.Seq2[usage.Digest, error] {
	return func(yield func(usage.Digest, error) bool) {
		for d, err := range s.x.Digests(ctx, id, line, from) {
			if err != nil {
				s.t.Errorf("%s: %v", id, err)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// stepsOf returns the steps of all contexts of a store, the oldest first, from an index or, if x is nil, from the messages.
func stepsOf(t *testing.T, s *ctxdir.Store, x usage.Index) (all []usage.Step) {
	t.Helper()
	n := usage.NewCounter(s)
	if x != nil {
		n.UseIndex(x)
	}
	for sum, err := range s.List(t.Context(), ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderCreated, Reverse: true}) {
		check(t, err)
		c, err := s.Open(t.Context(), sum.ID)
		check(t, err)
		for step, err := range n.Steps(t.Context(), c) {
			check(t, err)
			step.At = step.At.UTC()
			all = append(all, step)
		}
		check(t, c.Close())
	}
	return all
}

// sameSteps compares the steps that the index gives with those of a scan. It returns their number.
func sameSteps(t *testing.T, when string, s *ctxdir.Store, x *search.Index) int {
	t.Helper()
	got, want := stepsOf(t, s, strict{t, x}), stepsOf(t, s, nil)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: %d steps in the index, %d in the messages; the first missing one is %+v", when, len(got), len(want), want[i])
		case i >= len(want):
			t.Fatalf("%s: %d steps in the index, %d in the messages; the first additional one is %+v", when, len(got), len(want), got[i])
		case got[i] != want[i]:
			t.Fatalf("%s: step %d of the index is\n%+v, that of the messages\n%+v", when, i, got[i], want[i])
		}
	}
	return len(want)
}

// TestStepsOfSamples compares the steps of every sample, and of the folder that CTXDIR_TEST_DATA names.
func TestStepsOfSamples(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	roots := []string{"../testdata"}
	if root := os.Getenv("CTXDIR_TEST_DATA"); root != "" && !testing.Short() {
		roots = append(roots, root)
	}
	importSamples(t, s, roots...)
	x := openIndex(t, s)
	_, err := x.Update(t.Context(), search.UpdateOptions{})
	check(t, err)
	t.Logf("%d steps, %d turns", sameSteps(t, "imported", s, x), sameOutlines(t, "imported", s, x))
}

const call = `{"role":"assistant","content":"x","model":%q,"usage":{"input_tokens":%d,"output_tokens":1}}`

// TestDigestsFollow: a count through the index sees each commit, also without an update before, and a rebuilt index.
func TestDigestsFollow(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer c.Close()
	for i := range 5 {
		_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: fmt.Appendf(nil, call, "m", i)})
		check(t, err)
		if n := len(stepsOf(t, s, strict{t, x})); n != i+1 {
			t.Fatalf("%d steps of %d", n, i+1)
		}
	}
	check(t, x.Rebuild(t.Context()))
	if n := sameSteps(t, "rebuilt", s, x); n != 5 {
		t.Errorf("%d steps of 5", n)
	}
}

// failing is an index that fails after some digests.
type failing struct {
	*search.Index
	after int
}

func (f *failing) Digests(ctx context.Context, id, line uuid.UUID, from int64) iter.Seq2[usage.Digest, error] {
	return func(yield func(usage.Digest, error) bool) {
		for d, err := range f.Index.Digests(ctx, id, line, from) {
			if f.after--; f.after < 0 {
				d, err = usage.Digest{}, os.ErrInvalid
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// TestDigestsFail: where the index fails, the messages are read, and each step still counts once.
func TestDigestsFail(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	for range 2 {
		c, err := s.Create(t.Context(), ctxdir.Metadata{})
		check(t, err)
		for i := range 100 { // more than wait for a repetition
			_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: fmt.Appendf(nil, call, "m", i)})
			check(t, err)
		}
		check(t, c.Close())
	}
	want := stepsOf(t, s, nil)
	for _, after := range []int{0, 1, 80, 100, 180} {
		got := stepsOf(t, s, &failing{x, after})
		if len(got) != len(want) || len(got) != 200 {
			t.Fatalf("after %d: %d steps, want %d", after, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("after %d: %+v, want %+v", after, got[i], want[i])
			}
		}
	}
}

// TestDigestsForget: what is erased leaves neither a step nor the name of its model nor the beginning of its text in the
// index.
func TestDigestsForget(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer c.Close()
	var ids []uuid.UUID
	for i, model := range []string{"keptmodelname", "erasedmodelname"} {
		body := strings.Replace(fmt.Sprintf(call, model, i), `"x"`, `"`+[]string{"Kept Text!", "Erased Text!"}[i]+`"`, 1)
		m, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(body)})
		check(t, err)
		ids = append(ids, m.ID)
	}
	if n := sameSteps(t, "appended", s, x); n != 2 {
		t.Fatalf("%d steps of 2", n)
	}
	for _, text := range []string{"keptmodelname", "erasedmodelname", "Kept Text!", "Erased Text!"} {
		if holds(t, s, text) == "" {
			t.Errorf("the index does not have %q", text)
		}
	}
	_, err = s.Erase(t.Context(), c.ID(), ids[1:], ctxdir.EraseOptions{Shared: true})
	check(t, err)
	for _, text := range []string{"erasedmodelname", "Erased Text!"} {
		if in := holds(t, s, text); in != "" {
			t.Errorf("%s has %q of an erased message", in, text)
		}
	}
	if n := sameSteps(t, "erased", s, x); n != 1 {
		t.Errorf("%d steps of 1", n)
	}
}

// TestDigestsOfForks: estimates count the messages that branches share once.
func TestDigestsOfForks(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer c.Close()
	add := func(b *ctxdir.Branch, texts ...string) {
		for i, text := range texts {
			body := fmt.Appendf(nil, `{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
			_, err := b.Append(t.Context(), ctxdir.Draft{Body: body})
			check(t, err)
		}
	}
	add(c.Active(), "one question", "one answer", "another question", "another answer", "a third one", "a third answer")
	fork, err := c.Active().Fork(t.Context(), "fork", 3)
	check(t, err)
	add(fork, "on the fork", "as you say")
	again, err := fork.Fork(t.Context(), "again", 4)
	check(t, err)
	add(again, "on its fork", "so be it")
	if n := sameSteps(t, "forked", s, x); n != 5 {
		t.Errorf("%d steps of 5", n)
	}
	check(t, c.Active().Rewind(t.Context(), 5))
	add(c.Active(), "instead of the third one", "no")
	if n := sameSteps(t, "rewound", s, x); n != 5 {
		t.Errorf("%d steps of 5", n)
	}
	check(t, c.Active().Rewind(t.Context(), 1)) // the fork has a part of the line that it shows for itself now
	add(c.Active(), "instead of all")
	if n := sameSteps(t, "rewound again", s, x); n != 3 {
		t.Errorf("%d steps of 3", n)
	}
}
