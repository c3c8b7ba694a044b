package index

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// tailed reads on, and returns the ids of the messages that were committed. Numbers rise by one.
func tailed(t interface{ Fatal(...any) }, tail *Tail) (ids []uuid.UUID, err error) {
	for {
		before := tail.At().Seq
		rec, ok, err := tail.Next()
		if err != nil || !ok {
			return ids, err
		}
		if rec.Seq != before+1 || tail.At().Seq != rec.Seq {
			t.Fatal("record", rec.Seq, "behind", before)
		}
		if rec.Kind != KindAppend {
			continue
		}
		env, err := message.ParseTrusted(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, env.ID)
	}
}

// follow opens the context's folder for a follower.
func (b *bench) follow() *ctxfolder.Dir {
	dir, err := ctxfolder.Open(b.fs, testStore, b.dir.ID)
	b.must(err)
	b.t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// TestTail checks that a follower reads each record once and in order, whatever folds do. A follower that paused
// continues where it was, or gets ErrGap.
func TestTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		defer b.close()
		dir := b.follow()
		live, err := FollowEnd(dir)
		b.must(err)
		defer live.Close()
		rested, told, since := live.At(), 0, 0
		for range 30 {
			switch rapid.IntRange(0, 5).Draw(rt, "operation") {
			case 0:
				b.fold(rapid.IntRange(0, 3).Draw(rt, "settle") == 0)
			case 1:
				b.reopen()
			case 2:
				seq, err := b.log.Seq()
				b.must(err)
				oldest, err := generations(dir)
				b.must(err)
				tail, err := Resume(dir, rested)
				if errors.Is(err, ErrGap) {
					first, ferr := followIn(dir, oldest[0])
					b.must(ferr)
					if first.At().Seq <= rested.Seq {
						rt.Fatal(err, "the oldest journal begins at", first.At(), "rested at", rested)
					}
					first.Close()
					if tail, err = FollowEnd(dir); err == nil && tail.At().Seq != seq {
						rt.Fatal("the end is", tail.At(), "wanted", seq)
					}
					since = len(b.ids)
				}
				b.must(err)
				ids, err := tailed(rt, tail)
				b.must(err)
				sameIDs(rt, ids, b.ids[since:])
				rested, since = tail.At(), len(b.ids)
				tail.Close()
			default:
				b.must(b.add(rapid.IntRange(1, 5).Draw(rt, "messages"), rapid.Bool().Draw(rt, "files")))
			}
			ids, err := tailed(rt, live)
			b.must(err)
			sameIDs(rt, ids, b.ids[told:])
			counted, _, err := b.log.Counts(b.line)
			b.must(err)
			if got := live.Counts()[b.line]; got.Base != counted.Base || got.Count != counted.Count ||
				got.Bytes != counted.Bytes || got.Last != counted.Last {
				rt.Fatalf("counted %+v, wanted %+v", got, counted)
			}
			if told = len(b.ids); rapid.Bool().Draw(rt, "rest") {
				live.ReleaseBuffer()
			}
		}
	})
}

func sameIDs(t interface{ Fatal(...any) }, got, want []uuid.UUID) {
	if len(got) != len(want) {
		t.Fatal(len(got), "messages followed, wanted", len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatal("message", i, "is", got[i], "wanted", want[i])
		}
	}
}

// TestTailTorn checks that a follower ignores a partly written record, even after a crash, and reads the record that
// the next writer puts in its place.
func TestTailTorn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(2, true))
	live, err := FollowEnd(b.follow())
	b.must(err)
	defer live.Close()
	whole := len(b.used(1))
	b.must(b.add(1, false))
	raw := b.used(1)
	for cut := whole + 1; cut < len(raw); cut += 7 {
		for _, tail := range [][]byte{raw[:cut], append(bytes.Clone(raw[:cut]), make([]byte, len(raw)-cut)...)} {
			b.must(os.WriteFile(b.journal(1), tail, 0o600))
			if ids, err := tailed(t, live); len(ids) > 0 || err != nil {
				t.Fatalf("cut at %d: %d messages, %v", cut, len(ids), err)
			}
		}
	}
	b.ids = b.ids[:2]
	b.reopen()
	b.must(b.add(1, true))
	ids, err := tailed(t, live)
	b.must(err)
	sameIDs(t, ids, b.ids[2:])
}

// TestTailDamaged checks that a damaged record is a gap and is never skipped in silence.
func TestTailDamaged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(5, true))
	raw := b.used(1)
	places := []int{bytes.LastIndex(raw, []byte("\n"+headChain))} // the newline before the last record
	for at := bytes.Index(raw, []byte(b.ids[2].String())); at < len(raw); at += 41 {
		places = append(places, at)
	}
	for _, at := range places {
		damaged := append(bytes.Clone(raw), "\n\n\n"...)
		damaged[at] ^= 1
		b.must(os.WriteFile(b.journal(1), damaged, 0o600))
		tail, err := FollowFrom(b.follow(), 0)
		b.must(err)
		ids, err := tailed(t, tail)
		sameIDs(t, ids, b.ids[:len(ids)])
		last := at > places[0] // damage in the last record looks torn
		if len(ids) == 5 || !last && !errors.Is(err, ErrGap) {
			t.Fatalf("byte %d: %d messages, %v", at, len(ids), err)
		}
		tail.Close()
	}
}

// TestTailDamagedGroup checks that a damaged record within a commit of several is a gap, although the commit begins with a
// whole record.
func TestTailDamagedGroup(t *testing.T) {
	t.Parallel()
	b, _ := newCrashBench(t)
	b.must(b.add(2, true))
	b.must(b.addGroup(2, 700).Wait())
	b.must(b.add(1, true))
	at := b.recordAt(3).off
	f, err := b.dir.FS.OpenFile(ctxfolder.JournalFile(1), os.O_RDWR)
	b.must(err)
	_, err = f.WriteAt(make([]byte, 50), at+200)
	b.must(err)
	b.must(f.Close())
	tail, err := FollowFrom(b.follow(), 0)
	b.must(err)
	defer tail.Close()
	ids, err := tailed(t, tail)
	if sameIDs(t, ids, b.ids[:2]); !errors.Is(err, ErrGap) {
		t.Errorf("after the damage: %v", err)
	}
}

// TestTailAfterFailedSync checks that followers do not read records twice when a new journal repeats them.
func TestTailAfterFailedSync(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(2, true))
	live, err := FollowFrom(b.follow(), 0)
	b.must(err)
	defer live.Close()
	failed := false
	disk.Fail(func(o crashfs.Op) error {
		if !failed && o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, "journal-1.jsonl") {
			failed = true
			return syscall.EIO
		}
		return nil
	})
	if err := b.add(1, true); err == nil {
		t.Fatal("the sync did not fail")
	}
	seen, err := tailed(t, live)
	b.must(err)
	b.must(b.add(2, true))
	more, err := tailed(t, live)
	b.must(err)
	entries, err := b.log.Entries(b.line, 0, 1<<40)
	b.must(err)
	var want []uuid.UUID
	for _, e := range entries {
		want = append(want, e.ID)
	}
	sameIDs(t, append(seen, more...), want)
	if live.Journal() == 1 {
		t.Error("no journal repeated anything")
	}
}
