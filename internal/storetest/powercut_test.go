package storetest_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// workload is what a program does with a context: everything that changes the disk.
func workload() []kit.Step {
	n := 0
	message := func(size int) kit.TranscriptMessage {
		n++
		return kit.TranscriptMessage{kit.TestID(n), fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("y", size))}
	}
	add := func(branch string, sizes ...int) kit.Step {
		var ms []kit.TranscriptMessage
		for _, size := range sizes {
			ms = append(ms, message(size))
		}
		return kit.Step{
			Name: fmt.Sprintf("append %d to %s", len(ms), branch),
			Do: func(w *kit.World) error {
				var drafts []engine.Draft
				for _, m := range ms {
					drafts = append(drafts, engine.Draft{ID: m.ID, Body: []byte(m.Body)})
				}
				results, err := w.Branch(branch).AppendBatch(w.Ctx, drafts)
				for _, r := range results {
					if err == nil {
						err = r.Err
					}
				}
				return err
			},
			Then:   func(s kit.Transcript) { s[branch] = append(s[branch], ms...) },
			Partly: branch,
		}
	}
	replace := func(branch string, at int) kit.Step {
		next := message(900)
		return kit.Step{
			Name: fmt.Sprintf("replace %d of %s", at, branch),
			Do: func(w *kit.World) error {
				ms, err := w.Branch(branch).Range(w.Ctx, int64(at), int64(at)+1)
				if err != nil {
					return err
				}
				return w.Branch(branch).Replace(w.Ctx, ms[0].ID, engine.Draft{Body: []byte(next.Body)}, engine.Shared())
			},
			Then: func(s kit.Transcript) {
				id := s[branch][at].ID
				for _, ms := range s {
					for i := range ms {
						if ms[i].ID == id {
							ms[i].Body = next.Body
						}
					}
				}
			},
		}
	}
	fork := func(from, name string, at int) kit.Step {
		return kit.Step{
			Name: "fork " + name,
			Do: func(w *kit.World) error {
				_, err := w.Branch(from).Fork(w.Ctx, name, int64(at))
				return err
			},
			Then: func(s kit.Transcript) { s[name] = slices.Clone(s[from][:at]) },
		}
	}
	nothing := func(kit.Transcript) {}
	seal := kit.Step{Name: "seal", Do: func(w *kit.World) error { return w.C.Seal(w.Ctx) }, Then: nothing}
	rotate := kit.Step{Name: "rotate", Do: func(w *kit.World) error { return w.C.Exclusively(w.Ctx, w.C.Index.Rotate) }, Then: nothing}
	externalise := func(threshold int64) kit.Step {
		return kit.Step{Name: fmt.Sprint("externalise ", threshold), Then: nothing, Do: func(w *kit.World) error {
			_, err := archiving.Externalise(w.Ctx, w.C, threshold, false)
			return err
		}}
	}
	return []kit.Step{
		{Name: "create", Then: func(s kit.Transcript) { s["main"] = nil }, Do: func(w *kit.World) (err error) {
			w.C, err = w.Store.Create(w.Ctx, engine.Metadata{ID: w.ID})
			return err
		}},
		add("main", 10), add("main", 5000), add("main", 10, 20, 3000, 10), fork("main", "alt", 3), add("alt", 10), rotate,
		replace("main", 5), rotate, add("main", 10), rotate, replace("main", 1), add("main", 10), rotate, seal, add("main", 10),
		replace("main", 1), add("alt", 10, 10), seal, add("main", 10), seal, seal,
		{
			Name: "rename",
			Then: func(s kit.Transcript) { s["neu"] = s["alt"]; delete(s, "alt") },
			Do:   func(w *kit.World) error { return w.C.Rename(w.Ctx, "alt", "neu") },
		},
		add("neu", 10, 700),
		{
			Name: "rewind",
			Then: func(s kit.Transcript) { s["main"] = s["main"][:4:4] },
			Do:   func(w *kit.World) error { return w.Branch("main").Rewind(w.Ctx, 4) },
		},
		rotate, externalise(0), add("main", 10, 10), rotate, externalise(1 << 10), fork("neu", "third", 5), add("third", 10),
		{Name: "remove", Then: func(s kit.Transcript) { delete(s, "neu") }, Do: func(w *kit.World) error { return w.C.Remove(w.Ctx, "neu") }},
		seal, add("third", 10, 10), replace("third", 1), add("main", 10), seal,
		{Name: "title", Then: nothing, Do: func(w *kit.World) error {
			return w.C.Update(w.Ctx, func(m *engine.Metadata) error { m.Title = "t"; return nil })
		}},
		commitMany(message), rotate, add("side", 10), commitMany(message), seal, add("main", 10),
	}
}

