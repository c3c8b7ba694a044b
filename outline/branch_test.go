package outline_test

import (
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/outline"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn are marks of messages, and the branch that has them, put together from lines as forks do.
func drawn(t *rapid.T) ([]outline.Marks, *outline.Branch) {
	marks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) outline.Marks {
		return rapid.SampledFrom([]outline.Marks{
			0, 0, outline.Prompt, outline.Reply, outline.Reply | outline.Call, outline.Reply | outline.Call | outline.Edit, outline.Failure,
			outline.Break,
		}).Draw(t, "marks")
	}), 0, 300).Draw(t, "all")
	n := int64(len(marks))
	b := outline.NewBranch(n)
	cuts := rapid.SliceOfNDistinct(rapid.Int64Range(0, n), 0, 3, rapid.ID).Draw(t, "cuts")
	cuts = append(cuts, 0, n)
	slices.Sort(cuts)
	for i := range cuts[1:] {
		// Beyond its part, a line has other messages.
		for number := cuts[i] / 64; number*64 < cuts[i+1]; number++ {
			var s outline.Strip
			for bit := range int64(64) {
				at, has := number*64+bit, outline.Marks(63)
				if at >= cuts[i] && at < cuts[i+1] {
					has = marks[at]
				}
				for mark := range s {
					s[mark] |= uint64(has>>mark&1) << bit
				}
			}
			b.Add(number, s, cuts[i], cuts[i+1])
		}
	}
	return marks, b
}

// TestBranch compares turns and maps with what a look at each message says.
func TestBranch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks, b := drawn(t)
		var begins []int64
		replied := true
		turnOf := make([]int64, len(marks))
		for i, m := range marks {
			if m&outline.Prompt != 0 && replied {
				begins, replied = append(begins, int64(i)), false
			}
			replied = replied || m&outline.Reply != 0
			turnOf[i] = int64(len(begins))
		}
		if got := b.Turns(); got != int64(len(begins)) {
			t.Fatalf("%d turns, want %d", got, len(begins))
		}
		for i, want := range turnOf {
			if got := b.TurnAt(int64(i)); got != want {
				t.Fatalf("message %d is in turn %d, want %d", i, got, want)
			}
		}
		next := int64(0)
		for number := range b.Turns() + 1 {
			from, to := b.Turn(number)
			if from != next || to < from {
				t.Fatalf("turn %d is at %d to %d, after %d", number, from, to, next)
			}
			next = to
		}
		if from, to := b.Turn(b.Turns() + 1); next != b.Length() || from != to {
			t.Fatalf("the last turn ends at %d of %d; one behind it is at %d to %d", next, b.Length(), from, to)
		}
		stretches := rapid.IntRange(1, 400).Draw(t, "stretches")
		m := b.Map(stretches)
		var want [outline.MarkCount][]int64
		for mark := range want {
			want[mark] = make([]int64, (int64(len(marks))+m.Size-1)/m.Size)
			if len(want[mark]) > stretches {
				t.Fatalf("%d stretches, want at most %d", len(want[mark]), stretches)
			}
			for i, has := range marks {
				want[mark][int64(i)/m.Size] += int64(has >> mark & 1)
			}
		}
		if d := cmp.Diff(want, m.Counts); d != "" {
			t.Fatalf("map (-want +got): %s", d)
		}
		most := rapid.IntRange(0, 5).Draw(t, "most")
		var breaks []int64
		for i, has := range marks {
			if has&outline.Break != 0 {
				breaks = append(breaks, int64(i))
			}
		}
		if got := b.Breaks(most); !slices.Equal(got, breaks[max(len(breaks)-most, 0):]) {
			t.Fatalf("the last %d of the breaks %v are %v", most, breaks, got)
		}
	})
}

// TestBranchOutside: strips beyond the length, or before the beginning, add nothing.
func TestBranchOutside(t *testing.T) {
	full := outline.Strip{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	for _, length := range []int64{-1, 0, 1, 64, 65} {
		b := outline.NewBranch(length)
		for _, number := range []int64{-1, 1, 2, 1 << 50} {
			b.Add(number, full, 0, 1<<62)
		}
		want := max(length-64, 0)
		if m := b.Map(1); length > 0 && m.Counts[0][0] != want || length <= 0 && len(m.Counts[0]) != 0 {
			t.Errorf("a branch of %d messages: %+v", length, m)
		}
	}
}
