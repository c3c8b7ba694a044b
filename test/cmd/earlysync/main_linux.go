// Earlysync looks for a sync of btrfs that returns nil before anything is durable: threads append to a few files and
// sync them, others make files and sync their folder, beside one that lets the file system commit transactions, on a
// disk that counts the superblocks that it made durable. If it made none durable from before a change until after its
// sync, no power cut at that moment would have left the change. It takes root, and mkfs.btrfs.
//
//	go run ./cmd/earlysync -for 1m       # fails where the kernel has the fault
//	go run ./cmd/earlysync -for 1m -vfs  # syncs with package vfs: none is early
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/powercut"
)

const (
	files   = 3
	threads = 3        // of each file
	space   = 64 << 10 // zeros that a file gets at once, as logs do
	pause   = 25 * time.Millisecond
)

func main() {
	if disk.Started() {
		return
	}
	os.Exit(powercut.InPrivate(func() int {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "earlysync:", err)
			return 1
		}
		return 0
	}))
}

type appends struct {
	disk      *disk.Disk
	folder    string
	vfs       bool
	end       time.Time
	committed atomic.Int64 // transactions
	files     tally
	names     tally
}

// tally counts syncs.
type tally struct{ all, early atomic.Int64 }

func (t *tally) String() string {
	return fmt.Sprintf("%d, of which early %d", t.all.Load(), t.early.Load())
}

// add counts a sync that has returned. Before the change so many superblocks were durable.
func (t *tally) add(d *disk.Disk, before uint64) {
	if t.all.Add(1); d.Superblocks() == before {
		t.early.Add(1)
	}
}

func run() (err error) {
	a := &appends{}
	last := flag.Duration("for", time.Minute, "how long to write")
	flag.BoolVar(&a.vfs, "vfs", false, "sync with package vfs")
	flag.Parse()
	dir, err := os.MkdirTemp("", "earlysync-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at, image := filepath.Join(dir, "disk"), filepath.Join(dir, "image")
	a.folder = filepath.Join(dir, "mnt")
	if err := errors.Join(os.Mkdir(at, 0o700), os.Mkdir(a.folder, 0o700), disk.Make("btrfs", image, 4<<30)); err != nil {
		return err
	}
	if a.disk, err = disk.On(image, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.disk.Remove()) }()
	if err := a.disk.Mount("btrfs", a.folder); err != nil {
		return err
	}
	a.end = time.Now().Add(*last)
	err = errors.Join(a.work(), disk.Unmount(a.folder))
	fmt.Printf("syncs of files: %v; of their folder: %v; commits of transactions: %d\n", &a.files, &a.names, a.committed.Load())
	if err == nil && a.files.early.Load()+a.names.early.Load() > 0 {
		err = errors.New("syncs returned early")
	}
	return err
}

func (a *appends) work() error {
	var g errgroup.Group
	for i := range files {
		f := &file{appends: a, name: fmt.Sprintf("file-%d", i)}
		for range threads {
			g.Go(f.write)
		}
	}
	for i := range threads {
		g.Go(func() error { return a.create(i) })
	}
	g.Go(func() error {
		folder, err := os.Open(a.folder)
		if err != nil {
			return err
		}
		defer folder.Close()
		for time.Now().Before(a.end) {
			time.Sleep(rand.N(2 * pause))
			if err := unix.Syncfs(int(folder.Fd())); err != nil {
				return os.NewSyscallError("syncfs", err)
			}
			a.committed.Add(1)
		}
		return nil
	})
	return g.Wait()
}

// file is a file that several threads append to.
type file struct {
	*appends
	name     string
	mu       sync.Mutex
	at, size int64
}

// write appends and syncs until the end, in a thread and through a descriptor of its own: as a process would.
func (f *file) write() error {
	runtime.LockOSThread()
	fsys, err := vfs.OS(f.folder)
	if err != nil {
		return err
	}
	defer fsys.Close()
	through, err := fsys.OpenFile(f.name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer through.Close()
	bare, err := os.OpenFile(filepath.Join(f.folder, f.name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer bare.Close()
	for time.Now().Before(f.end) {
		before, err := f.append(through)
		if err != nil {
			return err
		}
		if rand.IntN(3) == 0 {
			time.Sleep(rand.N(time.Millisecond))
		}
		if f.vfs {
			err = through.Datasync()
		} else {
			err = os.NewSyscallError("fdatasync", unix.Fdatasync(int(bare.Fd())))
		}
		if err != nil {
			return err
		}
		f.files.add(f.disk, before)
	}
	return nil
}

// create makes files in the folder and syncs it until the end, as [file.write] does with a file.
func (a *appends) create(thread int) error {
	runtime.LockOSThread()
	fsys, err := vfs.OS(a.folder)
	if err != nil {
		return err
	}
	defer fsys.Close()
	bare, err := os.Open(a.folder)
	if err != nil {
		return err
	}
	defer bare.Close()
	for n := 0; time.Now().Before(a.end); n++ {
		name := fmt.Sprintf("new-%d-%d", thread, n)
		before := a.disk.Superblocks()
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
		if a.vfs {
			err = fsys.SyncDir(".")
		} else {
			err = bare.Sync()
		}
		if err != nil {
			return err
		}
		a.names.add(a.disk, before)
	}
	return nil
}

// append writes some bytes after the last ones. It returns how many superblocks were durable before.
func (f *file) append(to vfs.File) (before uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.disk.Superblocks()
	b := make([]byte, 200+rand.IntN(900))
	for i := range b {
		b[i] = byte('a' + rand.IntN(26))
	}
	end := f.at + int64(len(b))
	if end > f.size {
		f.size = end + space
		b = append(b, make([]byte, space)...)
	}
	if _, err := to.WriteAt(b, f.at); err != nil {
		return 0, err
	}
	f.at = end
	return before, nil
}
