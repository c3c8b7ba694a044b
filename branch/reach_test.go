package branch

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestReach compares the reach with what branches and removed lines show: a message is within its line's reach if and
// only if one of them shows it. A purge takes what only the purged lines show, and a restored line shows what it did.
func TestReach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step()
			reach := Reach(w.m)
			for _, l := range w.m.Lines {
				to, reached := reach[l.ID]
				for i, n := range w.own[l.ID] {
					at := l.Base + int64(i)
					shown, kept := 0, 0
					for _, view := range w.views {
						shown += count(view, n)
					}
					for _, view := range w.removed {
						kept += count(view, n)
					}
					if (shown+kept > 0) != (reached && at < to) {
						t.Fatalf("message %d of line %s: shown by %d branches and %d removed lines, reach %d", at, l.ID, shown, kept, to)
					}
					if got := Showing(w.m, l.ID, at); got != shown {
						t.Fatalf("message %d of line %s: shown by %d branches, not by %d", at, l.ID, shown, got)
					}
				}
			}
			if len(w.removed) > 0 {
				switch rapid.IntRange(0, 5).Draw(t, "later") {
				case 0:
					w.purge()
				case 1:
					w.restore(w.someRemoved("restored"))
				}
			}
		}
		for len(w.removed) > 0 {
			w.restore(w.someRemoved("restored last"))
		}
	})
}

func count(view []int, n int) int {
	if slices.Contains(view, n) {
		return 1
	}
	return 0
}

// world is a context in memory: what branches and removed lines must show, and the messages of each line.
type world struct {
	t       *rapid.T
	m       *ctxfolder.Metadata
	own     map[uuid.UUID][]int
	views   map[string][]int
	removed map[uuid.UUID][]int
	next    int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, m: &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "0"}, own: map[uuid.UUID][]int{}, views: map[string][]int{"0": nil}}
	w.removed = map[uuid.UUID][]int{}
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
		line := w.line(name)
		changed, err := Rewind(w.m, name, int64(at), int64(len(view)), w.id(), time.Now())
		if w.check(err); changed {
			w.removed[line] = view
		}
		w.views[name] = slices.Clone(view[:at])
	default:
		if name != "0" {
			w.removed[w.line(name)] = view
			w.check(Remove(w.m, name, time.Now()))
			delete(w.views, name)
		}
	}
	w.same()
}

// same compares every branch and removed line with what it must show, and the metadata with what can be written.
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
	for line, want := range w.removed {
		if got := w.show(line); !slices.Equal(got, want) {
			w.t.Fatalf("removed line %s shows %v, wanted %v", line, got, want)
		}
	}
}

func (w *world) someRemoved(label string) uuid.UUID {
	lines := slices.SortedFunc(maps.Keys(w.removed), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return rapid.SampledFrom(lines).Draw(w.t, label)
}

// purge purges some removed lines.
func (w *world) purge() {
	purged := map[uuid.UUID]bool{}
	for range rapid.IntRange(1, len(w.removed)).Draw(w.t, "purged") {
		line := w.someRemoved("purged line")
		purged[line] = true
		delete(w.removed, line)
	}
	for _, o := range Purge(w.m, func(r *ctxfolder.Removed) bool { return purged[r.Line] }) {
		w.own[o.Line.ID] = w.own[o.Line.ID][:min(o.From-o.Line.Base, int64(len(w.own[o.Line.ID])))]
		if _, there := w.m.Line(o.Line.ID); there == o.Gone {
			w.t.Fatalf("%+v is in the table: %v", o, there)
		}
	}
	w.same()
	for _, o := range Orphans(w.m) {
		if o.Gone || int64(len(w.own[o.Line.ID])) > o.From-o.Line.Base {
			w.t.Fatalf("after a purge nothing shows the end of %+v", o)
		}
	}
	for _, r := range w.m.Removed {
		if _, removed := w.removed[r.Line]; !removed {
			w.t.Fatalf("after a purge the metadata has %+v", r)
		}
	}
}

func (w *world) restore(line uuid.UUID) {
	var was ctxfolder.Removed
	for _, r := range w.m.Removed {
		if r.Line == line {
			was = r
		}
	}
	name, err := Name(w.m, line, was.Name)
	w.check(err)
	w.views[name] = w.removed[line]
	delete(w.removed, line)
	w.same()
}
