package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

var archivingStride = flag.Int("archiving.stride", 4, "of the operations of archiving, every so many are cut or fail")

// erasedBody stands for the body of a message that is erased.
const erasedBody = "erased"

// arrangement is one operation on a context that has, or gets, archived messages.
type arrangement struct {
	name   string
	before func(w *world) error // what comes before it, on what [shelf] makes
	do     func(w *world) error
	then   func(s said) // what it changes
	erases bool
}

// shelf makes a store with a context on a disk: two lines, payloads of every size, a replaced message, a folded journal that is not
// settled, one that is not folded. Another context refers to one of its payloads.
func shelf(t *testing.T, disk *crashfs.FS) (*world, said) {
	t.Helper()
	ctx := context.Background()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1), withRetain(2), WithTextThreshold(1<<10)))
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	w := &world{ctx: ctx, store: s, c: c, id: c.ID()}
	want := said{}
	n := 0
	add := func(branch string, size int) {
		n++
		m := saidMessage{testID(n), fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat(fmt.Sprint(n, " "), size/2))}
		must[Appended](t)(w.branch(branch).Append(ctx, Draft{ID: m.id, Body: []byte(m.body)}))
		want[branch] = append(want[branch], m)
	}
	add("main", 10)
	add("main", 3000)   // its payload rides in the journal
	add("main", 80_000) // one that does not
	add("main", 20)
	check(t, c.log.Fold(ctx, false))
	must[*Branch](t)(w.branch("main").Fork(ctx, "alt", 3))
	want["alt"] = slices.Clone(want["main"][:3])
	add("alt", 5000)
	add("main", 500)
	want["main"][3].body = string(secret(3000))
	check(t, w.branch("main").Replace(ctx, want["main"][3].id, Draft{Body: []byte(want["main"][3].body)}))
	check(t, c.log.Fold(ctx, false))
	add("alt", 10)
	add("main", 2000)
	add("main", 10)

	other := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60001)}))
	must[Appended](t)(other.Active().Append(ctx, Draft{Body: []byte(want["main"][2].body)}))
	check(t, other.Fold(ctx), other.Close())
	return w, want
}

func archiveAll(w *world) error {
	_, err := w.c.Archive(w.ctx, ArchiveOptions{})
	return err
}

// archiveAway archives all, and collects: payloads are in the pack alone then.
func archiveAway(w *world) error {
	return errors.Join(archiveAll(w), collectAll(w.store, 0), collectAll(w.store, 0), w.c.Refresh(w.ctx))
}

func archiveAlt(w *world) error {
	_, err := w.c.Archive(w.ctx, ArchiveOptions{Branch: "alt"})
	return err
}

// replaceWith gives a message of main another body.
func replaceWith(w *world, at int, body string) error {
	ms, err := w.branch("main").Range(w.ctx, int64(at), int64(at)+1)
	if err == nil {
		err = w.branch("main").Replace(w.ctx, ms[0].ID, Draft{Body: []byte(body)}, Shared())
	}
	return err
}

func setBody(s said, id uuid.UUID, body string) {
	for _, ms := range s {
		for i := range ms {
			if ms[i].id == id {
				ms[i].body = body
			}
		}
	}
}

func newerBody(at int) string {
	return fmt.Sprintf(`{"newer":%d,"text":%q}`, at, strings.Repeat("z", 200+1500*(at%2)))
}

