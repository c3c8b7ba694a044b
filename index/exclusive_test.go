package index

import (
	stdcontext "context"
	"errors"
	"testing"
)

// TestRetireTellsOthers lets a handle look between the rotation and the end of a fold. Its next refresh must notice
// that the folded journals are gone: they are no copy of a payload any more.
func TestRetireTellsOthers(t *testing.T) {
	t.Parallel()
	b, _ := newCrashBench(t)
	b.must(b.add(3, true))
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	ctx := stdcontext.Background()
	work, err := b.log.collect(ctx, true)
	b.must(err)
	b.must(other.log.Refresh())
	b.must(b.log.writeRows(work))
	_, err = b.log.settle(ctx, work, work.journals[:1])
	b.must(err)
	work.settled = work.journals[0]
	_, err = b.log.finishFold(work, work.journals)
	b.must(err)
	b.must(b.log.Exclusively(ctx, b.log.Retire))
	b.must(other.log.Refresh())
	for _, j := range other.log.state.journals {
		if j.gen <= work.settled {
			t.Errorf("journal %d is still known", j.gen)
		}
	}
	if len(other.log.state.folded.gens) > 0 {
		t.Errorf("journals %v are still known", other.log.state.folded.gens)
	}
	other.shows(len(b.ids))
	b.must(b.add(2, true))
	b.shows(len(b.ids))
}

// TestRetireUnsettled retires journals after a fold that did not settle: the live journal has the only durable copy of
// messages.
func TestRetireUnsettled(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	b.must(b.log.Fold(ctx, true))
	b.must(b.add(3, true))
	b.must(b.log.Fold(ctx, false))
	if err := b.log.Exclusively(ctx, b.log.Retire); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	b.survives(disk)
	b.must(b.log.Fold(ctx, true))
	b.must(b.log.Exclusively(ctx, b.log.Retire))
	b.survives(disk)
}

// TestRefreshAfterARebuild rebuilds the index beside another handle. The new journal does not continue the one that the
// handle knows, which is gone.
func TestRefreshAfterARebuild(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	other := b.process(disk)
	b.must(other.log.Refresh())
	b.must(b.log.Rebuild(stdcontext.Background()))
	b.must(b.add(2, true))
	other.ids = b.ids
	b.must(other.log.Refresh())
	other.shows(5)
	b.must(other.add(1, true))
	other.shows(6)
}
