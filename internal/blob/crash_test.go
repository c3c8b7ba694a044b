package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

func crashChoices() []crashfs.Choice {
	c, seeds := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}, uint64(25)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		c = append(c, crashfs.Random(seed))
	}
	return c
}

type put func(*Store, []byte) error

var (
	durablePut   put = func(s *Store, b []byte) error { _, _, err := s.Put(b); return err }
	streamingPut put = func(s *Store, b []byte) error { _, _, _, err := s.PutReader(bytes.NewReader(b)); return err }
	rewrite      put = func(s *Store, b []byte) error { _, err := s.Rewrite(b); return err }
	unsyncedPut  put = func(s *Store, b []byte) error { _, _, err := s.PutUnsynced(b); return err }
)

// step is one put of a workload; what it acknowledges must be there after a power cut.
type step struct {
	put     put
	payload []byte
	durable bool
}

// cutEverywhere cuts the power at each operation of a workload, looks at what any crash may leave, and puts
// everything again there. prepare runs before the first cut, on a store of another process.
func cutEverywhere(t *testing.T, prepare func(*Store), steps []step) {
	t.Helper()
	t.Parallel()
	for k := 1; ; k++ {
		disk := crashfs.New()
		if prepare != nil {
			prepare(Open(disk))
		}
		disk.CutAt(len(disk.Ops()) + k)
		s := Open(disk)
		acked := 0
		for _, st := range steps {
			if err := st.put(s, st.payload); err != nil {
				break
			}
			acked++
		}
		for _, c := range crashChoices() {
			left := disk.Crash(c)
			where := fmt.Sprintf("cut at %d, %v", k, c)
			for i, st := range steps {
				got, err := Open(left).Get(SumOf(st.payload), 1<<30)
				switch {
				case err == nil && !bytes.Equal(got, st.payload):
					t.Fatalf("%s: wrong bytes", where)
				case err != nil && st.durable && i < acked:
					t.Fatalf("%s: acknowledged and lost: %v\n%s", where, err, left.Dump())
				case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged):
					t.Fatalf("%s: %v", where, err)
				}
			}
			// The next process puts them again: mended, and now to stay.
			for i, again := range []put{durablePut, streamingPut} {
				next := disk.Crash(c)
				for _, st := range steps {
					if err := again(Open(next), st.payload); err != nil {
						t.Fatalf("%s: put again: %v", where, err)
					}
				}
				next = next.Crash(crashfs.Lose)
				for _, st := range steps {
					if err := Open(next).Verify(SumOf(st.payload)); err != nil {
						t.Fatalf("%s: put again (%d): %v", where, i, err)
					}
				}
			}
		}
		if !disk.PowerCut() {
			if acked < len(steps) {
				t.Fatal("the workload failed without a power cut")
			}
			return
		}
	}
}

func TestPowerCutAtEveryOperation(t *testing.T) {
	small, large, other := text(1500), noise(blockSize+3000), noise(4000)
	for name, p := range map[string]put{"Put": durablePut, "PutReader": streamingPut, "Rewrite": rewrite} {
		t.Run(name, func(t *testing.T) {
			cutEverywhere(t, nil, []step{{p, small, true}, {p, large, true}, {p, small, true}})
		})
	}
	t.Run("unsynced", func(t *testing.T) {
		cutEverywhere(t, nil, []step{{unsyncedPut, small, false}, {unsyncedPut, other, false}, {unsyncedPut, small, false}})
	})
	// What another process made and did not sync is as durable as anything once a put acknowledged it.
	t.Run("of another process", func(t *testing.T) {
		cutEverywhere(t, func(s *Store) {
			for _, b := range [][]byte{small, large, other} {
				if err := unsyncedPut(s, b); err != nil {
					t.Fatal(err)
				}
			}
		}, []step{{durablePut, small, true}, {streamingPut, large, true}, {rewrite, other, true}})
	})
	// Nor does an unsynced put take back what is durable.
	t.Run("unsynced over durable", func(t *testing.T) {
		cutEverywhere(t, nil, []step{{durablePut, other, true}, {unsyncedPut, other, false}, {rewrite, other, true}})
	})
}

