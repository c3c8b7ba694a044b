package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

var archivingStride = flag.Int("archiving.stride", 4, "of the operations of archiving, every so many are cut or fail")

// arrangement is one operation on a context that has, or gets, archived messages.
type arrangement struct {
	name   string
	before func(w *kit.World) error // what comes before it, on what [shelf] makes
	do     func(w *kit.World) error
	then   func(s kit.Transcript) // what it changes
	erases bool
}

// shelf makes a store with a context on a disk: two lines, payloads of every size, a replaced message, segments, and a log
// that is not sealed. Another context refers to one of its payloads.
func shelf(t *testing.T, disk *crashfs.FS) (*kit.World, kit.Transcript) {
	t.Helper()
	ctx := context.Background()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	w := &kit.World{Ctx: ctx, Store: s, C: c, ID: c.ID()}
	want := kit.Transcript{}
	n := 0
	add := func(branch string, size int) {
		n++
		m := kit.TranscriptMessage{kit.TestID(n), fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat(fmt.Sprint(n, " "), size/2))}
		kit.Append(t, w.Branch(branch), engine.Draft{ID: m.ID, Body: []byte(m.Body)})
		want[branch] = append(want[branch], m)
	}
	add("main", 10)
	add("main", 3000)   // its payload is in the log
	add("main", 80_000) // one that does not
	add("main", 20)
	kit.Check(t, c.Seal(ctx))
	kit.Must[*engine.Branch](t)(w.Branch("main").Fork(ctx, "alt", 3))
	want["alt"] = slices.Clone(want["main"][:3])
	add("alt", 5000)
	add("main", 500)
	want["main"][3].Body = string(kit.Secret(3000))
	kit.Check(t, w.Branch("main").Replace(ctx, want["main"][3].ID, engine.Draft{Body: []byte(want["main"][3].Body)}))
	kit.Check(t, c.Seal(ctx))
	add("alt", 10)
	add("main", 2000)
	add("main", 10)

	other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60001)}))
	kit.Append(t, other.Active(), engine.Draft{Body: []byte(want["main"][2].Body)})
	kit.Check(t, other.Seal(ctx), other.Close())
	return w, want
}

func archiveAll(w *kit.World) error {
	_, err := kit.Archive(w.Ctx, w.C, archiving.Options{})
	return err
}

// archiveStore archives all contexts of the store together.
func archiveStore(w *kit.World) (err error) {
	for _, failed := range archiving.Archive(w.Ctx, w.Store, nil, archiving.Options{}) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, w.C.Refresh(w.Ctx))
}

// archiveAway archives all, and collects.
func archiveAway(w *kit.World) error {
	return errors.Join(archiveAll(w), kit.CollectAll(w.Store, 0), kit.CollectAll(w.Store, 0), w.C.Refresh(w.Ctx))
}

func archiveAlt(w *kit.World) error {
	_, err := kit.Archive(w.Ctx, w.C, archiving.Options{Branch: "alt"})
	return err
}

// replaceWith gives a message of main another body.
func replaceWith(w *kit.World, at int, body string) error {
	ms, err := w.Branch("main").Range(w.Ctx, int64(at), int64(at)+1)
	if err == nil {
		err = w.Branch("main").Replace(w.Ctx, ms[0].ID, engine.Draft{Body: []byte(body)}, engine.Shared())
	}
	return err
}

func setBody(s kit.Transcript, id uuid.UUID, body string) {
	for _, ms := range s {
		for i := range ms {
			if ms[i].ID == id {
				ms[i].Body = body
			}
		}
	}
}

func newerBody(at int) string {
	return fmt.Sprintf(`{"newer":%d,"text":%q}`, at, strings.Repeat("z", 200+1500*(at%2)))
}

