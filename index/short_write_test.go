package index

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

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

// TestShortWrite ends the write of a batch at any byte. The whole records of the batch count, the rest is cut off at
// once, and the next record follows the last whole one.
func TestShortWrite(t *testing.T) {
	t.Parallel()
	stride := 61
	if testing.Short() {
		stride = 211
	}
	for room := 0; ; room += stride {
		b := newBench(t)
		disk := &fullDisk{FS: b.dir.FS, room: -1}
		b.dir.FS = disk
		b.must(b.add(1, false))
		before := len(b.used(1))
		disk.room = room
		err := b.add(3, false)
		if err == nil {
			if room < 3*headSize {
				t.Fatalf("%d bytes held three records", room)
			}
			b.close()
			break
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		info, err := os.Stat(b.journal(1))
		b.must(err)
		raw := b.used(1)
		if int64(len(raw)+1) != info.Size() || len(raw) > before+room {
			t.Fatalf("%d bytes written: the journal has %d bytes, %d of them records", room, info.Size(), len(raw))
		}
		entries, err := b.log.Entries(b.line, 0, 10)
		b.must(err)
		b.ids = nil
		for _, e := range entries {
			b.ids = append(b.ids, e.ID)
		}
		b.must(b.add(1, false))
		b.reopen()
		b.shows(len(entries) + 1)
		if problems, err := b.log.Problems(); err != nil || len(problems) > 0 {
			t.Fatalf("%d bytes written: %v, %v", room, problems, err)
		}
		b.close()
	}
}
