package crashfs

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// boot is the time from a power cut to the next look at the disk.
const boot = time.Minute

// Choice selects the unsynced changes that survive a power cut.
type Choice struct {
	mode mode
	seed uint64
}

type mode uint8

const (
	modeLose mode = iota
	modeKeep
	modeZero
	modeRandom
)

var (
	// Lose keeps only durable changes. It is the zero Choice.
	Lose = Choice{mode: modeLose}
	// Keep keeps everything, the interrupted operation and data of a failed sync included.
	Keep = Choice{mode: modeKeep}
	// ZeroFill keeps every name and size, with zero bytes in place of data that was not durable.
	ZeroFill = Choice{mode: modeZero}
)

// Random keeps a random set of changes that the rules of the package comment allow. The set is the same for the same
// seed and operations.
func Random(seed uint64) Choice { return Choice{modeRandom, seed} }

func (c Choice) String() string {
	switch c.mode {
	case modeLose:
		return "lose"
	case modeKeep:
		return "keep"
	case modeZero:
		return "zerofill"
	}
	return fmt.Sprintf("random(%d)", c.seed)
}

// rand returns the source for one choice, so that the choice for one file does not depend on the number of files.
func (c Choice) rand(what uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, what)) }

// Crash returns a new instance with the disk as the power cut leaves it. Its operations count from 1, it has no hook,
// and all its locks are free. The receiver does not change; its power need not have been cut.
func (f *FS) Crash(c Choice) *FS {
	d := f.clone()
	d.keep(d.survivors(c))
	d.names, d.last, d.log, d.failed = nil, map[slot]*nameOp{}, nil, failures{}
	all := tree(d.root, func(n *inode) map[string]*inode { return n.kept })
	for _, n := range sorted(all) {
		n.mtime = n.timeAfter(c)
		size := n.now.size
		if n.now = n.contentAfter(c); n.now.size < size {
			n.mtime = n.mtime.Add(-boot) // nobody takes it for a file that is being written
		}
		n.settleTime()
		n.base, n.log, n.hollow, n.failed = n.now.clone(), nil, extent{}, failures{}
		n.links, n.up, n.named = 0, nil, true
	}
	d.root.links = 1
	for _, n := range sorted(all) {
		n.entries = maps.Clone(n.kept)
		for _, name := range slices.Sorted(maps.Keys(n.entries)) {
			e := n.entries[name]
			e.links++
			e.up, e.name = n, name
		}
	}
	return &FS{d: d, root: d.root}
}

func sorted(set map[*inode]bool) []*inode {
	return slices.SortedFunc(maps.Keys(set), func(a, b *inode) int { return cmp.Compare(a.ino, b.ino) })
}

// survivors chooses among the unsynced changes of names.
func (d *disk) survivors(c Choice) map[*nameOp]bool {
	take := map[*nameOp]bool{}
	switch c.mode {
	case modeLose:
		return take
	case modeKeep, modeZero:
		for _, n := range d.names {
			take[n] = true
		}
		return take
	}
	r := c.rand(0)
	p := bias(r)
	switch r.IntN(3) {
	case 0: // one journal, in order
		for _, n := range d.names[:r.IntN(len(d.names)+1)] {
			take[n] = true
		}
	case 1: // each separately, with its requirements
		for _, n := range d.names {
			if r.Float64() < p {
				include(take, n)
			}
		}
	default: // each separately, if its requirements survive
		for _, n := range d.names {
			ok := r.Float64() < p
			for _, need := range n.needs() {
				ok = ok && take[need]
			}
			if ok {
				take[n] = true
			}
		}
	}
	return take
}

func (n *inode) timeAfter(c Choice) time.Time {
	switch c.mode {
	case modeLose:
		return n.mtimes[0]
	case modeRandom:
		return n.mtimes[c.rand(n.ino<<1).IntN(len(n.mtimes))]
	}
	return n.mtime
}

func (n *inode) contentAfter(c Choice) content {
	img := n.base.clone()
	switch c.mode {
	case modeKeep:
		return n.now.clone()
	case modeLose:
		for i := range n.log {
			if n.log[i].state == synced {
				n.log[i].apply(&img)
			}
		}
		return img
	case modeZero:
		for i := range n.log {
			ch := &n.log[i]
			if end := ch.off + int64(len(ch.data)); ch.state == synced || ch.data == nil {
				ch.apply(&img)
			} else if end > img.size {
				img.truncate(end)
			}
		}
		return img
	}
	return randomContent(n, c.rand(n.ino<<1|1))
}