// arrangements are the operations that the power is cut in.
func arrangements() []arrangement {
	nothing := func(said) {}
	replaceMost := func(w *world) error {
		err := archiveAway(w)
		for _, at := range []int{0, 1, 2, 3, 4, 5} {
			err = errors.Join(err, replaceWith(w, at, newerBody(at)))
		}
		return errors.Join(err, w.c.Fold(w.ctx))
	}
	more := saidMessage{testID(900), fmt.Sprintf(`{"more":%q}`, strings.Repeat("m", 3000))}
	return []arrangement{
		{name: "archive all", do: archiveAll, then: nothing},
		{name: "archive a branch", do: archiveAlt, then: nothing},
		{name: "archive again", before: func(w *world) error {
			return errors.Join(archiveAlt(w), collectAll(w.store, 0), collectAll(w.store, 0))
		}, do: archiveAll, then: nothing},
		{name: "unarchive", before: archiveAway, then: nothing, do: func(w *world) error {
			_, err := w.c.Unarchive(w.ctx, nil)
			return err
		}},
		{name: "collect", before: replaceMost, then: func(s said) {
			for at := range 6 {
				setBody(s, s["main"][at].id, newerBody(at))
			}
		}, do: func(w *world) error { return errors.Join(collectAll(w.store, DefaultGrace), w.c.Refresh(w.ctx)) }},
		{
			name:   "erase",
			before: archiveAway,
			erases: true,
			then:   func(s said) { setBody(s, s["main"][3].id, erasedBody) },
			do: func(w *world) error {
				_, err := erase(w.store, w.id, testID(4), EraseOptions{Shared: true})
				return errors.Join(err, w.c.Refresh(w.ctx))
			},
		},
		{
			name:   "replace and fold",
			before: archiveAll,
			then:   func(s said) { setBody(s, s["main"][1].id, newerBody(1)) },
			do: func(w *world) error {
				if err := replaceWith(w, 1, newerBody(1)); err != nil {
					return err
				}
				return w.c.Fold(w.ctx)
			},
		},
		{name: "append and fold", before: archiveAway, then: func(s said) { s["main"] = append(s["main"], more) }, do: func(w *world) error {
			if _, err := w.branch("main").Append(w.ctx, Draft{ID: more.id, Body: []byte(more.body)}); err != nil {
				return err
			}
			return w.c.Fold(w.ctx)
		}},
	}
}

// changed is the state behind an arrangement.
func (a *arrangement) changed(s said) said {
	after := s.clone()
	a.then(after)
	return after
}

// ready makes the disk on which an arrangement begins. What is on it is in part not durable, as it is when a program goes on.
func (a *arrangement) ready(t *testing.T) (disk *crashfs.FS, before, after said) {
	t.Helper()
	disk = crashfs.New()
	w, before := shelf(t, disk)
	if a.before != nil {
		check(t, a.before(w))
	}
	check(t, w.c.Close())
	after = a.changed(before)
	if a.name == "collect" {
		before = after // what comes before it changes that much
	}
	return disk, before, after
}

// opened opens what is on a disk.
func opened(disk *crashfs.FS) (*world, error) {
	s, err := Open("disk", withFS(disk), WithFoldBytes(-1), withRetain(2), WithTextThreshold(1<<10), withoutPause())
	if err != nil {
		return nil, err
	}
	w := &world{ctx: context.Background(), store: s, id: testID(60000)}
	if w.c, err = s.Context(w.ctx, w.id); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return w, nil
}

func (w *world) close() error { return errors.Join(w.c.Close(), w.store.Close()) }

// shows reads every branch, in full, piece by piece and by id, and makes sure that all say the same.
func shows(c *Context) (said, error) {
	ctx := context.Background()
	got := said{}
	for _, info := range c.Metadata().Branches {
		b, err := c.Branch(info.Name)
		if err != nil {
			return nil, err
		}
		all, err := b.Load(ctx)
		if err != nil {
			return nil, err
		}
		got[info.Name] = nil
		for i, m := range all {
			body, err := shown(m, i)
			if err != nil {
				return nil, fmt.Errorf("branch %q: %w", info.Name, err)
			}
			got[info.Name] = append(got[info.Name], saidMessage{m.ID, body})
			one, err := b.Range(ctx, int64(i), int64(i)+1)
			if err == nil && len(one) == 1 && body != erasedBody {
				one[0], err = b.Message(ctx, m.ID)
			}
			if err != nil || len(one) != 1 {
				return nil, fmt.Errorf("branch %q, position %d alone: %d messages, %w", info.Name, i, len(one), err)
			}
			if again, err := shown(one[0], i); err != nil || again != body || one[0].ID != m.ID {
				return nil, fmt.Errorf("branch %q, position %d alone: another body, %w", info.Name, i, err)
			}
		}
	}
	return got, nil
}

func shown(m *Message, at int) (string, error) {
	if errors.Is(m.Unavailable, ErrErased) {
		return erasedBody, nil
	}
	if m.Unavailable != nil || m.Edited || m.Position != int64(at) {
		return "", fmt.Errorf("position %d: %s at %d, unavailable %w, edited %v", at, m.ID, m.Position, m.Unavailable, m.Edited)
	}
	return bodyOf(m), nil
}

// holds opens a disk, and reports an error unless it shows one of the states, and a check finds nothing.
func holds(disk *crashfs.FS, done bool, states ...said) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.close()
	return w.hold(done, states...)
}