// run does the workload until the power goes. It returns what was acknowledged before the step that was cut
// and, with that step's effect, what may be there too.
func run(t *testing.T, disk *crashfs.FS, k int, opts ...engine.Option) (before, after kit.Transcript, cut *kit.Step) {
	t.Helper()
	return kit.RunSteps(t, disk, k, workload(), opts...)
}

// TestPowerCutAtEveryOperation cuts the power at each operation of the workload, takes disks as the cut may have left
// them, and opens them. The operations come in the same order each time, so that a seed gives the same disk again; then
// once more as they come in programs, message files beside syncs, and with commits whose files do not come.
func TestPowerCutAtEveryOperation(t *testing.T) {
	t.Parallel()
	states := cutEverywhere(t, *kit.PowercutSeeds, engine.InOrder())
	states += cutEverywhere(t, 0, engine.WithFiles(engine.FilesBehind))
	states += cutEverywhere(t, *kit.PowercutSeeds/2, engine.InOrder(), engine.WithFiles(engine.FilesHeld))
	t.Logf("%d disk states", states)
}

func cutEverywhere(t *testing.T, seeds int, opts ...engine.Option) (states int) {
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		before, after, cut := run(t, disk, k, opts...)
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range seeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			if err := kit.Verify(disk.Crash(choice), before, after, cut, states%3 == 0); err != nil {
				name := "the end"
				if cut != nil {
					name = cut.Name
				}
				t.Fatalf("power cut at operation %d (%s, in %q), disk %s: %v\n%s", k, kit.LastOp(disk), name, choice, err, disk.Crash(choice).Dump())
			}
		}
		if cut == nil {
			break
		}
	}
	return states
}

// TestWorkloadRepeats: the workload does the same to the disk each time.
func TestWorkloadRepeats(t *testing.T) {
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|log-[0-9a-f]{8}|-[0-9a-f]{8}\.zst|` +
		`\.[0-9a-f]{1,16}(\.tmp|\.suspect| |$)|[0-9]+\+[0-9]+|ID[0-9]+`)
	var first []string
	for range 5 {
		disk := crashfs.New()
		run(t, disk, 0, engine.InOrder())
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

// TestForkOfOthersRecords: a fork at a message that another process wrote and did not sync yet makes it durable:
// metadata.json must not name a position that a power cut takes away.
func TestForkOfOthersRecords(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(b *engine.Branch) error{
		"fork":   func(b *engine.Branch) error { _, err := b.Fork(ctx, "alt", 3); return err },
		"rewind": func(b *engine.Branch) error { return b.Rewind(ctx, 2) },
	} {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		relaxed := kit.Must[*engine.Store](t)(kit.OpenCrash(disk, engine.WithDurability(engine.Relaxed)))
		other := kit.Must[*engine.Context](t)(relaxed.Context(ctx, c.ID()))
		kit.Fill(t, other.Active(), 3) // in the log, not synced
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if err := change(c.Active()); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"fork": 3, "rewind": 2}[name]
		got, err := kit.Read(disk.Crash(crashfs.Lose), c.ID())
		if err != nil || len(got["main"]) != want || name == "fork" && len(got["alt"]) != 3 {
			t.Errorf("%s: %d and %d messages, %v", name, len(got["main"]), len(got["alt"]), err)
		}
	}
}
