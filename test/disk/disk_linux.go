// Package disk is a disk that can lose power, with a file system on it.
//
// The disk has a volatile cache, as disks have: what was written is read back at once, and is certain to stay only when the cache was flushed since. When
// the power goes, nothing gets through any more, and of what was written since the last flush each block of 4 KiB stays or is lost by itself, in whatever
// order it was written; of several writes to one block an earlier one may stay. Blocks are whole.
//
// It is a file of a FUSE file system that this process serves, with a loop device on it: Linux turns the flushes and forced writes (FUA) of the file
// system into an fsync of that file. dm-log-writes and dm-flakey would do as well, but few kernels have them; copying the image of a disk in use, even by cloning it in one instant,
// would keep all that was written, flushed or not.
//
// What is not tried: a disk that lies about flushes, blocks that are torn, and what was flushed going bad.
package disk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const blockSize = 4096

// Loss says what of what was written and not flushed is lost when the power goes.
type Loss string

// The losses.
const (
	Nothing Loss = "nothing"   // as when processes and the system go, and the disk stays
	Writes  Loss = "writes"    // some writes, each whole
	Blocks  Loss = "blocks"    // some blocks of some writes
	Tail    Loss = "tail"      // all from some write on: a disk that keeps the order
	All     Loss = "unflushed" // all
)

// Losses are all losses.
func Losses() []Loss { return []Loss{Nothing, Writes, Blocks, Tail, All} }

// write is one block of a write that was not flushed yet.
type write struct {
	number int // of the write
	block  int64
	data   []byte
}

// Disk is a disk, with its power on until it is cut.
type Disk struct {
	server *fuse.Server
	dir    string // where it is mounted

	mu      sync.Mutex
	image   *os.File
	size    int64
	off     bool
	goes    func() // unless it is nil, the power goes when left requests have come
	left    int
	pending []write
	latest  map[int64][]byte // of pending
	number  int
}

// On makes a file a disk, and mounts a file system on dir in which it is the file Path names.
func On(image, dir string) (*Disk, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	d := &Disk{dir: dir, image: f, size: st.Size(), latest: map[int64][]byte{}}
	d.server, err = fuse.NewServer(&files{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d}, dir, &fuse.MountOptions{
		DirectMountStrict: true, FsName: "ctxdir-disk", MaxWrite: 1 << 20, DisableXAttrs: true,
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mount a disk: %w", err)
	}
	go d.server.Serve()
	if err := d.server.WaitMount(); err != nil {
		return nil, err
	}
	return d, nil
}

// Path is the disk.
func (d *Disk) Path() string { return filepath.Join(d.dir, fileName) }

// Remove takes the disk away: what was written and not flushed stays, unless the power was cut. Nobody is to use it any more.
func (d *Disk) Remove() error {
	// The loop device may have the file open for a moment still. When it has not, the server ends.
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount a disk: %w", err)
	}
	d.server.Wait()
	if !d.off {
		if err := d.flush(); err != 0 {
			return fmt.Errorf("flush a disk: %w", err)
		}
	}
	return d.image.Close()
}

// request reports whether the disk answers. d.mu is held.
func (d *Disk) request() bool {
	if d.goes != nil {
		if d.left--; d.left < 0 {
			d.goes()
			d.goes = nil
		}
	}
	return !d.off
}

func (d *Disk) readAt(p []byte, at int64) unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.request() {
		return unix.EIO
	}
	for from := int64(0); from < int64(len(p)); {
		block, within := (at+from)/blockSize, (at+from)%blockSize
		to := min(int64(len(p)), from+blockSize-within)
		if data, ok := d.latest[block]; ok {
			copy(p[from:to], data[within:])
		} else if _, err := d.image.ReadAt(p[from:to], at+from); err != nil {
			return unix.EIO
		}
		from = to
	}
	return 0
}

func (d *Disk) writeAt(p []byte, at int64) unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.request() {
		return unix.EIO
	}
	if at%blockSize != 0 || len(p)%blockSize != 0 {
		return unix.EINVAL // the loop device has blocks of that size
	}
	d.number++
	for data := range slices.Chunk(slices.Clone(p), blockSize) {
		d.pending = append(d.pending, write{d.number, at / blockSize, data})
		d.latest[at/blockSize] = data
		at += blockSize
	}
	return 0
}

// flush makes certain what was written.
func (d *Disk) flush() unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.request() {
		return unix.EIO
	}
	return d.keep(d.pending)
}

func (d *Disk) keep(writes []write) unix.Errno {
	for _, w := range writes {
		if _, err := d.image.WriteAt(w.data, w.block*blockSize); err != nil {
			return unix.EIO
		}
	}
	d.pending = nil
	clear(d.latest)
	return 0
}

// Cut is what a power cut did.
type Cut struct {
	At              time.Time
	Unflushed, Lost int // blocks that were not flushed, and how many of these are lost
	Err             error
}

// Cut cuts the power when so many requests have come from now on: a random number of them makes it hit writes and flushes alike, where a moment of the clock
// mostly hits the pauses in between. It returns at once; the channel tells when the power has gone.
func (d *Disk) Cut(requests int, loss Loss, random *rand.Rand) <-chan Cut {
	gone := make(chan Cut, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = requests
	d.goes = func() {
		d.off = true
		c := Cut{At: time.Now(), Unflushed: len(d.pending)}
		kept := survivors(d.pending, loss, random)
		c.Lost = c.Unflushed - len(kept)
		if errno := d.keep(kept); errno != 0 {
			c.Err = errno
		}
		gone <- c
	}
	return gone
}

// survivors are those of writes that are not lost.
func survivors(writes []write, loss Loss, random *rand.Rand) (kept []write) {
	some, whole := random.Float64(), map[int]bool{}
	if loss == Tail && len(writes) > 0 {
		return writes[:random.IntN(len(writes))]
	}
	for _, w := range writes {
		stays := loss == Nothing || loss == Blocks && random.Float64() < some
		if loss == Writes {
			if _, decided := whole[w.number]; !decided {
				whole[w.number] = random.Float64() < some
			}
			stays = whole[w.number]
		}
		if stays {
			kept = append(kept, w)
		}
	}
	return kept
}
