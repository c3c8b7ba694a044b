package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	blockSize  = 4096
	superblock = 64 << 10 / blockSize // of btrfs: the first one
)

// write is one block of a write that was not flushed yet.
type write struct {
	number int // of the write
	block  int64
	data   []byte
}

// cache is a disk and its cache, with its power on until it is cut.
type cache struct {
	mu      sync.Mutex
	image   *os.File
	size    int64
	off     bool
	goes    func() // unless it is nil, the power goes when left requests have come
	left    int
	pending []write
	latest  map[int64][]byte // of pending
	number  int
	supers  *atomic.Uint64 // see Disk.Superblocks

	faults Faults
	random *rand.Rand // decides which writes fail
	failed int        // writes
}

func openCache(image string) (*cache, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &cache{image: f, size: st.Size(), latest: map[int64][]byte{}}, nil
}

// request reports whether the disk answers. d.mu is held.
func (d *cache) request() bool {
	if d.goes != nil {
		if d.left--; d.left < 0 {
			d.goes()
			d.goes = nil
		}
	}
	return !d.off
}

func (d *cache) readAt(p []byte, at int64) unix.Errno {
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

func (d *cache) writeAt(p []byte, at int64) unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.request() {
		return unix.EIO
	}
	if at%blockSize != 0 || len(p)%blockSize != 0 {
		return unix.EINVAL // the loop device has blocks of that size
	}
	if d.refuses(p) {
		d.failed++
		return unix.EIO
	}
	d.number++
	for data := range slices.Chunk(slices.Clone(p), blockSize) {
		d.pending = append(d.pending, write{d.number, at / blockSize, data})
		d.latest[at/blockSize] = data
		at += blockSize
	}
	return 0
}

// logMagic begins each write to the log of XFS.
var logMagic = []byte{0xfe, 0xed, 0xba, 0xbe}

// refuses decides whether a write fails. One to the log of XFS does not: the padding of the log can contain text that
// was in memory before, and XFS shuts down when it cannot write its log.
func (d *cache) refuses(p []byte) bool {
	holds := func(text string) bool { return bytes.Contains(p, []byte(text)) }
	return slices.ContainsFunc(d.faults.Of, holds) && !bytes.HasPrefix(p, logMagic) && d.random.Float64() < d.faults.Share
}

// flush makes certain what was written.
func (d *cache) flush() unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.request() {
		return unix.EIO
	}
	return d.keep(d.pending)
}

func (d *cache) keep(writes []write) unix.Errno {
	for _, w := range writes {
		if _, err := d.image.WriteAt(w.data, w.block*blockSize); err != nil {
			return unix.EIO
		}
	}
	if slices.ContainsFunc(writes, func(w write) bool { return w.block == superblock }) {
		d.supers.Add(1)
	}
	d.pending = nil
	clear(d.latest)
	return 0
}

// fail lets writes fail from now on.
func (d *cache) fail(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.random = f, rand.New(rand.NewPCG(f.Seed, 1))
}

// cut lets the power go when so many requests have come from now on, and then calls gone.
func (d *cache) cut(o order, gone func(Cut)) {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = o.Requests
	d.goes = func() {
		d.off = true
		c := Cut{At: time.Now(), Unflushed: len(d.pending), Failed: d.failed}
		kept := survivors(d.pending, o.Loss, random)
		c.Lost = c.Unflushed - len(kept)
		if errno := d.keep(kept); errno != 0 {
			c.Error = errno.Error()
		}
		gone(c)
	}
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
