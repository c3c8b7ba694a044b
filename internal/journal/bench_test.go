package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// bench is one process that writes a log, and what the log should hold.
type bench struct {
	t      *testing.T
	disk   *crashfs.FS
	dir    vfs.FS
	l      *Log
	shown  []string // the bodies read so far
	bodies []string // those that were acknowledged
}

var (
	testContext = uuid.MustParse("01930000-0000-7000-8000-000000000001")
	testStore   = uuid.MustParse("01930000-0000-7000-8000-000000000002")
)

func beginning(state string) Beginning {
	return Beginning{Context: testContext, Store: testStore, Number: 1, State: json.RawMessage(state), CreatedAt: time.Unix(1, 0).UTC()}
}

const testLog = "log-00000000-1.jsonl"

func newBench(t *testing.T) *bench {
	b := &bench{t: t, disk: crashfs.New()}
	b.dir = b.disk
	l, err := BeginAt(b.disk, testLog, beginning(`{"n":0}`), Position{})
	b.must(err)
	b.l = l
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// process opens the log as another process does, with a descriptor of its own.
func (b *bench) process(disk *crashfs.FS) *bench {
	b.t.Helper()
	dir, err := disk.Sub(".")
	b.must(err)
	other := &bench{t: b.t, disk: disk, dir: dir, bodies: slices.Clone(b.bodies)}
	b.must(other.open())
	return other
}

func (b *bench) open() error {
	if b.l != nil {
		_ = b.l.Close() // without power it fails
	}
	b.shown = nil
	l, err := Open(b.dir, testLog)
	if err != nil {
		return err
	}
	b.l = l
	return b.read()
}

func (b *bench) read() error {
	_, err := b.l.Read(func(r Record) error {
		b.shown = append(b.shown, string(r.Body))
		return nil
	}, func(lost uint64) {
		for range lost {
			b.shown = append(b.shown, "lost")
		}
	})
	return err
}

func item(body string) Item { return Item{Kind: Add, Body: []byte(body)} }

// ready prepares a commit, as the holder of the context's lock.
func (b *bench) ready() error {
	if !b.l.IsThere() {
		if err := b.open(); err != nil {
			return err
		}
	}
	if err := b.read(); err != nil {
		return err
	}
	for {
		err := b.l.Prepare(func([]byte) error { return nil })
		if errors.Is(err, ErrDurability) {
			err = b.replace()
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
		if err := b.open(); err != nil {
			return err
		}
	}
}

func (b *bench) replace() error {
	l, err := b.l.Replace(Beginning{})
	if err != nil {
		return err
	}
	_ = b.l.Close()
	b.l = l
	return nil
}

// write commits a body. With sync it is acknowledged if err is nil.
func (b *bench) write(body string, sync bool) error {
	if err := b.ready(); err != nil {
		return err
	}
	written, end, err := b.l.Write([]Item{item(body)}, false, sync)
	for _, r := range written {
		b.shown = append(b.shown, string(r.Body))
	}
	if err != nil || !sync {
		return err
	}
	if err = b.l.SyncTo(end); err != nil {
		err = b.replace()
	}
	if err == nil {
		b.bodies = slices.Clone(b.shown)
	}
	return err
}

func (b *bench) commit(n int) {
	b.t.Helper()
	for range n {
		b.must(b.write(fmt.Sprintf(`{"n":%d}`, len(b.shown)), true))
	}
}

// fill commits until the next record makes the log longer.
func (b *bench) fill() {
	b.t.Helper()
	for one := int64(0); b.l.end+one < b.l.allocated; {
		before := b.l.end
		b.commit(1)
		one = b.l.end - before
	}
}

// failing lets operations fail that a function picks, until stop is called.
func failing(disk *crashfs.FS, pick func(crashfs.Op) bool) (stop func()) {
	disk.Fail(func(o crashfs.Op) error {
		if pick(o) {
			return syscall.EIO
		}
		return nil
	})
	return func() { disk.Fail(nil) }
}

// refused writes a body while the disk refuses it, and every copy of the log.
func (b *bench) refused() {
	b.t.Helper()
	defer failing(b.disk, func(o crashfs.Op) bool {
		return strings.Contains(o.Path, testLog) && (o.Kind == crashfs.KindDatasync || o.Kind == crashfs.KindSync)
	})()
	if err := b.write(`{"refused":true}`, true); err == nil {
		b.t.Fatal("the disk refused nothing")
	}
}

// choices are the ways in which a power cut may leave the disk: three extremes, and so many random ones.
func choices(random uint64) []crashfs.Choice {
	all := []crashfs.Choice{crashfs.Lose, crashfs.ZeroFill, crashfs.Keep}
	for seed := range random {
		all = append(all, crashfs.Random(seed))
	}
	return all
}

// survives cuts the power in several ways. The log must show all that was acknowledged, and take a record after it.
func (b *bench) survives() {
	b.t.Helper()
	for _, how := range choices(20) {
		b.survivesCut(b.disk.Crash(how), how)
	}
}

func (b *bench) survivesCut(disk *crashfs.FS, how crashfs.Choice) {
	b.t.Helper()
	left := b.process(disk)
	if len(left.shown) < len(b.bodies) || !slices.Equal(left.shown[:len(b.bodies)], b.bodies) {
		b.t.Fatalf("%s: it shows %q, wanted %q", how, left.shown, b.bodies)
	}
	for _, body := range left.shown {
		if body == "lost" {
			b.t.Fatalf("%s: it shows damage: %q", how, left.shown)
		}
	}
	before := slices.Clone(left.shown)
	left.commit(1)
	again := left.process(disk.Crash(crashfs.Lose))
	if len(again.shown) != len(before)+1 || !slices.Equal(again.shown[:len(before)], before) {
		b.t.Fatalf("%s: after another record it shows %q, wanted one more than %q", how, again.shown, before)
	}
}
