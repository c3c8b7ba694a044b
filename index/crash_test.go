package index

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// step does one of the things that a process does to a history. next is the model with a commit that failed.
func (b *bench) step() (next *model, err error) {
	var pending *model
	return b.stepAs(&pending)
}

// stepAs is step, which says in pending which commit is under way.
func (b *bench) stepAs(pending **model) (next *model, err error) {
	switch b.r.IntN(8) {
	case 2:
		return nil, b.ix.Merge(archive.Options{})
	case 0, 3:
		if err := b.ix.Prepare(); err != nil {
			return nil, err
		}
		return nil, b.ix.Rotate()
	case 1:
		return nil, sealAll(b.ix)
	}
	if err := b.ix.Prepare(); err != nil {
		return nil, err
	}
	next = b.model.clone()
	items, _ := b.change(next)
	if len(items) == 0 {
		return nil, nil
	}
	*pending = next
	c := b.ix.Append(items, true)
	if c.Err != nil {
		return next, c.Err
	}
	if err := c.Wait(); err != nil {
		return next, err
	}
	b.model = next
	return nil, nil
}

func choices(random uint64) []crashfs.Choice {
	all := []crashfs.Choice{crashfs.Lose, crashfs.ZeroFill, crashfs.Keep}
	for seed := range random {
		all = append(all, crashfs.Random(seed))
	}
	return all
}

// TestPowerCuts cuts the power at random operations of commits, rotations and seals. What is left shows all that was
// acknowledged, and the commit that was under way as a whole or not at all. It takes further commits.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	cuts := 200
	if testing.Short() {
		cuts = 40
	}
	for seed := range uint64(cuts) {
		b := newBench(t, seed)
		for range b.r.IntN(30) {
			_, err := b.step()
			must(t, err)
		}
		b.disk.CutAt(len(b.disk.Ops()) + 1 + b.r.IntN(60))
		var pending *model
		for {
			next, err := b.step()
			if err != nil {
				pending = next
				break
			}
		}
		for _, how := range choices(6) {
			disk := b.disk.Crash(how)
			left := &bench{t: t, r: b.r, disk: disk, model: b.model, made: b.made + 1000, times: b.times + 1000}
			left.ix = Open(folderOf(t, disk), left.options())
			if err := left.ix.Refresh(); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			err := difference(left.ix, b.model, b.r)
			if err != nil && pending != nil {
				if difference(left.ix, pending, b.r) == nil {
					left.model, err = pending, nil
				}
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			m, err := left.ix.Metadata()
			must(t, err)
			left.meta = m
			for range 10 {
				_, err := left.step()
				if err != nil {
					t.Fatalf("seed %d, %s, later: %v", seed, how, err)
				}
			}
			must(t, sealAll(left.ix))
			anew := left.again(disk)
			left.compare(anew, fmt.Sprintf("seed %d, %s, anew", seed, how))
			anew.Close()
			left.ix.Close()
		}
	}
}

// TestFailures makes calls fail. Nothing that was acknowledged is lost, and writers go on.
func TestFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		b := newBench(t, seed)
		allowed := []*model{b.model}
		for range 60 {
			if b.r.IntN(5) == 0 {
				b.disk.FailAt(len(b.disk.Ops())+1+b.r.IntN(8), errors.New("I/O error"))
			}
			next, err := b.step()
			switch {
			case err == nil:
				allowed = []*model{b.model}
			case next != nil:
				allowed = append(allowed, next)
			}
			anew := b.again(b.disk)
			ok := false
			for _, m := range allowed {
				if difference(anew, m, b.r) == nil {
					b.model, ok = m, true
				}
			}
			if !ok {
				t.Fatalf("seed %d: after %v it shows neither what was acknowledged nor more: %v", seed, err, difference(anew, b.model, b.r))
			}
			m, merr := anew.Metadata()
			must(t, merr)
			b.meta = m
			anew.Close()
		}
	}
}

var errKilled = errors.New("killed")

// TestKilledAnywhere ends a process at an operation, and another one goes on; then the power goes. What either of them
// acknowledged is there.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		b := newBench(t, seed)
		for range b.r.IntN(10) {
			_, err := b.step()
			must(t, err)
		}
		var pending *model
		var disk *crashfs.FS // as the process left it
		left := b.r.IntN(40)
		b.disk.Fail(func(crashfs.Op) error {
			if left--; left >= 0 {
				return nil
			}
			if disk == nil {
				disk = b.disk.Clone()
			}
			return errKilled
		})
		for {
			pending = nil
			if _, err := b.stepAs(&pending); err != nil {
				break
			}
		}
		other := &bench{t: t, r: b.r, disk: disk, model: b.model, made: b.made + 1000, times: b.times + 1000}
		other.ix = Open(folderOf(t, disk), b.options())
		must(t, other.ix.Refresh())
		if err := difference(other.ix, b.model, b.r); err != nil {
			if pending == nil || difference(other.ix, pending, b.r) != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			other.model = pending
		}
		m, err := other.ix.Metadata()
		must(t, err)
		other.meta = m
		for range 3 {
			_, err := other.step()
			must(t, err)
		}
		for _, how := range choices(4) {
			ix := Open(folderOf(t, disk.Crash(how)), Options{})
			must(t, ix.Refresh())
			if err := difference(ix, other.model, b.r); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			ix.Close()
		}
		other.ix.Close()
	}
}

// TestSealBehindUnsynced: a log is sealed only when the one that continues it is durable. Else a power cut would leave a
// history that no log continues.
func TestSealBehindUnsynced(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	for {
		must(t, b.ix.Prepare())
		if b.ix.state.newest().Next() != "" {
			break
		}
		must(t, b.commit())
	}
	next := b.model.clone()
	items, group := b.change(next)
	for len(items) == 0 {
		items, group = b.change(next)
	}
	c := b.ix.Append(items, group) // it begins the log, and nobody waits for it
	must(t, c.Err)
	other := b.again(b.disk)
	defer other.Close()
	must(t, sealAll(other))
	for _, how := range choices(6) {
		ix := Open(folderOf(t, b.disk.Crash(how)), Options{})
		must(t, ix.Refresh())
		if err := difference(ix, b.model, b.r); err != nil && difference(ix, next, b.r) != nil {
			t.Errorf("%s: %v", how, err)
		}
		ix.Close()
	}
}
