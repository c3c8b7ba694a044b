package storetest_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// newFaultyCopy is newLastCopy on a disk that can fail; the message's file is missing, or holds something else.
func newFaultyCopy(t *testing.T, foreign bool) (*lastCopy, *crashfs.FS) {
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.WithRetain(-1), engine.InOrder())...))
	t.Cleanup(func() { _ = s.Close() })
	x := newLastCopyIn(t, s)
	kit.Check(t, disk.Remove(x.file))
	if foreign {
		kit.Check(t, vfs.WriteSynced(disk, x.file, []byte("a note\n")))
	}
	return x, disk
}

// journal reports whether the journal is there that has the message.
func (x *lastCopy) journal(disk *crashfs.FS) bool {
	_, err := disk.Lstat(x.c.ID().String() + "/journal-1.jsonl")
	return err == nil
}

// onDisk are the verbs that need no folder of the system.
func onDisk() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(verbs)), func(verb string) bool { return verb == "repair of a journal" })
}

// TestLastCopyCannotBeWritten: while a message's file cannot be made again, the journal stays and serves the message,
// operations that need the journal to go say so, and the other messages are settled; when it can be made again, it is,
// and the journal goes.
func TestLastCopyCannotBeWritten(t *testing.T) {
	for _, verb := range onDisk() {
		for _, foreign := range []bool{false, true} {
			x, disk := newFaultyCopy(t, foreign)
			other := strings.Replace(x.file, x.ids[1].String(), x.ids[2].String(), 1)
			kit.Check(t, disk.Remove(other))
			name, broken := path.Base(x.file), true
			disk.Fail(func(o crashfs.Op) error {
				if broken && o.Index > 0 && (path.Base(o.To) == name || strings.Contains(path.Base(o.Path), name)) {
					return syscall.EPERM
				}
				return nil
			})
			err := verbs[verb](context.Background(), x)
			if verb == "externalise" {
				continue // it replaces the message, so that another journal has it
			}
			if err != nil && !errors.Is(err, syscall.EPERM) {
				t.Errorf("%s: %v", verb, err)
			}
			if told := slices.Contains([]string{"archive", "files", "erase", "fold twice", "gc", "repair"}, verb); told && err == nil {
				t.Errorf("%s says nothing", verb)
			}
			x.there(verb)
			if !x.journal(disk) {
				t.Errorf("%s: the journal is gone", verb)
			}
			if _, err := disk.Lstat(other); err != nil {
				t.Errorf("%s: the other message has no file: %v", verb, err)
			}
			broken = false
			kit.Check(t, x.repair(), x.c.Fold(context.Background()))
			kit.Check(t, x.append(`{"role":"user","content":"later"}`), x.c.Fold(context.Background()))
			x.there(verb + ", and when it can be written")
			if x.journal(disk) {
				t.Errorf("%s: the journal stays for ever", verb)
			}
		}
	}
}

// TestLastCopyFaults lets calls fail during each verb, one or all from there on: the message stays, at once, after a
// power cut, and after a repair.
func TestLastCopyFaults(t *testing.T) {
	for kind, fault := range faults() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for _, verb := range onDisk() {
				for k := range kit.Cuts(2) {
					x, disk := newFaultyCopy(t, k/2%2 == 0)
					hook, fired := fault(len(disk.Ops())+k), false
					disk.Fail(kit.Serialise(func(o crashfs.Op) error {
						err := hook(o)
						fired = fired || err != nil
						return err
					}))
					if verbs[verb](context.Background(), x) != nil {
						failed++
					}
					disk.Fail(nil)
					x.there(verb + " behind the fault")
					left := *x
					left.s = kit.Must[*engine.Store](t)(kit.OpenCrash(disk.Crash(crashfs.Lose)))
					left.there(verb + " behind a power cut")
					err := x.repair()
					if errors.Is(err, syscall.EIO) {
						err = x.repair() // the first one was told of the sync that failed in the verb
					}
					kit.Check(t, left.s.Close(), err)
					x.there(verb + " behind a repair")
					if !fired {
						break
					}
				}
			}
			if failed == 0 {
				t.Error("nothing failed")
			}
		})
	}
}
