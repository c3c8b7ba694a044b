// Package powercut cuts the power of a disk on which several processes write to a store, again and again, and looks
// what is left after the file system was mounted anew.
//
// There are two kinds of cuts. Power: the disk gets nothing any more and loses some of what it was not told to flush,
// as package disk says; what the system had in memory goes with it. And a forced shutdown of the file system (ext4 and
// XFS know one, btrfs does not yet): the disk keeps what it has, and the file system loses what it has not written, its
// log with it or not.
//
// Besides, the disk can refuse some of the writes that hold records of logs, segments or blobs. A writer that is told of it ends, and
// another one begins in its place: to that the kernel does not report the error again.
//
// In neither case does a disk lie: what was flushed stays. The writers are on a system that goes on, so they see
// errors, and what they do about those is part of the test; what they are told behind the cut does not count.
package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/writer"
)

const imageSize = 4 << 30 // with holes

// kept are texts in what must not get lost: at the beginning of each record of a log, of a segment, and of a blob.
var kept = []string{`{"chain":"`, "ctxsegm1", "ctxblob1"}

// patience is how long writers have to notice that there is no disk any more.
const patience = 20 * time.Second

// Options say what is done.
type Options struct {
	Dir     string // a folder, for everything
	Cuts    int
	Life    int // cuts of a file system; then there is a new one
	Writers int
	Longest time.Duration // that writers work until the cut
	Seed    uint64
	Refuse  float64 // the share of writes to logs, segments and blobs that the disk refuses
	Keep    bool    // a copy of the image as the cut left it, before it is mounted
	Logf    func(format string, args ...any)
}

// Missing says what this machine lacks for cutting the power of a file system; "" for nothing.
func Missing(fs string) string {
	if os.Geteuid() != 0 {
		return "it takes root to mount file systems"
	}
	for _, device := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(device); err != nil {
			return "there is no " + device
		}
	}
	if _, err := exec.LookPath("mkfs." + fs); err != nil {
		return fmt.Sprintf("there is no mkfs.%s: install e2fsprogs, xfsprogs, btrfs-progs", fs)
	}
	return ""
}

// Tally is what became of the cuts of one way on one file system.
type Tally struct {
	audit.Tally
	FileSystem string
	Way        string
	Unmounted  int // file systems that could not be mounted after the cut
	Unflushed  int // blocks that the disk had in its cache
	LostBlocks int // of these
	Refused    int // writes
}

// Run cuts the power of a file system. A store in which there are problems stays in Dir, on its image, as it was found,
// and what follows begins with a new one.
func Run(ctx context.Context, fs string, o Options) ([]*Tally, error) {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	ways := waysFor(fs)
	tallies := make([]*Tally, len(ways))
	for i, w := range ways {
		tallies[i] = &Tally{FileSystem: fs, Way: w.name}
	}
	for n := 0; n < o.Cuts; {
		cuts := min(o.Life, o.Cuts-n)
		done, err := runLife(ctx, fs, o, random, n, cuts, func(n int) (way, *Tally) {
			return ways[n%len(ways)], tallies[n%len(ways)]
		})
		n += done
		if err != nil {
			return tallies, err
		}
	}
	return tallies, nil
}

// runLife makes a file system and a store, and cuts the power so many times. It ends early when there are problems.
func runLife(
	ctx context.Context, fs string, o Options, random *rand.Rand, n, cuts int, next func(int) (way, *Tally),
) (done int, err error) {
	l := &life{fs: fs, dir: filepath.Join(o.Dir, fmt.Sprintf("%s-from-cut-%d", fs, n+1)), random: random, o: o}
	defer func() { err = errors.Join(err, l.end()) }()
	if err := l.begin(ctx); err != nil {
		return 0, err
	}
	for done < cuts {
		w, tally := next(n + done)
		done++
		out, err := l.cut(ctx, w, tally)
		if err != nil {
			return done, fmt.Errorf("%s, cut %d, %s: %w", fs, n+done, w.name, err)
		}
		tally.Add(out)
		o.Logf("%s, cut %d, %s: %s", fs, n+done, w.name, out)
		if len(out.Problems) > 0 {
			return done, nil
		}
	}
	l.sound = true
	return done, nil
}