// TestFoldersOfAnotherWriter: that a fan-out folder exists does not make its name durable.
func TestFoldersOfAnotherWriter(t *testing.T) {
	b := text(900)
	cutEverywhere(t, func(s *Store) {
		if err := s.makeFolders(SumOf(b)); err != nil {
			t.Fatal(err)
		}
	}, []step{{durablePut, b, true}})
}

// TestDurableMeanwhile: a durable blob that appears while an unsynced put is under way stays in its place.
func TestDurableMeanwhile(t *testing.T) {
	b := text(3000)
	disk := crashfs.New()
	s := Open(disk)
	done := false
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRename && !done {
			done = true
			return durablePut(Open(disk), b)
		}
		return nil
	})
	if err := unsyncedPut(s, b); err != nil {
		t.Fatal(err)
	}
	for _, c := range crashChoices() {
		if err := Open(disk.Crash(c)).Verify(SumOf(b)); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestFailures: any call that fails leaves no wrong bytes, and the put after it works and lasts. Above all
// a sync that failed is not believed the second time.
func TestFailures(t *testing.T) {
	full := errors.New("no space left on device")
	b := noise(blockSize + 100)
	for name, p := range map[string]put{"Put": durablePut, "PutReader": streamingPut, "PutUnsynced": unsyncedPut, "Rewrite": rewrite} {
		for _, there := range []bool{false, true} {
			for k := 1; ; k++ {
				disk := crashfs.New()
				if there {
					if err := unsyncedPut(Open(disk), b); err != nil {
						t.Fatal(err)
					}
				}
				before := len(disk.Ops())
				disk.FailAt(before+k, full)
				s := Open(disk)
				err := p(s, b)
				reached := len(disk.Ops()) >= before+k
				disk.Fail(nil)
				if err == nil && name != "PutUnsynced" {
					if err := Open(disk.Crash(crashfs.Lose)).Verify(SumOf(b)); err != nil {
						t.Fatalf("%s, operation %d failed, acknowledged: %v", name, k, err)
					}
				}
				if _, gerr := s.Get(SumOf(b), 1<<30); gerr != nil && !errors.Is(gerr, fs.ErrNotExist) {
					t.Fatalf("%s, operation %d failed: %v", name, k, gerr)
				}
				if err := durablePut(s, b); err != nil {
					t.Fatal(err)
				}
				if err := Open(disk.Crash(crashfs.Lose)).Verify(SumOf(b)); err != nil {
					t.Fatalf("%s, operation %d failed, then put again: %v\n%s", name, k, err, disk.Dump())
				}
				if !reached {
					break
				}
			}
		}
	}
}

// TestTornIsMended: whatever is in a blob's place, the next put of it makes it whole.
func TestTornIsMended(t *testing.T) {
	b := text(4000)
	whole := appendFrame(header(int64(len(b))), b)
	for name, content := range map[string][]byte{
		"empty": {}, "in the header": whole[:10], "header only": whole[:headerSize], "torn": whole[:len(whole)-1],
		"zeros": make([]byte, len(whole)), "another": appendFrame(header(4000), noise(4000)),
		"behind": append(bytes.Clone(whole), 0), "size": appendFrame(header(3999), b),
	} {
		for how, p := range map[string]put{"Put": durablePut, "PutReader": streamingPut, "PutUnsynced": unsyncedPut} {
			disk := crashfs.New()
			s := Open(disk)
			if err := errors.Join(s.makeDurableFolders(SumOf(b)), vfs.WriteSynced(disk, Path(SumOf(b)), content)); err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(SumOf(b)); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
			if err := p(s, b); err != nil {
				t.Fatal(err)
			}
			// Also the unsynced put, since somebody may have put the blob durably in the meantime.
			if err := Open(disk.Crash(crashfs.Random(1))).Verify(SumOf(b)); err != nil {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
}
