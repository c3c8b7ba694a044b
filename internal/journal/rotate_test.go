package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

const secondLog = "log-11111111-2.jsonl"

// chain reads the logs from the first on, and returns what they show.
func chain(t *testing.T, dir vfs.FS) (bodies []string, logs int) {
	t.Helper()
	name, at := testLog, Position{}
	for name != "" {
		l, err := Open(dir, name)
		if errors.Is(err, ErrBlank) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.From() != at {
			t.Fatalf("%s goes on from %v, the log before it ends at %v", name, l.From(), at)
		}
		if _, err := l.Read(func(r Record) error {
			bodies = append(bodies, string(r.Body))
			return nil
		}, func(lost uint64) { t.Fatalf("%s: %d records are lost", name, lost) }); err != nil {
			t.Fatal(err)
		}
		logs++
		name, at = l.Next(), l.At()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return bodies, logs
}

// TestRotation cuts the power at every operation of a rotation and the commit after it.
func TestRotation(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		b := newBench(t)
		b.commit(2)
		b.must(b.write(`{"unsynced":1}`, false)) // the end makes it durable
		b.disk.CutAt(len(b.disk.Ops()) + k)
		acked := slices.Clone(b.bodies)
		func() {
			if Preallocate(b.dir, secondLog, page) != nil || b.ready() != nil || b.l.EndWith(secondLog) != nil {
				return
			}
			acked = append(acked, `{"unsynced":1}`)
			l, err := BeginAt(b.dir, secondLog, beginning(`{"n":3}`), b.l.At())
			if err != nil {
				return
			}
			defer l.Close()
			for i := range 2 {
				_, end, err := l.Write([]Item{item(fmt.Sprint(i))}, false, true)
				if err != nil || l.SyncTo(end) != nil {
					return
				}
				acked = append(acked, fmt.Sprint(i))
			}
		}()
		for _, how := range choices(10) {
			bodies, _ := chain(t, b.disk.Crash(how))
			if len(bodies) < len(acked) || !slices.Equal(bodies[:len(acked)], acked) {
				t.Fatalf("power cut at operation %d, %s: %q, wanted %q", k, how, bodies, acked)
			}
		}
		if !b.disk.PowerCut() {
			break
		}
	}
}

// TestBeginsAnew begins a log in a file in which a crash left a part of a begin record.
func TestBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]string{
		"nothing":         strings.Repeat("\n", page),
		"a part":          headChain + strings.Repeat("\n", page),
		"no file":         "",
		"too small a one": "\n",
	} {
		disk := crashfs.New()
		if name != "no file" {
			f, err := disk.OpenFile(testLog, os.O_RDWR|os.O_CREATE)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte(left), 0); err != nil {
				t.Fatal(err)
			}
		}
		l, err := BeginAt(disk, testLog, beginning(`{"n":1}`), Position{5, 6})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if l.From() != (Position{5, 6}) || string(l.State()) != `{"n":1}` {
			t.Errorf("%s: it goes on from %v with %s", name, l.From(), l.State())
		}
	}
}

// TestCommitIsWhole cuts the power around commits of several records: each counts whole or not at all.
func TestCommitIsWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(1)
	long := strings.Repeat("x", 700)
	var items []Item
	for i := range 4 {
		items = append(items, item(fmt.Sprintf(`{"group":%d,"x":"%s"}`, i, long)))
	}
	b.must(b.ready())
	_, _, err := b.l.Write(items, true, true)
	b.must(err)
	whole, part := 0, 0
	for _, how := range choices(200) {
		left := b.process(b.disk.Crash(how))
		switch n := len(left.shown); n {
		case 1:
			part++
			left.commit(1)
			if again := left.process(left.disk); len(again.shown) != 2 {
				t.Fatalf("%s: a commit after a torn one: %q", how, again.shown)
			}
		case 5:
			whole++
		default:
			t.Fatalf("%s: %d records of a commit of four", how, n-1)
		}
	}
	if whole == 0 || part == 0 {
		t.Errorf("%d cuts left the commit, %d did not", whole, part)
	}
}

// fullDisk lets the next long write end after some bytes.
type fullDisk struct {
	vfs.FS
	room int // bytes that the next write of more than one can write; negative for any
}

type fullDiskFile struct {
	vfs.File
	fs *fullDisk
}

func (f *fullDisk) OpenFile(name string, flag int) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	return fullDiskFile{file, f}, err
}

func (f fullDiskFile) WriteAt(b []byte, off int64) (int, error) {
	if f.fs.room < 0 || f.fs.room >= len(b) || len(b) == 1 {
		return f.File.WriteAt(b, off)
	}
	n, err := f.File.WriteAt(b[:f.fs.room], off)
	f.fs.room = -1
	return n, errors.Join(err, syscall.ENOSPC)
}

// TestShortWrite ends the write of several records at any byte. Those that are whole count, unless they are one commit;
// the rest is cut off at once, and the next record follows the last whole one.
func TestShortWrite(t *testing.T) {
	t.Parallel()
	for _, group := range []bool{false, true} {
		for room := 0; ; room += 61 {
			b := newBench(t)
			disk := &fullDisk{FS: b.disk, room: -1}
			b.dir = disk
			b.must(b.open())
			b.commit(1)
			before := b.l.end
			disk.room = room
			written, _, err := b.l.Write([]Item{item(`{"a":1}`), item(`{"a":2}`), item(`{"a":3}`)}, group, true)
			if err == nil {
				if room < 3*headSize {
					t.Fatalf("%d bytes held three records", room)
				}
				break
			}
			if !errors.Is(err, syscall.ENOSPC) || group && len(written) > 0 {
				t.Fatalf("%d bytes: %v, %d written", room, err, len(written))
			}
			if size, err := vfs.Size(b.l.f); err != nil || size != b.l.end+1 || b.l.end > before+int64(room) {
				t.Fatalf("%d bytes: the log has %d, its records end at %d: %v", room, size, b.l.end, err)
			}
			b.must(b.open())
			if len(b.shown) != 1+len(written) {
				t.Fatalf("%d bytes: %q", room, b.shown)
			}
			b.commit(1)
			b.survives()
		}
	}
}

// TestNames rejects every other spelling of a log's name.
func TestNames(t *testing.T) {
	t.Parallel()
	for range 100 {
		if n, ok := ParseName(NewName(7)); !ok || n != 7 {
			t.Fatal(n, ok)
		}
	}
	for _, name := range []string{
		"log-0000000-1.jsonl", "log-00000000-0.jsonl", "log-00000000-01.jsonl", "log-00000000-.jsonl", "log-00000000-1.json",
		"log-0000000g-1.jsonl",
		"log-00000000-99999999999999999999.jsonl", "log-00000000--1.jsonl",
		"log-0000000A-1.jsonl", "xlog-00000000-1.jsonl", "log-000000001.jsonl",
	} {
		if n, ok := ParseName(name); ok {
			t.Errorf("%s is log %d", name, n)
		}
	}
}