// hold is holds for what is open. Until something is done again, message files and blobs may be missing or
// torn of which a journal has the content, as before archiving, or a pack.
func (w *world) hold(done bool, states ...said) error {
	got, err := shows(w.c)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(states, func(s said) bool { return equal(got, s) }) {
		return fmt.Errorf("it shows %v, wanted %v", brief(got), brief(states[len(states)-1]))
	}
	for f, err := range w.store.Check(w.ctx, nil, CheckOptions{ReadData: true}) {
		if err != nil {
			return err
		}
		ridden := strings.HasSuffix(f.Detail, "the journal has it") || strings.HasSuffix(f.Detail, "pack has the message") ||
			f.Kind == integrity.KindBlob && f.Severity == SeverityWarning
		if f.Severity != SeverityInfo && (done || !ridden) {
			return fmt.Errorf("a check finds %+v", f)
		}
	}
	return nil
}

func brief(s said) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for i, m := range s[name] {
			all = append(all, fmt.Sprintf("%s %d: %.24s (%d)", name, i, m.body, len(m.body)))
		}
	}
	return all
}

// tidy reports an error unless there is nothing left over: packs that nobody reads, half-made ones, files of archived messages.
func tidy(disk *crashfs.FS) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.close()
	var there []uuid.UUID
	for e, err := range w.c.dir.FS.ReadDir(ctxfolder.Archive) {
		if errors.Is(err, syscall.ENOENT) {
			break
		}
		if err != nil {
			return err
		}
		id, ok := archive.ParseFileName(e.Name())
		if !ok {
			return fmt.Errorf("archive/%s is left over", e.Name())
		}
		there = append(there, id)
	}
	named, err := w.c.log.Packs()
	if err != nil {
		return err
	}
	for _, id := range there {
		if !slices.Contains(named, id) {
			return fmt.Errorf("pack %s is left over", id)
		}
	}
	if len(there) != len(named) {
		return fmt.Errorf("%d packs are there, %d are named", len(there), len(named))
	}
	for _, ln := range w.c.Metadata().Lines {
		counts, _, err := w.c.log.Counts(ln.ID)
		if err != nil {
			return err
		}
		entries, err := w.c.log.Entries(ln.ID, counts.Base, counts.End())
		if err != nil {
			return err
		}
		for _, e := range entries {
			if _, err := w.c.dir.StatMessage(ln.Folder, e.FileID()); (e.Pack != uuid.Nil || e.Lost != "") && err == nil {
				return fmt.Errorf("the file of message %s, which is in pack %s, is left over", e.ID, e.Pack)
			}
		}
	}
	return nil
}

// again does an arrangement that was stopped, and collects.
func (a *arrangement) again(w *world, after said) error {
	if err := a.do(w); err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if err := w.hold(true, after); err != nil {
		return fmt.Errorf("done again: %w", err)
	}
	return a.collected(w, after)
}

// collected collects, and looks whether the disk is as it should be in the end, and would be after a power cut.
func (a *arrangement) collected(w *world, after said) error {
	disk := w.store.opts.fs.(*crashfs.FS)
	if err := errors.Join(collectAll(w.store, DefaultGrace), w.c.Refresh(w.ctx)); err != nil {
		return fmt.Errorf("collecting: %w", err)
	}
	if err := tidy(disk); err != nil {
		return fmt.Errorf("collected: %w", err)
	}
	for _, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if err := holds(d, true, after); err != nil {
			return fmt.Errorf("collected: %w", err)
		}
		if !a.erases {
			continue
		}
		if found, err := singing(d); err != nil || len(found) > 0 {
			return fmt.Errorf("erased again: the canary is in %v, %w", found, err)
		}
	}
	return nil
}

// TestPowerCutWhileArchiving cuts the power at each operation of what moves messages to packs and back, or changes
// archived ones. Whatever the disk holds then: every message is there, a check finds nothing, and the same done again
// leaves nothing over. One of the states is that of a program that was killed: nothing is lost, nothing is durable.
func TestPowerCutWhileArchiving(t *testing.T) {
	for _, a := range arrangements() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			begun, before, after := a.ready(t)
			check(t, holds(begun.Clone(), false, before))
			states, k := 0, 1
			for cut := true; cut; k += *archivingStride * stride() {
				disk := begun.Clone()
				w := must[*world](t)(opened(disk))
				disk.CutAt(len(disk.Ops()) + k)
				err := a.do(w)
				if cut = disk.PowerCut(); !cut {
					disk.CutAt(0)
					check(t, err)
					if err := a.collected(w, after); err != nil {
						t.Fatalf("without a cut: %v", err)
					}
				}
				choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
				for seed := range *powercutSeeds {
					choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
				}
				left := map[string]*crashfs.FS{"killed": disk.Clone()}
				for _, choice := range choices {
					left[choice.String()] = disk.Crash(choice)
				}
				for name, d := range left {
					states++
					if err := a.survives(d, before, after, err == nil); err != nil {
						t.Fatalf("power cut at operation %d (%s), disk %s: %v\n%s", k, lastOp(disk), name, err, d.Dump())
					}
				}
			}
			t.Logf("%d operations, %d disk states", k, states)
		})
	}
}

