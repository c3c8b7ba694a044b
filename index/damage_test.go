package index

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// filesOf returns the names of logs and segments.
func filesOf(t *testing.T, disk *crashfs.FS) (names []string) {
	t.Helper()
	for _, dir := range []string{".", "segments"} {
		for e, err := range disk.ReadDir(dir) {
			must(t, err)
			if e.Type().IsRegular() {
				names = append(names, strings.TrimPrefix(dir+"/"+e.Name(), "./"))
			}
		}
	}
	return names
}

// TestDamage damages each file, or removes it. What other files have is there; a message of this file is as it was, or
// lost, or an earlier version of it is there, and the history says so. It takes further commits.
func TestDamage(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T, b *bench, disk *crashfs.FS, name string){
		"removed": func(t *testing.T, _ *bench, disk *crashfs.FS, name string) { must(t, disk.Remove(name)) },
		"cut": func(t *testing.T, b *bench, disk *crashfs.FS, name string) {
			f, err := disk.OpenFile(name, os.O_RDWR)
			must(t, err)
			size, err := vfs.Size(f)
			must(t, err)
			must(t, f.Truncate(b.r.Int64N(size)))
			must(t, f.Close())
		},
		"flipped": func(t *testing.T, b *bench, disk *crashfs.FS, name string) {
			f, err := disk.OpenFile(name, os.O_RDWR)
			must(t, err)
			size, err := vfs.Size(f)
			must(t, err)
			one := make([]byte, 1)
			at := b.r.Int64N(size)
			_, err = f.ReadAt(one, at)
			must(t, err)
			_, err = f.WriteAt([]byte{one[0] ^ 1<<b.r.IntN(8)}, at)
			must(t, err)
			must(t, f.Close())
		},
	}
	for seed := range uint64(20) {
		b := newBench(t, seed)
		versions := map[string]bool{}
		for range 80 {
			must(t, b.commit())
			for _, all := range b.model.lines {
				for i := range all {
					versions[all[i].envelope] = true
				}
			}
			switch b.r.IntN(8) {
			case 0:
				must(t, b.ix.Prepare())
				must(t, b.ix.Rotate())
			case 1, 2:
				must(t, sealAll(b.ix))
			case 3:
				must(t, b.ix.Merge(archive.Options{}))
			}
		}
		for _, name := range filesOf(t, b.disk) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				damage := kinds[kind]
				for range 12 {
					disk := b.disk.Crash(crashfs.Keep)
					damage(t, b, disk, name)
					if err := b.checkDamaged(disk, versions, kind == "flipped" && strings.HasPrefix(name, "log-")); err != nil {
						t.Fatalf("seed %d, %s %s: %v\n%s", seed, name, kind, err, disk.Dump())
					}
					if kind == "removed" {
						break
					}
				}
			}
		}
	}
}

// checkDamaged checks what is left; with one, at most one record can be damaged.
func (b *bench) checkDamaged(disk *crashfs.FS, versions map[string]bool, one bool) error {
	ix := Open(folderOf(b.t, disk), b.options())
	defer ix.Close()
	if err := ix.Refresh(); err != nil {
		return err
	}
	different, again := 0, 0
	for line, all := range b.model.lines {
		c, _, err := ix.Counts(line)
		if err != nil {
			return err
		}
		if c.End() < int64(len(all)) {
			different++
		}
		entries, err := ix.Entries(line, 0, c.End())
		if err != nil {
			return err
		}
		bodies := make([][]byte, len(entries))
		ix.Read(entries, bodies)
		for i, body := range bodies {
			e := &entries[i]
			if e.Line != line || e.Position != int64(i) {
				return fmt.Errorf("line %s, position %d: %+v", line, i, e)
			}
			switch {
			case i < len(all) && string(body) == all[i].envelope && (body != nil || e.Gone == archive.Erased):
			case body != nil && i >= len(all): // the record that cut the line is lost
				again++
			case body != nil && versions[string(body)]: // an earlier one
				different++
			case body == nil:
				if _, err := ix.ReadOne(e); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrErased) {
					return fmt.Errorf("line %s, position %d: %w", line, i, err)
				}
				different++
			default:
				return fmt.Errorf("line %s, position %d: %q was never there", line, i, body)
			}
		}
	}
	if one && different > 1 {
		return fmt.Errorf("%d messages differ", different)
	}
	problems, err := ix.Problems()
	if err != nil {
		return err
	}
	if different+again > 0 && len(problems) == 0 {
		// A damaged frame shows when it is read.
		damaged := false
		for _, name := range filesOf(b.t, disk) {
			damaged = damaged || strings.HasPrefix(name, "segments/")
		}
		if !damaged {
			return fmt.Errorf("%d messages differ, and nothing says why", different+again)
		}
	}
	// It takes further commits, which others see.
	if err := ix.Prepare(); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	line := b.anyLine()
	c, _, err := ix.Counts(line)
	if err != nil {
		return err
	}
	raw := b.envelope(line, c.End(), b.newID())
	done := ix.Append([]journal.Item{{Kind: journal.Add, Body: raw}}, false)
	if done.Err != nil {
		return fmt.Errorf("appending: %w", done.Err)
	}
	if err := done.Wait(); err != nil {
		return err
	}
	other := Open(folderOf(b.t, disk), Options{})
	defer other.Close()
	e, ok, err := other.Entry(line, c.End())
	if err != nil || !ok {
		return fmt.Errorf("the next message at %d: %v, %w", c.End(), ok, err)
	}
	if got, err := other.ReadOne(&e); err != nil || string(got) != string(raw) {
		return fmt.Errorf("the next message is %q, wanted %q: %w", got, raw, err)
	}
	return nil
}

// TestMissingLog: a log that is missing is told of, and the logs after it count.
func TestMissingLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		b := newBench(t, seed)
		for len(b.ix.state.logs) < 5 {
			must(t, b.ix.Prepare())
			must(t, b.commit())
		}
		names, err := listLogs(b.disk)
		must(t, err)
		for i, name := range names {
			disk := b.disk.Crash(crashfs.Keep)
			must(t, disk.Remove(name))
			ix := b.again(disk)
			problems, err := ix.Problems()
			must(t, err)
			if last := i == len(names)-1; len(problems) == 0 || !last && len(ix.state.logs) != len(names)-1 {
				t.Errorf("seed %d, %s of %d: %v, %d logs count", seed, name, len(names), problems, len(ix.state.logs))
			}
			must(t, ix.Prepare())
			ix.Close()
		}
	}
}

// TestDamageMeanwhile: whoever has the index open reads on behind records that are damaged, and says so.
func TestDamageMeanwhile(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		b := newBench(t, seed)
		must(t, b.commit())
		reader := b.again(b.disk)
		must(t, reader.Refresh())
		o := reader.state.newest()
		name, from := o.Name(), o.End()
		for b.ix.state.newest().Name() == name && b.ix.state.newest().Len() < 3<<10 {
			must(t, b.commit())
		}
		if reader.state.newest().Unchanged() {
			continue // the log was full
		}
		f, err := b.disk.OpenFile(name, os.O_RDWR)
		must(t, err)
		_, err = f.WriteAt([]byte{'#'}, from+20) // in the next head
		must(t, errors.Join(err, f.Close()))
		must(t, reader.Refresh())
		problems, err := reader.Problems()
		must(t, err)
		here, _ := b.ix.At()
		there, err := reader.At()
		must(t, err)
		if len(problems) == 0 || here != there {
			t.Errorf("seed %d: read up to %d of %d, problems %v", seed, there.Seq, here.Seq, problems)
		}
		must(t, reader.Refresh())
		reader.Close()
	}
}
