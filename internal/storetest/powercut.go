package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// PowercutSeeds is the number of random disk states after each power cut.
var PowercutSeeds = flag.Int("powercut.seeds", 4, "random disk states for each operation of the workload")

// Cuts yields the operations at which a test cuts the power or lets a call fail, one in every so many, until the test has
// met the end of its workload. A short run takes one in [Stride] of them, and others on another day, so that thirty-two days
// cover all.
func Cuts(every int) iter.Seq[int] {
	return func(yield func(int) bool) {
		step := every * Stride()
		for k := 1 + Today()%Stride()*every; yield(k); k += step {
		}
	}
}

// cutsFrom repeats a short run of another day.
var cutsFrom = flag.Int("cuts.from", -1, "the day, since 1970, whose operations a short run cuts; -1 for today")

// Today is a number that changes from day to day in a short run.
func Today() int {
	switch {
	case !testing.Short():
		return 0
	case *cutsFrom >= 0:
		return *cutsFrom
	}
	return int(time.Now().Unix() / (24 * 60 * 60))
}

// Stride is how many operations lie between two at which a test cuts the power: 1, but for a short run.
func Stride() int {
	if testing.Short() {
		return 32
	}
	return 1
}

// Transcript is what a workload was told: for each branch, the messages it must show.
type Transcript map[string][]TranscriptMessage

// TranscriptMessage is a message of a [Transcript].
type TranscriptMessage struct {
	ID   uuid.UUID
	Body string
}

// Clone returns a copy.
func (s Transcript) Clone() Transcript {
	c := Transcript{}
	for n, ms := range s {
		c[n] = slices.Clone(ms)
	}
	return c
}

// Step is one operation of the workload: what it does to the disk, and what holds when it succeeded.
type Step struct {
	Name string
	Do   func(w *World) error
	Then func(s Transcript)
	// partly says that a prefix of the messages may be there when the power goes meanwhile.
	Partly string
}

// World is what the steps of a workload work on.
type World struct {
	Ctx   context.Context
	Store *engine.Store
	C     *engine.Context
	ID    uuid.UUID
}

// Branch returns a branch of the context.
func (w *World) Branch(name string) *engine.Branch {
	b, err := w.C.Branch(name)
	if err != nil {
		panic(err)
	}
	return b
}

// TestID returns the n-th id of the tests.
func TestID(n int) uuid.UUID {
	id := uuid.UUID{6: 0x40, 8: 0x80}
	id[14], id[15] = byte(n>>8), byte(n)
	return id
}

// CrashOptions are the options of a store whose power is cut.
func CrashOptions(disk *crashfs.FS, more ...engine.Option) []engine.Option {
	return append(Manual(1<<10, engine.WithFS(disk)), more...)
}

// OpenCrash opens the store on a simulated disk.
func OpenCrash(disk *crashfs.FS, more ...engine.Option) (*engine.Store, error) {
	return Open("disk", CrashOptions(disk, more...)...)
}

