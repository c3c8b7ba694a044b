// Package kill kills processes in the middle of their work, again and again, and looks what they leave.
//
// Several writers work on one store; each is killed with SIGKILL at a moment of its own, so that the others go on
// beside what it left, or all are killed at once. Then the store is audited, and the next round goes on with it. This
// shows that nothing acknowledged hangs on memory of a process, that locks go with it, and that no half-done operation
// is in anybody's way. What reached the system's memory stays there: a power cut is another thing.
package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// Options say what is done.
type Options struct {
	Dir     string // a folder, for everything
	Rounds  int
	Life    int // rounds of a store; then there is a new one
	Writers int
	Longest time.Duration // of a round
	Seed    uint64
	Logf    func(format string, args ...any)
}

// Run runs rounds. A store in which there are problems stays in Dir as it is then, and the next round begins with a new
// one.
func Run(ctx context.Context, o Options) (audit.Tally, error) {
	var tally audit.Tally
	random := rand.New(rand.NewPCG(o.Seed, 0))
	for n := 0; n < o.Rounds; {
		l, err := newLife(ctx, filepath.Join(o.Dir, fmt.Sprintf("from-round-%d", n+1)))
		if err != nil {
			return tally, err
		}
		sound := true
		for end := min(o.Rounds, n+o.Life); n < end && sound; {
			n++
			out, err := l.round(ctx, o, random)
			if err != nil {
				return tally, fmt.Errorf("round %d: %w", n, err)
			}
			tally.Add(out)
			o.Logf("round %d: %s", n, out)
			sound = len(out.Problems) == 0
		}
		if sound {
			if err := os.RemoveAll(l.dir); err != nil {
				return tally, err
			}
		}
	}
	return tally, nil
}

// life is a store, round after round.
type life struct {
	dir    string
	shared []uuid.UUID
	shown  audit.Shown
	rounds int
}

func newLife(ctx context.Context, dir string) (*life, error) {
	if err := os.MkdirAll(filepath.Join(dir, "legacy"), 0o700); err != nil {
		return nil, err
	}
	shared, err := writer.Found(filepath.Join(dir, "store"), 2)
	if err != nil {
		return nil, err
	}
	shown, err := audit.Look(ctx, filepath.Join(dir, "store"))
	return &life{dir: dir, shared: shared, shown: shown}, err
}

// round lets writers work, kills them, and audits what they leave.
func (l *life) round(ctx context.Context, o Options, random *rand.Rand) (audit.Outcome, error) {
	l.rounds++
	scratch := filepath.Join(l.dir, fmt.Sprintf("round-%d", l.rounds))
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return audit.Outcome{}, err
	}
	crew, err := writer.StartCrew(o.Writers, writer.Job{
		Seed: random.Uint64(), Store: filepath.Join(l.dir, "store"), Legacy: filepath.Join(l.dir, "legacy"), Shared: l.shared, Scratch: scratch,
	})
	if err != nil {
		return audit.Outcome{}, err
	}
	moments := make([]time.Duration, len(crew))
	for i := range moments {
		moments[i] = time.Duration(random.Int64N(int64(o.Longest)))
	}
	if random.IntN(3) == 0 {
		moments = slices.Repeat(moments[:1], len(crew))
	}
	var group sync.WaitGroup
	for i, p := range crew {
		group.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(moments[i]):
			}
			p.Kill()
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return audit.Outcome{}, err
	}
	out, err := audit.Audit(ctx, filepath.Join(l.dir, "store"), audit.Round{
		Before: l.shown, Shared: l.shared, Accounts: crew.Accounts(), Bare: random.IntN(5) == 0,
	})
	l.shown = out.Shown
	return out, err
}
