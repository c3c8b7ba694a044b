package archive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

var crashChoices = func() []crashfs.Choice {
	c := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
	for seed := range uint64(25) {
		c = append(c, crashfs.Random(seed))
	}
	return c
}()

// packsIn returns the names of packs in a folder, and of what else is there.
func packsIn(t *testing.T, fsys vfs.FS) (packs, others []string) {
	t.Helper()
	for e, err := range fsys.ReadDir(".") {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ParseFileName(e.Name()); ok {
			packs = append(packs, e.Name())
		} else {
			others = append(others, e.Name())
		}
	}
	return packs, others
}

// write makes a pack and returns its name and whether that was acknowledged.
func write(disk vfs.FS, entries []entry, payloads [][]byte) (acked bool, err error) {
	w, err := Create(disk)
	if err != nil {
		return false, err
	}
	w.limit = 800
	if err := fill(w, entries, payloads); err != nil {
		w.Abort()
		return false, err
	}
	_, err = w.Commit()
	return err == nil, err
}

// TestPowerCut cuts the power at each operation. What has a pack's name is whole; what was acknowledged is there;
// anything else has a temporary name.
func TestPowerCut(t *testing.T) {
	entries, payloads, _ := small(t)
	for k := 1; ; k++ {
		disk := crashfs.New()
		disk.CutAt(k)
		acked, _ := write(disk, entries, payloads)
		for _, c := range crashChoices {
			left := disk.Crash(c)
			packs, others := packsIn(t, left)
			if acked && len(packs) != 1 {
				t.Fatalf("cut at %d, %v: acknowledged, and %q is there", k, c, packs)
			}
			for _, name := range packs {
				p, err := Open(left, name)
				if err != nil {
					t.Fatalf("cut at %d, %v: %v", k, c, err)
				}
				for d := range p.Verify() {
					t.Fatalf("cut at %d, %v: %+v", k, c, d)
				}
				checkPack(t, p, entries, payloads)
				p.Close()
			}
			for _, name := range others {
				if !strings.HasPrefix(name, ".") {
					t.Fatalf("cut at %d, %v: %s is there", k, c, name)
				}
			}
		}
		if !disk.PowerCut() {
			if !acked {
				t.Fatal("not acknowledged without a cut")
			}
			return
		}
	}
}

// TestFailures fails each operation. Who was told of it finds nothing left; who was not has a durable pack.
func TestFailures(t *testing.T) {
	full := errors.New("no space left on device")
	entries, payloads, _ := small(t)
	for k := 1; ; k++ {
		disk := crashfs.New()
		disk.FailAt(k, full)
		acked, err := write(disk, entries, payloads)
		reached := len(disk.Ops()) >= k
		disk.Fail(nil)
		packs, others := packsIn(t, disk)
		where := fmt.Sprintf("operation %d", k)
		switch {
		case acked:
			for _, name := range packs {
				checkPack(t, open(t, disk.Crash(crashfs.Lose), name), entries, payloads)
			}
			if len(packs) != 1 || len(others) > 0 {
				t.Fatalf("%s: %q, %q", where, packs, others)
			}
		case !errors.Is(err, full):
			t.Fatalf("%s: %v", where, err)
		case len(packs)+len(others) > 0:
			t.Fatalf("%s: left %q, %q", where, packs, others)
		}
		if !reached {
			return
		}
	}
}

// TestAbort leaves nothing.
func TestAbort(t *testing.T) {
	entries, payloads, _ := small(t)
	disk := crashfs.New()
	w, err := Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(w, entries, payloads); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if packs, others := packsIn(t, disk); len(packs)+len(others) > 0 {
		t.Errorf("left %q, %q", packs, others)
	}
	if err := w.Add(entries[0].envelope); err == nil {
		t.Error("added behind the end")
	}
	if _, err := w.Commit(); err == nil {
		t.Error("committed after all")
	}
}