func (a *arrangement) survives(disk *crashfs.FS, before, after said, done bool) error {
	w, err := opened(disk)
	if err != nil {
		return err
	}
	defer w.close()
	states := []said{before, after}
	if done {
		states = states[1:]
	}
	if err := a.hold(w, states...); err != nil {
		return err
	}
	return a.again(w, after)
}

// hold is world.hold, but that an interrupted erase is a finding.
func (a *arrangement) hold(w *world, states ...said) error {
	if !a.erases {
		return w.hold(false, states...)
	}
	got, err := shows(w.c)
	if err == nil && !slices.ContainsFunc(states, func(s said) bool { return equal(got, s) }) {
		err = fmt.Errorf("it shows %v", brief(got))
	}
	return err
}

// faulty are the ways in which operations fail from the k-th on.
func faulty(k int) map[string]func(crashfs.Op) error {
	writes := func(o crashfs.Op) bool {
		switch o.Kind {
		case crashfs.KindCreate, crashfs.KindWrite, crashfs.KindMkdir, crashfs.KindRename:
			return true
		default:
			return false
		}
	}
	synced := func(o crashfs.Op) bool {
		switch o.Kind {
		case crashfs.KindSync, crashfs.KindDatasync, crashfs.KindSyncDir, crashfs.KindSyncAll:
			return true
		default:
			return false
		}
	}
	return map[string]func(crashfs.Op) error{
		"one": func(o crashfs.Op) error {
			if o.Index == k {
				return syscall.EIO
			}
			return nil
		},
		"full": func(o crashfs.Op) error {
			if o.Index < k || !writes(o) {
				return nil
			}
			if o.Kind == crashfs.KindWrite && o.Size > 1 {
				return &crashfs.ShortWrite{N: int(o.Size / 2), Err: syscall.ENOSPC}
			}
			return syscall.ENOSPC
		},
		"unsynced": func(o crashfs.Op) error {
			if o.Index < k || !synced(o) {
				return nil
			}
			return syscall.EIO
		},
	}
}

// TestArchivingFails lets each operation of an archive and an unarchive fail: it tells, everything is read as before,
// through the same handle and through a new one, and done again it works, and lasts.
func TestArchivingFails(t *testing.T) {
	for _, a := range arrangements()[:4] {
		for kind := range faulty(0) {
			t.Run(a.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				begun, before, after := a.ready(t)
				for k := 1; ; k += *archivingStride * stride() {
					for _, same := range []bool{true, false} {
						disk := begun.Clone()
						w := must[*world](t)(opened(disk))
						first := len(disk.Ops()) + k
						var failed crashfs.Op
						hook := faulty(first)[kind]
						disk.Fail(func(o crashfs.Op) error {
							err := hook(o)
							if err != nil && failed.Kind == "" {
								failed = o
							}
							return err
						})
						err := a.do(w)
						disk.Fail(nil)
						if failed.Kind == "" {
							if kind == "one" || len(disk.Ops()) < first {
								check(t, err)
								return
							}
							continue
						}
						if err := a.recovers(w, err, same, failed, before, after); err != nil {
							t.Fatalf("operation %d failed (%s), the same handle %v: %v\n%s", k, failed, same, err, disk.Dump())
						}
					}
				}
			})
		}
	}
}

func (a *arrangement) recovers(w *world, err error, same bool, failed crashfs.Op, before, after said) error {
	defer func() { _ = w.close() }()
	if err == nil { // it was not needed
		return a.collected(w, after)
	}
	if err := w.hold(false, before); err != nil {
		return fmt.Errorf("through the same handle: %w", err)
	}
	disk := w.store.opts.fs.(*crashfs.FS)
	if err := holds(disk, false, before); err != nil {
		return fmt.Errorf("through a new handle: %w", err)
	}
	if same {
		return a.again(w, after)
	}
	if err := w.close(); err != nil {
		return err
	}
	if w, err = opened(disk); err != nil {
		return err
	}
	if failed.Kind == crashfs.KindSyncAll {
		// Only the handle that made it knows of the sync that failed: a settle cannot tell then what is durable.
		return errors.Join(a.do(w), w.hold(true, after))
	}
	return a.again(w, after)
}