// way is a way of cutting.
type way struct {
	name string
	cut  func(l *life) (disk.Cut, error)
}

func waysFor(fs string) (ways []way) {
	for _, loss := range disk.Losses() {
		ways = append(ways, power(loss))
	}
	if disk.ShutsDown(fs) {
		ways = append(ways, shutdown("log lost", disk.LogLost), shutdown("log flushed", disk.LogFlushed))
	}
	return ways
}

func power(loss disk.Loss) way {
	return way{"power, loses " + string(loss), func(l *life) (disk.Cut, error) {
		select {
		case c := <-l.disk.Cut(l.random.IntN(50), loss, l.random.Uint64()):
			if c.Error != "" {
				return c, errors.New(c.Error)
			}
			return c, nil
		case <-time.After(patience):
			return disk.Cut{}, errors.New("nobody writes to the disk")
		}
	}}
}

func shutdown(what string, how disk.Shutdown) way {
	return way{"shutdown, " + what, func(l *life) (disk.Cut, error) {
		return disk.Cut{At: time.Now()}, disk.End(l.path("mnt"), how)
	}}
}

// wait waits for the moment of a cut.
func (l *life) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(l.random.Int64N(int64(l.o.Longest)))):
	}
}

// cut lets writers work, cuts, mounts what is left, and audits it.
func (l *life) cut(ctx context.Context, w way, tally *Tally) (audit.Outcome, error) {
	l.cuts++
	scratch := l.path(fmt.Sprintf("cut-%d", l.cuts))
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return audit.Outcome{}, err
	}
	crew, err := writer.StartRelay(l.o.Writers, writer.Job{
		Seed: l.random.Uint64(), Store: l.path("mnt/store"), Legacy: l.path("mnt/legacy"), Shared: l.shared, Scratch: scratch,
	})
	if err != nil {
		return audit.Outcome{}, err
	}
	defer crew.Kill()
	if l.o.Refuse > 0 {
		err := l.disk.Fail(disk.Faults{Of: kept, Share: l.o.Refuse, Seed: l.random.Uint64()})
		if err != nil {
			return audit.Outcome{}, err
		}
		crew.Replace()
	}
	l.wait(ctx)
	if err := ctx.Err(); err != nil {
		return audit.Outcome{}, err
	}
	cut, err := w.cut(l)
	crew.Enough()
	if err != nil {
		return audit.Outcome{}, err
	}
	tally.Unflushed += cut.Unflushed
	tally.LostBlocks += cut.Lost
	tally.Refused += cut.Failed
	letEnd(crew)
	if err := l.unmount(); err != nil {
		return audit.Outcome{}, err
	}
	if err := l.save(); err != nil {
		return audit.Outcome{}, err
	}
	if err := l.mount(); err != nil {
		tally.Unmounted++
		return audit.Outcome{Problems: []audit.Problem{{Trouble: audit.Unreadable, Detail: err.Error()}}}, nil
	}
	out, err := audit.Audit(ctx, l.path("mnt/store"), audit.Round{
		Before: l.shown, Shared: l.shared, Accounts: crew.Accounts(), Cut: cut.At, Faults: l.o.Refuse > 0, Bare: l.random.IntN(5) == 0,
	})
	l.shown = out.Shown
	return out, err
}

// letEnd waits until the writers have noticed, and kills those that have not.
func letEnd(crew *writer.Relay) {
	enough := time.After(patience)
	for _, p := range crew.Crew() {
		select {
		case <-p.Ended():
		case <-enough:
		}
	}
	crew.Kill()
}