// RunSteps runs the steps on a new store and cuts the power at the k-th operation of the disk, never if k is 0. It
// returns what the context showed before and must show after the step that was cut.
func RunSteps(t *testing.T, disk *crashfs.FS, k int, steps []Step, opts ...engine.Option) (before, after Transcript, cut *Step) {
	t.Helper()
	s, err := Init("disk", CrashOptions(disk, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if k > 0 {
		disk.CutAt(len(disk.Ops()) + k)
	}
	w := &World{Ctx: context.Background(), Store: s, ID: TestID(60000)}
	before = Transcript{}
	for _, st := range steps {
		after = before.Clone()
		st.Then(after)
		if err := st.Do(w); err != nil {
			if !errors.Is(err, crashfs.ErrPowerCut) && !disk.PowerCut() {
				t.Fatalf("%s: %v", st.Name, err)
			}
			return before, after, &st
		}
		before = after
	}
	return before, before, nil
}

// LastOp returns the last operation of a disk.
func LastOp(disk *crashfs.FS) string {
	ops := disk.Ops()
	return ops[len(ops)-1].String()
}

// Verify opens a disk and compares it with what was said, goes on working with it, and opens it once more; with repair
// it is checked and repaired first.
func Verify(disk *crashfs.FS, before, after Transcript, cut *Step, repair bool) error {
	id := TestID(60000)
	got, err := Read(disk, id)
	if err != nil {
		if len(before) == 0 && errors.Is(err, engine.ErrNotExist) {
			return nil // the context was being made
		}
		return err
	}
	if err := VerifyAllowed(got, before, after, cut); err != nil {
		return err
	}
	s, err := OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	if repair {
		if err := VerifyRepair(ctx, s); err != nil {
			return err
		}
		if again, err := Read(disk, id); err != nil || !Equal(again, got) {
			return fmt.Errorf("after a repair: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
		}
	}
	c, err := s.Context(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	more := TestID(50000)
	at, err := c.Active().Append(ctx, engine.Draft{ID: more, Body: []byte(`{"more":1}`)})
	if err != nil || at.Position != int64(len(got["main"])) {
		return fmt.Errorf("going on: %+v, %w", at, err)
	}
	got["main"] = append(got["main"], TranscriptMessage{more, `{"more":1}`})
	for range 2 {
		if again, err := Read(disk, id); err != nil || !Equal(again, got) {
			return fmt.Errorf("after going on: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
		}
		if err := c.Seal(ctx); err != nil {
			return fmt.Errorf("seal: %w", err)
		}
	}
	// What is durable now must not hang on anything that the first cut left unsynced.
	if again, err := Read(disk.Crash(crashfs.Lose), id); err != nil || !Equal(again, got) {
		return fmt.Errorf("after a second cut: %d messages on main, wanted %d: %w", len(again["main"]), len(got["main"]), err)
	}
	return nil
}

// VerifyRepair reports an error unless a check takes nothing that a power cut leaves for damage, and a repair settles what
// it finds.
func VerifyRepair(ctx context.Context, s *engine.Store) error {
	o := checking.Options{ReadData: true}
	for f, err := range checking.Check(ctx, s, nil, o) {
		if err != nil {
			return err
		}
		if f.Severity == integrity.SeverityError {
			return fmt.Errorf("check: %+v", f)
		}
	}
	for _, err := range checking.Repair(ctx, s, nil, o) {
		if err != nil {
			return err
		}
	}
	for f, err := range checking.Check(ctx, s, nil, o) {
		if err != nil {
			return err
		}
		if f.Severity != integrity.SeverityInfo {
			return fmt.Errorf("check after a repair: %+v", f)
		}
	}
	return nil
}

// Read opens the context and reads every branch.
func Read(disk *crashfs.FS, id uuid.UUID) (Transcript, error) {
	s, err := OpenCrash(disk)
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
	got := Transcript{}
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
				return nil, fmt.Errorf("branch %q, position %d: %s at %d, edited %v, unavailable %w",
					b.Name, len(got[b.Name]), m.ID, m.Position, m.Edited, m.Unavailable)
			}
			got[b.Name] = append(got[b.Name], TranscriptMessage{m.ID, BodyOf(m)})
		}
	}
	return got, nil
}

// Equal reports whether two transcripts are equal.
func Equal(a, b Transcript) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]TranscriptMessage])
}

// VerifyAllowed reports an error unless the state is what was acknowledged, with all, none or, of a batch, a prefix of
// what was going on.
func VerifyAllowed(got, before, after Transcript, cut *Step) error {
	if Equal(got, before) || Equal(got, after) {
		return nil
	}
	if cut != nil && cut.Partly != "" {
		for n := len(before[cut.Partly]); n < len(after[cut.Partly]); n++ {
			part := before.Clone()
			part[cut.Partly] = after[cut.Partly][:n]
			if Equal(got, part) {
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