// arrangements are the operations that the power is cut in.
func arrangements() []arrangement {
	nothing := func(kit.Transcript) {}
	replaceMost := func(w *kit.World) error {
		err := archiveAway(w)
		for _, at := range []int{0, 1, 2, 3, 4, 5} {
			err = errors.Join(err, replaceWith(w, at, newerBody(at)))
		}
		return errors.Join(err, w.C.Seal(w.Ctx))
	}
	more := kit.TranscriptMessage{kit.TestID(900), fmt.Sprintf(`{"more":%q}`, strings.Repeat("m", 3000))}
	return []arrangement{
		{name: "archive all", do: archiveAll, then: nothing},
		{name: "archive the store", do: archiveStore, then: nothing},
		{name: "archive a branch", do: archiveAlt, then: nothing},
		{name: "archive again", before: func(w *kit.World) error {
			return errors.Join(archiveAlt(w), kit.CollectAll(w.Store, 0), kit.CollectAll(w.Store, 0))
		}, do: archiveAll, then: nothing},
		{name: "unarchive", before: archiveAway, then: nothing, do: func(w *kit.World) error {
			_, err := archiving.Unarchive(w.Ctx, w.C, nil)
			return err
		}},
		{name: "collect", before: replaceMost, then: func(s kit.Transcript) {
			for at := range 6 {
				setBody(s, s["main"][at].ID, newerBody(at))
			}
		}, do: func(w *kit.World) error {
			return errors.Join(kit.CollectAll(w.Store, trash.DefaultGrace), w.C.Refresh(w.Ctx))
		}},
		{
			name:   "erase",
			before: archiveAway,
			erases: true,
			then:   func(s kit.Transcript) { setBody(s, s["main"][3].ID, kit.ErasedBody) },
			do: func(w *kit.World) error {
				_, err := kit.Erase(w.Store, w.ID, kit.TestID(4), erase.Options{Shared: true})
				return errors.Join(err, w.C.Refresh(w.Ctx))
			},
		},
		{
			name:   "replace and seal",
			before: archiveAll,
			then:   func(s kit.Transcript) { setBody(s, s["main"][1].ID, newerBody(1)) },
			do: func(w *kit.World) error {
				if err := replaceWith(w, 1, newerBody(1)); err != nil {
					return err
				}
				return w.C.Seal(w.Ctx)
			},
		},
		{name: "append and seal", before: archiveAway, then: func(s kit.Transcript) {
			s["main"] = append(s["main"], more)
		}, do: func(w *kit.World) error {
			if _, err := w.Branch("main").Append(w.Ctx, engine.Draft{ID: more.ID, Body: []byte(more.Body)}); err != nil {
				return err
			}
			return w.C.Seal(w.Ctx)
		}},
	}
}

// changed is the state behind an arrangement.
func (a *arrangement) changed(s kit.Transcript) kit.Transcript {
	after := s.Clone()
	a.then(after)
	return after
}

// ready makes the disk on which an arrangement begins. What is on it is in part not durable, as it is when a program
// goes on.
func (a *arrangement) ready(t *testing.T) (disk *crashfs.FS, before, after kit.Transcript) {
	t.Helper()
	disk = crashfs.New()
	w, before := shelf(t, disk)
	if a.before != nil {
		kit.Check(t, a.before(w))
	}
	kit.Check(t, w.C.Close())
	after = a.changed(before)
	if a.name == "collect" {
		before = after // what comes before it changes that much
	}
	return disk, before, after
}

// opened opens what is on a disk.
func opened(disk *crashfs.FS) (*kit.World, error) {
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return nil, err
	}
	w := &kit.World{Ctx: context.Background(), Store: s, ID: kit.TestID(60000)}
	if w.C, err = s.Context(w.Ctx, w.ID); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return w, nil
}

// holds opens a disk, and reports an error unless it shows one of the states, and a check finds nothing.
func holds(disk *crashfs.FS, done bool, states ...kit.Transcript) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Verify(done, states...)
}

