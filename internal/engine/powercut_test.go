package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

var powercutSeeds = flag.Int("powercut.seeds", 4, "random disk states for each operation of the workload")

// stride is how many operations are passed over between two power cuts: none, but for a short run.
func stride() int {
	if testing.Short() {
		return 9
	}
	return 1
}

// said is what a workload was told: for each branch, the messages it must show.
type said map[string][]saidMessage

type saidMessage struct {
	id   uuid.UUID
	body string
}

func (s said) clone() said {
	c := said{}
	for n, ms := range s {
		c[n] = slices.Clone(ms)
	}
	return c
}

// step is one operation of the workload: what it does to the disk, and what holds when it succeeded.
type step struct {
	name string
	do   func(w *world) error
	then func(s said)
	// partly says that a prefix of the messages may be there when the power goes meanwhile.
	partly string
}

type world struct {
	ctx   context.Context
	store *Store
	c     *Context
	id    uuid.UUID
}

func (w *world) branch(name string) *Branch {
	b, err := w.c.Branch(name)
	if err != nil {
		panic(err)
	}
	return b
}

func testID(n int) uuid.UUID {
	id := uuid.UUID{6: 0x40, 8: 0x80}
	id[14], id[15] = byte(n>>8), byte(n)
	return id
}

// workload is what a program does with a context: everything that changes the disk.
func workload() []step {
	n := 0
	message := func(size int) saidMessage {
		n++
		return saidMessage{testID(n), fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("y", size))}
	}
	add := func(branch string, sizes ...int) step {
		var ms []saidMessage
		for _, size := range sizes {
			ms = append(ms, message(size))
		}
		return step{
			name: fmt.Sprintf("append %d to %s", len(ms), branch),
			do: func(w *world) error {
				var drafts []Draft
				for _, m := range ms {
					drafts = append(drafts, Draft{ID: m.id, Body: []byte(m.body)})
				}
				results, err := w.branch(branch).AppendBatch(w.ctx, drafts)
				for _, r := range results {
					if err == nil {
						err = r.Err
					}
				}
				return err
			},
			then:   func(s said) { s[branch] = append(s[branch], ms...) },
			partly: branch,
		}
	}
	replace := func(branch string, at int) step {
		next := message(900)
		return step{
			name: fmt.Sprintf("replace %d of %s", at, branch),
			do: func(w *world) error {
				ms, err := w.branch(branch).Range(w.ctx, int64(at), int64(at)+1)
				if err != nil {
					return err
				}
				return w.branch(branch).Replace(w.ctx, ms[0].ID, Draft{Body: []byte(next.body)}, Shared())
			},
			then: func(s said) {
				id := s[branch][at].id
				for _, ms := range s {
					for i := range ms {
						if ms[i].id == id {
							ms[i].body = next.body
						}
					}
				}
			},
		}
	}
	fork := func(from, name string, at int) step {
		return step{
			name: "fork " + name,
			do: func(w *world) error {
				_, err := w.branch(from).Fork(w.ctx, name, int64(at))
				return err
			},
			then: func(s said) { s[name] = slices.Clone(s[from][:at]) },
		}
	}
	fold := step{name: "fold", do: func(w *world) error { return w.c.Fold(w.ctx) }, then: func(said) {}}
	lazily := step{name: "fold lazily", do: func(w *world) error { return w.c.log.Fold(w.ctx, false) }, then: func(said) {}}
	shed := step{name: "shed", do: func(w *world) error { return w.c.log.Shed(w.ctx) }, then: func(said) {}}
	externalise := func(threshold int64) step {
		return step{name: fmt.Sprint("externalise ", threshold), then: func(said) {}, do: func(w *world) error {
			_, err := w.c.Externalise(w.ctx, threshold, false)
			return err
		}}
	}
	return []step{
		{name: "create", then: func(s said) { s["main"] = nil }, do: func(w *world) (err error) {
			w.c, err = w.store.Create(w.ctx, Metadata{ID: w.id})
			return err
		}},
		add("main", 10), add("main", 5000), add("main", 10, 20, 3000, 10), fork("main", "alt", 3), add("alt", 10), lazily,
		replace("main", 5), lazily, add("main", 10), lazily, replace("main", 1), add("main", 10), lazily, fold, add("main", 10),
		replace("main", 1), add("alt", 10, 10), fold, add("main", 10), shed, shed,
		{
			name: "rename",
			then: func(s said) { s["neu"] = s["alt"]; delete(s, "alt") },
			do:   func(w *world) error { return w.c.Rename(w.ctx, "alt", "neu") },
		},
		add("neu", 10, 700),
		{
			name: "rewind",
			then: func(s said) { s["main"] = s["main"][:4:4] },
			do:   func(w *world) error { return w.branch("main").Rewind(w.ctx, 4) },
		},
		lazily, externalise(0), add("main", 10, 10), lazily, externalise(1 << 10), fork("neu", "third", 5), add("third", 10),
		{name: "remove", then: func(s said) { delete(s, "neu") }, do: func(w *world) error { return w.c.Remove(w.ctx, "neu") }},
		shed, add("third", 10, 10), replace("third", 1), add("main", 10), fold,
		{name: "title", then: func(said) {}, do: func(w *world) error {
			return w.c.Update(w.ctx, func(m *Metadata) error { m.Title = "t"; return nil })
		}},
		add("main", 10),
	}
}

