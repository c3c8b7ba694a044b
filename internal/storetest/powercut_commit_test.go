package storetest_test

import (
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// commitMany is a commit of several changes: new messages on two lines, one with a payload, a version, a rewind, a
// name.
func commitMany(message func(size int) kit.TranscriptMessage) kit.Step {
	first, large, next := message(10), message(5000), message(10)
	version := message(600).Body
	draft := func(m kit.TranscriptMessage) []engine.Draft { return []engine.Draft{{ID: m.ID, Body: []byte(m.Body)}} }
	return kit.Step{
		Name: "commit",
		Do: func(w *kit.World) error {
			ms, err := w.Branch("third").Range(w.Ctx, 6, 7)
			if err != nil {
				return err
			}
			_, err = w.C.Commit(w.Ctx, func(tx *engine.Tx) error {
				_ = tx.Append("main", draft(first)) // a small record first: a torn group is then likely to begin with a whole record
				if _, there := tx.Metadata().Branch("side"); there {
					_ = tx.Rewind("side", 2)
				} else {
					_ = tx.Fork("side", "main", 2)
				}
				_ = tx.Replace("third", ms[0].ID, engine.Draft{Body: []byte(version)})
				_ = tx.Append("side", draft(large))
				_ = tx.Update(func(m *engine.Metadata) error { m.Title += "x"; return nil })
				return tx.Append("side", draft(next))
			})
			return err
		},
		Then: func(s kit.Transcript) {
			s["side"] = append(s["main"][:2:2], large, next)
			s["main"] = append(s["main"], first)
			s["third"][6].Body = version
		},
	}
}

// TestPowerCutInACommit cuts the power at each operation of commits of several changes. All of a commit is left, or
// nothing of it.
func TestPowerCutInACommit(t *testing.T) {
	t.Parallel()
	cuts, seeds := 0, 30
	if testing.Short() {
		seeds = 4
	}
	for k := 1; ; k++ {
		disk := crashfs.New()
		before, after, cut := run(t, disk, k, engine.InOrder())
		if cut == nil {
			break
		}
		if cut.Name != "commit" {
			continue
		}
		cuts++
		for seed := range seeds {
			if err := kit.Verify(disk.Crash(crashfs.Random(uint64(k*1000+seed))), before, after, cut, seed%3 == 0); err != nil {
				t.Fatalf("power cut at operation %d (%s), seed %d: %v", k, kit.LastOp(disk), seed, err)
			}
		}
	}
	if cuts < 10 {
		t.Errorf("%d cuts in commits", cuts)
	}
}
