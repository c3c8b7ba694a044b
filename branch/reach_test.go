package branch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestReach holds what is collected against what branches show: a message is within its line's reach if and only if one
// shows it, and so many as Showing says; without the others every branch shows what it did; and with them put back so
// does a branch of the line.
func TestReach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step()
			shown := map[int]int{}
			for name := range w.views {
				for _, n := range w.show(w.line(name)) {
					shown[n]++
				}
			}
			reach := Reach(w.m)
			for _, l := range w.m.Lines {
				to, reached := reach[l.ID]
				for i, n := range w.own[l.ID] {
					at := l.Base + int64(i)
					if (shown[n] > 0) != (reached && at < to) {
						t.Fatalf("message %d of line %s: shown by %d branches, reach %d", at, l.ID, shown[n], to)
					}
					if got := Showing(w.m, l.ID, at); got != shown[n] {
						t.Fatalf("message %d of line %s: shown by %d branches, not by %d", at, l.ID, shown[n], got)
					}
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "collect") == 0 {
				w.collect()
			}
		}
		// The last collected comes back first: what it begins on is there, or was collected later.
		for _, o := range slices.Backward(w.trash) {
			w.restore(o)
		}
	})
}

// world is a context in memory: what branches must show, and the messages of each line.
type world struct {
	t     *rapid.T
	m     *ctxfolder.Metadata
	own   map[uuid.UUID][]int
	views map[string][]int
	trash []collected
	next  int
}

// collected is the end of a line that no branch showed.
type collected struct {
	Orphan
	own  []int // that were cut
	view []int // what the line showed
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, m: &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "0"}, own: map[uuid.UUID][]int{}, views: map[string][]int{"0": nil}}
	_, err := New(w.m, "0", w.id())
	w.check(err)
	return w
}

func (w *world) id() uuid.UUID {
	w.next++
	return uuid.UUID{14: byte(w.next >> 8), 15: byte(w.next)}
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) line(name string) uuid.UUID {
	b, err := Get(w.m, name)
	w.check(err)
	return b.Line
}

// show returns what a line shows, by its segments.
func (w *world) show(line uuid.UUID) (view []int) {
	l, ok := w.m.Line(line)
	if !ok {
		w.t.Fatalf("line %s is missing", line)
	}
	segments, err := Segments(w.m, line, 0, l.Base+int64(len(w.own[line])))
	w.check(err)
	for _, s := range segments {
		l, _ := w.m.Line(s.Line)
		view = append(view, w.own[s.Line][s.From-l.Base:s.To-l.Base]...)
	}
	return view
}

func (w *world) step() {
	var names []string
	for n := range w.views {
		names = append(names, n)
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(w.t, "branch")
	view := w.views[name]
	at := rapid.IntRange(0, len(view)).Draw(w.t, "at")
	switch rapid.IntRange(0, 5).Draw(w.t, "step") {
	case 0, 1:
		w.next++
		w.own[w.line(name)] = append(w.own[w.line(name)], w.next)
		w.views[name] = append(slices.Clone(view), w.next)
	case 2:
		id := w.id()
		fork := fmt.Sprint("f", w.next)
		_, err := Fork(w.m, fork, name, int64(at), int64(len(view)), id)
		w.check(err)
		w.views[fork] = slices.Clone(view[:at])
	case 3:
		_, err := Rewind(w.m, name, int64(at), int64(len(view)), w.id(), time.Now())
		w.check(err)
		w.views[name] = slices.Clone(view[:at])
	default:
		if name != "0" {
			w.check(Remove(w.m, name, time.Now()))
			delete(w.views, name)
		}
	}
	w.same()
}

// same holds every branch against what it must show, and the metadata against what can be written.
func (w *world) same() {
	raw, err := w.m.Encode()
	w.check(err)
	_, err = ctxfolder.ParseMetadata(raw)
	w.check(err)
	for name, want := range w.views {
		if got := w.show(w.line(name)); !slices.Equal(got, want) {
			w.t.Fatalf("branch %s shows %v, wanted %v", name, got, want)
		}
	}
}

func (w *world) collect() {
	orphans := Orphans(w.m)
	gone := map[uuid.UUID]bool{}
	// Descendants come first: what they begin on is restored before them.
	slices.Reverse(orphans)
	for _, o := range orphans {
		w.trash = append(w.trash, collected{o, w.own[o.Line.ID][o.From-o.Line.Base:], w.show(o.Line.ID)})
		gone[o.Line.ID] = o.Gone
	}
	for _, o := range orphans {
		w.own[o.Line.ID] = slices.Clone(w.own[o.Line.ID][:o.From-o.Line.Base])
	}
	Forget(w.m, gone)
	for _, o := range orphans {
		if _, there := w.m.Line(o.Line.ID); there == o.Gone {
			w.t.Fatalf("line %s: gone %v, there %v", o.Line.ID, o.Gone, there)
		}
	}
	w.same()
}

func (w *world) restore(o collected) {
	ends := func(id uuid.UUID) (int64, error) {
		l, _ := w.m.Line(id)
		return l.Base + int64(len(w.own[id])), nil
	}
	if o.Line.Parent != uuid.Nil && o.Gone {
		if _, there := w.m.Line(o.Line.Parent); !there {
			if err := Return(w.m.Clone(), o.Line, o.Name, ends); !errors.Is(err, ErrPosition) {
				w.t.Fatalf("a line whose parent is missing: %v", err)
			}
		}
	}
	w.check(Return(w.m, o.Line, o.Name, ends))
	l, _ := w.m.Line(o.Line.ID)
	if have := l.Base + int64(len(w.own[l.ID])); have != o.From {
		w.t.Fatalf("line %s ends at %d, its end begins at %d", l.ID, have, o.From)
	}
	w.own[l.ID] = append(w.own[l.ID], o.own...)
	name, err := Name(w.m, l.ID, o.Name)
	w.check(err)
	w.views[name] = o.view
	w.same()
}