// onCrashFS are the options of a store whose power is cut.
func onCrashFS(disk *crashfs.FS, more ...Option) []Option {
	return append([]Option{withFS(disk), WithFoldBytes(-1), withRetain(2), WithTextThreshold(1 << 10), withoutPause()}, more...)
}

func openCrash(disk *crashfs.FS) (*Store, error) { return Open("disk", onCrashFS(disk)...) }

// run does the workload until the power goes. It returns what was acknowledged before the step that was cut
// and, with that step's effect, what may be there too.
func run(t *testing.T, disk *crashfs.FS, k int, opts ...Option) (before, after said, cut *step) {
	t.Helper()
	return runSteps(t, disk, k, workload(), opts...)
}

func runSteps(t *testing.T, disk *crashfs.FS, k int, steps []step, opts ...Option) (before, after said, cut *step) {
	t.Helper()
	s, err := Init("disk", onCrashFS(disk, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if k > 0 {
		disk.CutAt(len(disk.Ops()) + k)
	}
	w := &world{ctx: context.Background(), store: s, id: testID(60000)}
	before = said{}
	for _, st := range steps {
		after = before.clone()
		st.then(after)
		if err := st.do(w); err != nil {
			if !errors.Is(err, crashfs.ErrPowerCut) && !disk.PowerCut() {
				t.Fatalf("%s: %v", st.name, err)
			}
			return before, after, &st
		}
		before = after
	}
	return before, before, nil
}

// TestPowerCutAtEveryOperation cuts the power at each operation of the workload, takes disks as the cut may have left
// them, and opens them. The operations come in the same order each time, so that a seed gives the same disk again; then
// once more as they come in programs, message files beside syncs.
func TestPowerCutAtEveryOperation(t *testing.T) {
	t.Parallel()
	states := cutEverywhere(t, *powercutSeeds, inOrder())
	states += cutEverywhere(t, 0)
	t.Logf("%d disk states", states)
}

func cutEverywhere(t *testing.T, seeds int, opts ...Option) (states int) {
	for k := 1; ; k += stride() {
		disk := crashfs.New()
		before, after, cut := run(t, disk, k, opts...)
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range seeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			if err := verify(disk.Crash(choice), before, after, cut, states%3 == 0); err != nil {
				name := "the end"
				if cut != nil {
					name = cut.name
				}
				t.Fatalf("power cut at operation %d (%s, in %q), disk %s: %v\n%s", k, lastOp(disk), name, choice, err, disk.Crash(choice).Dump())
			}
		}
		if cut == nil {
			return states
		}
	}
}

// TestWorkloadRepeats: the workload does the same to the disk each time.
func TestWorkloadRepeats(t *testing.T) {
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\.[0-9a-f]{1,16}(\.tmp| |$)|[0-9]+\+[0-9]+|ID[0-9]+`)
	var first []string
	for range 5 {
		disk := crashfs.New()
		run(t, disk, 0, inOrder())
		var ops []string
		for _, o := range disk.Ops() {
			ops = append(ops, ids.ReplaceAllString(o.String(), "ID"))
		}
		if first == nil {
			first = ops
		}
		for i := range max(len(ops), len(first)) {
			if i >= len(ops) || i >= len(first) || ops[i] != first[i] {
				t.Fatalf("operation %d of %d, %d: %q, before it was %q", i, len(ops), len(first), ops[min(i, len(ops)-1)], first[min(i, len(first)-1)])
			}
		}
	}
}

func lastOp(disk *crashfs.FS) string {
	ops := disk.Ops()
	return ops[len(ops)-1].String()
}

// verify opens a disk and compares it with what was said, goes on working with it, and opens it once more; with repair
// it is checked and repaired first.
func verify(disk *crashfs.FS, before, after said, cut *step, repair bool) error {
	id := testID(60000)
	got, err := read(disk, id)
	if err != nil {
		if len(before) == 0 && errors.Is(err, ErrNotExist) {
			return nil // the context was being made
		}
		return err
	}
	if err := allowed(got, before, after, cut); err != nil {
		return err
	}
	s, err := openCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	if repair {
		if err := settles(ctx, s); err != nil {
			return err
		}
		if again, err := read(disk, id); err != nil || !equal(again, got) {
			return fmt.Errorf("after a repair: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
		}
	}
	c, err := s.Context(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	more := testID(50000)
	if at, err := c.Active().Append(ctx, Draft{ID: more, Body: []byte(`{"more":1}`)}); err != nil || at.Position != int64(len(got["main"])) {
		return fmt.Errorf("going on: %+v, %w", at, err)
	}
	got["main"] = append(got["main"], saidMessage{more, `{"more":1}`})
	for range 2 {
		if again, err := read(disk, id); err != nil || !equal(again, got) {
			return fmt.Errorf("after going on: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
		}
		if err := c.Fold(ctx); err != nil {
			return fmt.Errorf("fold: %w", err)
		}
	}
	// What is durable now must not hang on anything that the first cut left unsynced.
	if again, err := read(disk.Crash(crashfs.Lose), id); err != nil || !equal(again, got) {
		return fmt.Errorf("after a second cut: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
	}
	return nil
}

// settles reports an error unless a check takes nothing that a power cut leaves of an index or a journal for damage, and a repair settles
// what it finds.
func settles(ctx context.Context, s *Store) error {
	o := CheckOptions{ReadData: true}
	for f, err := range s.Check(ctx, nil, o) {
		if err != nil {
			return err
		}
		if f.Severity == SeverityError {
			return fmt.Errorf("check: %+v", f)
		}
	}
	for _, err := range s.Repair(ctx, nil, o) {
		if err != nil {
			return err
		}
	}
	for f, err := range s.Check(ctx, nil, o) {
		if err != nil {
			return err
		}
		if f.Severity != SeverityInfo {
			return fmt.Errorf("check after a repair: %+v", f)
		}
	}
	return nil
}

// read opens the context and reads every branch.
func read(disk *crashfs.FS, id uuid.UUID) (said, error) {
	s, err := openCrash(disk)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ctx := context.Background()
	c, err := s.Context(ctx, id)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	got := said{}
	for _, b := range c.Metadata().Branches {
		open, err := c.Branch(b.Name)
		if err != nil {
			return nil, err
		}
		got[b.Name] = nil
		for m, err := range open.Messages(ctx) {
			if err != nil {
				return nil, err
			}
			if m.Unavailable != nil || m.Edited || m.Position != int64(len(got[b.Name])) {
				return nil, fmt.Errorf("branch %q, position %d: %s at %d, unavailable %v, edited %v",
					b.Name, len(got[b.Name]), m.ID, m.Position, m.Unavailable, m.Edited)
			}
			got[b.Name] = append(got[b.Name], saidMessage{m.ID, bodyOf(m)})
		}
	}
	return got, nil
}

func equal(a, b said) bool {
	return maps.EqualFunc(a, b, func(x, y []saidMessage) bool { return slices.Equal(x, y) })
}

// allowed reports an error unless the state is what was acknowledged, with all, none or, of a batch, a prefix of what
// was going on.
func allowed(got, before, after said, cut *step) error {
	if equal(got, before) || equal(got, after) {
		return nil
	}
	if cut != nil && cut.partly != "" {
		for n := len(before[cut.partly]); n < len(after[cut.partly]); n++ {
			part := before.clone()
			part[cut.partly] = after[cut.partly][:n]
			if equal(got, part) {
				return nil
			}
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&b, " %s: %d (acknowledged %d, with the step %d)", name, len(got[name]), len(before[name]), len(after[name]))
	}
	return fmt.Errorf("neither what was acknowledged nor the next step:%s", b.String())
}

// TestForkOfOthersRecords: a fork at a message that another process wrote and did not sync yet makes it durable:
// metadata.json must not name a position that a power cut takes away.
func TestForkOfOthersRecords(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(b *Branch) error{
		"fork":   func(b *Branch) error { _, err := b.Fork(ctx, "alt", 3); return err },
		"rewind": func(b *Branch) error { return b.Rewind(ctx, 2) },
	} {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		relaxed := must[*Store](t)(Open("disk", withFS(disk), WithFoldBytes(-1), WithDurability(Relaxed)))
		other := must[*Context](t)(relaxed.Context(ctx, c.ID()))
		fill(t, other.Active(), 3) // in the journal, not synced
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if err := change(c.Active()); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"fork": 3, "rewind": 2}[name]
		got, err := read(disk.Crash(crashfs.Lose), c.ID())
		if err != nil || len(got["main"]) != want || name == "fork" && len(got["alt"]) != 3 {
			t.Errorf("%s: %d and %d messages, %v", name, len(got["main"]), len(got["alt"]), err)
		}
	}
}