// tidy reports an error unless there is nothing left over: logs and segments that nobody reads, and with archived
// files of archived messages.
func tidy(disk *crashfs.FS, archived bool) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.Close()
	raw, err := w.C.Index.Summary()
	if err != nil {
		return err
	}
	var parts struct{ Segments, Logs []string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	read := append(parts.Segments, parts.Logs...)
	err = engine.WalkFiles(disk, w.ID.String(), func(p string) error {
		name := strings.TrimPrefix(p, w.ID.String()+"/")
		_, segment := archive.ParseName(path.Base(name))
		if !segment && !strings.HasPrefix(name, "log-") || slices.Contains(read, name) {
			return nil
		}
		if raw, err := vfs.ReadFile(disk, p, 1<<20); err != nil || len(bytes.Trim(raw, "\n\x00")) > 0 { // else it has not begun
			return fmt.Errorf("%s is left over, the history is %v: %w", name, read, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range w.C.Metadata().Lines {
		for e, err := range w.C.Index.All(w.Ctx, l.ID, 0, l.Archived) {
			if err != nil {
				return err
			}
			if _, err := w.C.Dir.StatMessage(l.Folder, e.ID); archived && err == nil {
				return fmt.Errorf("the file of message %s, which is archived, is left over", e.ID)
			}
		}
	}
	return nil
}

// again does an arrangement that was stopped, repairs and collects.
func (a *arrangement) again(w *kit.World, after kit.Transcript) error {
	if err := a.do(w); err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if err := errors.Join(w.Verify(false, after), kit.VerifyRepair(w.Ctx, w.Store)); err != nil {
		return fmt.Errorf("done again: %w", err)
	}
	return a.collected(w, after)
}

// collected seals and collects, and looks whether the disk is as it should be in the end, and would be after a power cut.
func (a *arrangement) collected(w *kit.World, after kit.Transcript) error {
	disk := w.Store.Options.FS.(*crashfs.FS)
	if err := errors.Join(kit.CollectAll(w.Store, trash.DefaultGrace), w.C.Refresh(w.Ctx), w.C.Seal(w.Ctx)); err != nil {
		return fmt.Errorf("collecting: %w", err)
	}
	if err := tidy(disk, strings.HasPrefix(a.name, "archive")); err != nil {
		return fmt.Errorf("collected: %w", err)
	}
	for i, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if err := holds(d, i == 0, after); err != nil {
			return fmt.Errorf("collected: %w", err)
		}
		if !a.erases {
			continue
		}
		if found, err := kit.FilesWithCanary(d); err != nil || len(found) > 0 {
			return fmt.Errorf("erased again: the canary is in %v, %w", found, err)
		}
	}
	return nil
}

// TestPowerCutWhileArchiving cuts the power at each operation of what archives messages and takes them out again, or changes
// archived ones. Whatever the disk holds then: every message is there, a check finds no error, and the same done again
// leaves nothing over. One of the states is that of a program that was killed: nothing is lost, nothing is durable.
func TestPowerCutWhileArchiving(t *testing.T) {
	for _, a := range arrangements() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			begun, before, after := a.ready(t)
			kit.Check(t, holds(begun.Clone(), false, before))
			states, last := 0, 0
			for k := range kit.Cuts(*archivingStride) {
				last = k
				disk := begun.Clone()
				w := kit.Must[*kit.World](t)(opened(disk))
				disk.CutAt(len(disk.Ops()) + k)
				err := a.do(w)
				cut := disk.PowerCut()
				if !cut {
					disk.CutAt(0)
					kit.Check(t, err)
					if err := a.collected(w, after); err != nil {
						t.Fatalf("without a cut: %v", err)
					}
				}
				choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
				for seed := range *kit.PowercutSeeds {
					choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
				}
				left := map[string]*crashfs.FS{"killed": disk.Clone()}
				for _, choice := range choices {
					left[choice.String()] = disk.Crash(choice)
				}
				for name, d := range left {
					states++
					if err := a.survives(d, before, after, err == nil); err != nil {
						t.Fatalf("power cut at operation %d (%s), disk %s: %v\n%s", k, kit.LastOp(disk), name, err, d.Dump())
					}
				}
				if !cut {
					break
				}
			}
			t.Logf("%d operations, %d disk states", last, states)
		})
	}
}

func (a *arrangement) survives(disk *crashfs.FS, before, after kit.Transcript, done bool) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.Close()
	states := []kit.Transcript{before, after}
	if done {
		states = states[1:]
	}
	if err := a.hold(w, states...); err != nil {
		return err
	}
	return a.again(w, after)
}

// hold is world.hold, but that an interrupted erase is a finding.
func (a *arrangement) hold(w *kit.World, states ...kit.Transcript) error {
	if !a.erases {
		return w.Verify(false, states...)
	}
	got, err := kit.ReadEveryWay(w.C)
	if err == nil && !slices.ContainsFunc(states, func(s kit.Transcript) bool { return kit.Equal(got, s) }) {
		err = fmt.Errorf("it shows %v", kit.Summarise(got))
	}
	return err
}
