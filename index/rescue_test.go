package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// change changes the bytes of a file.
func change(t *testing.T, disk *crashfs.FS, name string, f func(b []byte) []byte) {
	t.Helper()
	b, err := vfs.ReadFile(disk, name, 1<<30)
	must(t, err)
	must(t, disk.Replace(name, f(b)))
}

// readable returns the messages that a history shows whole, in their newest version.
func (b *bench) readable(ix *Index) map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for line, newest := range b.model.lines {
		for e, err := range ix.All(context.Background(), line, 0, int64(len(newest))) {
			must(b.t, err)
			if raw, err := ix.ReadOne(e); err == nil && string(raw) == newest[e.Position].envelope {
				all[fmt.Sprint(line, e.Position)] = string(raw)
			}
		}
	}
	return all
}

func isCopy(e *Entry, c string) bool {
	return int64(len(c)) == e.Size && message.Sum([]byte(c)) == e.Sum
}

// keep copies files to a folder that stands for the trash.
func keep(disk *crashfs.FS) func(path string) error {
	return func(path string) error {
		if err := disk.Mkdir("trash"); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return vfs.CopyFile(context.Background(), disk, "trash/"+uuid.NewString(), disk, path)
	}
}

// history makes a history of segments and logs.
func history(t *testing.T, seed uint64, steps int) (b *bench, copies map[string]string) {
	b, copies = newBench(t, seed), map[string]string{}
	for range steps {
		must(t, b.commit())
		for line, all := range b.model.lines {
			for i := range all {
				copies[fmt.Sprint(line, i, all[i].id, len(all[i].envelope))] = all[i].envelope
			}
		}
		switch b.r.IntN(10) {
		case 0:
			must(t, b.ix.Prepare())
			must(t, b.ix.Rotate())
		case 1, 2:
			must(t, sealAll(b.ix))
		case 3:
			must(t, b.ix.Merge(archive.Options{}))
		}
	}
	return b, copies
}

// checkRescue rescues what is left on a disk, and checks that nothing more is lost, that the history is whole, and that
// it takes further commits.
func (b *bench) checkRescue(disk *crashfs.FS, rescue Rescuer) error {
	ctx := context.Background()
	ix := Open(folderOf(b.t, disk), b.options())
	defer ix.Close()
	before := b.readable(ix)
	all, parts, err := ix.Examine(ctx, true)
	if err != nil {
		return err
	}
	if len(all)+len(parts) == 0 {
		return nil
	}
	rescue.Keep = keep(disk)
	if err := ix.Rescue(slices.Concat(all, parts), rescue); err != nil {
		return fmt.Errorf("rescuing: %w", err)
	}
	anew := b.again(disk)
	defer anew.Close()
	after := b.readable(anew)
	for at, was := range before {
		if after[at] != was {
			return fmt.Errorf("%s was %.90q, and is %.90q", at, was, after[at])
		}
	}
	if all, parts, err := anew.Examine(ctx, true); err != nil || len(all)+len(parts) > 0 {
		return fmt.Errorf("after the rescue: %v, %v, %w", all, parts, err)
	}
	tail, err := anew.Tail(0)
	if err != nil {
		return err
	}
	defer tail.Close()
	for ok := true; ok; {
		if _, ok, err = tail.Next(); err != nil {
			return fmt.Errorf("the records in order: %w", err)
		}
	}
	line := b.anyLine()
	must(b.t, anew.Prepare())
	c, _, err := anew.Counts(line)
	must(b.t, err)
	done := anew.Append([]journal.Item{{Kind: journal.Add, Body: b.envelope(line, c.End(), b.newID())}}, false)
	if err := errors.Join(done.Err, done.Wait(), anew.Prepare(), anew.Rotate(), anew.Seal(archive.Options{})); err != nil {
		return err
	}
	return cutOff(anew)
}

// cutOff fails if a segment has messages beyond the end of a line: nobody can see them, and nothing would remove them.
func cutOff(ix *Index) error {
	all, err := ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	for _, o := range all.all {
		if err := o.need(); err != nil {
			return err
		}
		for line, span := range o.spans {
			if c, ok, err := ix.Counts(line); err != nil || ok && span.To > c.End() {
				return fmt.Errorf("%s has line %s up to %d, and the line ends at %d: %w", o.name.File(), line, span.To, c.End(), err)
			}
		}
	}
	return nil
}

// TestRescue damages each file in many ways, and rescues the rest, with other copies of the messages or without.
func TestRescue(t *testing.T) {
	t.Parallel()
	seeds := uint64(5)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		b, copies := history(t, seed, 80)
		kinds := map[string]func(disk *crashfs.FS, name string){
			"removed": func(disk *crashfs.FS, name string) { must(t, disk.Remove(name)) },
			"emptied": func(disk *crashfs.FS, name string) { change(t, disk, name, func([]byte) []byte { return nil }) },
			"cut": func(disk *crashfs.FS, name string) {
				change(t, disk, name, func(x []byte) []byte { return x[:b.r.IntN(len(x))] })
			},
			"flipped": func(disk *crashfs.FS, name string) {
				change(t, disk, name, func(x []byte) []byte { x[b.r.IntN(len(x))] ^= 1 << b.r.IntN(8); return x })
			},
			"filled": func(disk *crashfs.FS, name string) {
				change(t, disk, name, func(x []byte) []byte {
					at := b.r.IntN(len(x))
					for i := at; i < min(at+512, len(x)); i++ {
						x[i] = '#'
					}
					return x
				})
			},
		}
		for _, name := range filesOf(t, b.disk) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				for i := range 4 {
					disk := b.disk.Crash(crashfs.Keep)
					kinds[kind](disk, name)
					rescue := Rescuer{Copy: func(e *Entry) []byte {
						c := copies[fmt.Sprint(e.Line, e.Position, e.ID, e.Size)]
						if i%2 == 0 || !isCopy(e, c) {
							return nil
						}
						return []byte(c)
					}}
					if err := b.checkRescue(disk, rescue); err != nil {
						t.Fatalf("seed %d, %s %s: %v", seed, name, kind, err)
					}
					if kind == "removed" || kind == "emptied" {
						break
					}
				}
			}
		}
	}
}

// TestRescueCopies: messages whose frame is damaged come from another copy, whatever else of the segment is damaged.
func TestRescueCopies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		b, copies := history(t, seed, 60)
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		must(t, sealAll(b.ix))
		for _, name := range filesOf(t, b.disk) {
			if name[0] != 's' {
				continue
			}
			disk := b.disk.Crash(crashfs.Keep)
			change(t, disk, name, func(x []byte) []byte {
				for i := range x { // the text of each message, and the end of the file
					if string(x[i:min(i+8, len(x))]) == `content\` || i > len(x)-40 || i > 2 && string(x[i-2:i]) == "te" {
						x[i] = '#'
					}
				}
				return x
			})
			err := b.checkRescue(disk, Rescuer{Copy: func(e *Entry) []byte {
				if c := copies[fmt.Sprint(e.Line, e.Position, e.ID, e.Size)]; isCopy(e, c) {
					return []byte(c)
				}
				return nil
			}})
			must(t, err)
			ix := b.again(disk)
			for line, all := range b.model.lines {
				for e, err := range ix.All(context.Background(), line, 0, int64(len(all))) {
					must(t, err)
					if e.IsLost() {
						t.Errorf("seed %d, %s: position %d of line %s is lost", seed, name, e.Position, line)
					}
				}
			}
			ix.Close()
		}
	}
}

// TestRescueCrash cuts the power while damage is repaired. Nothing more is lost, and another rescue finishes it.
func TestRescueCrash(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		b, _ := history(t, seed, 40)
		for _, name := range filesOf(t, b.disk) {
			damaged := b.disk.Crash(crashfs.Keep)
			change(t, damaged, name, func(x []byte) []byte { x[b.r.IntN(len(x))] ^= 4; return x })
			must(t, damaged.SyncAll())
			before := b.readable(b.again(damaged))
			for cut := 1; ; cut += 1 + b.r.IntN(8) {
				disk := damaged.Crash(crashfs.Keep)
				disk.CutAt(len(disk.Ops()) + cut)
				ix := Open(folderOf(t, disk), b.options())
				all, parts, err := ix.Examine(context.Background(), true)
				if err == nil {
					err = ix.Rescue(slices.Concat(all, parts), Rescuer{Copy: func(*Entry) []byte { return nil }, Keep: keep(disk)})
				}
				ix.Close()
				if !disk.PowerCut() {
					must(t, err)
					break
				}
				for _, how := range choices(2) {
					left := disk.Crash(how)
					anew := b.again(left)
					after := b.readable(anew)
					anew.Close()
					for at, was := range before {
						if after[at] != was {
							t.Fatalf("seed %d, %s, cut at %d, %s: %s was %.90q, and is %.90q", seed, name, cut, how, at, was, after[at])
						}
					}
					if err := b.checkRescue(left, Rescuer{Copy: func(*Entry) []byte { return nil }}); err != nil {
						t.Fatalf("seed %d, %s, cut at %d, %s: %v", seed, name, cut, how, err)
					}
				}
			}
		}
	}
}

// TestSealDamaged: a log in which a record is damaged is not sealed as if that had never been there.
func TestSealDamaged(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		b, _ := history(t, seed, 20)
		for range 3 { // a log is sealed when another one continues the next
			must(t, b.ix.Prepare())
			line := b.anyLine()
			c, _, err := b.ix.Counts(line)
			must(t, err)
			done := b.ix.Append([]journal.Item{{Kind: journal.Add, Body: b.envelope(line, c.End(), b.newID())}}, false)
			must(t, errors.Join(done.Err, done.Wait(), b.ix.Rotate()))
		}
		name := b.ix.state.logs[0].Name()
		disk := b.disk.Crash(crashfs.Keep)
		change(t, disk, name, func(x []byte) []byte {
			x[bytes.Index(x[1:], []byte(`{"chain"`))+60] ^= 1 // the first record
			return x
		})
		ix := b.again(disk)
		if err := sealAll(ix); !errors.Is(err, ErrDamaged) {
			t.Errorf("seed %d: %v", seed, err)
		}
		if _, err := disk.Lstat(name); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		ix.Close()
	}
}

// TestLostRecords: what follows a lost record counts as far as it can. A message whose first version is lost is there in
// the next one, and what a lost record cut off a line is nowhere.
func TestLostRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.ix.Close()
	b.ix = Open(folderOf(t, b.disk), Options{}) // one log
	line := b.anyLine()
	var first []string
	commit := func(items ...journal.Item) {
		must(t, b.ix.Prepare())
		done := b.ix.Append(items, false)
		must(t, errors.Join(done.Err, done.Wait()))
	}
	add := func(n int) {
		for range n {
			c, _, err := b.ix.Counts(line)
			must(t, err)
			raw := b.envelope(line, c.End(), b.newID())
			first = append(first, string(raw))
			commit(journal.Item{Kind: journal.Add, Body: raw})
		}
	}
	add(8)
	trim, err := b.ix.TrimItem(line, 4)
	must(t, err)
	commit(trim)
	add(3) // at 4, 5 and 6
	last, _, err := b.ix.Entry(line, 6)
	must(t, err)
	newer := b.envelope(line, 6, last.ID)
	commit(journal.Item{Kind: journal.Replace, Body: newer, Was: last.Size})
	must(t, b.ix.Prepare())
	must(t, b.ix.Rotate())
	disk := b.disk.Crash(crashfs.Keep)
	change(t, disk, b.ix.state.logs[0].Name(), func(x []byte) []byte {
		for _, body := range []string{string(trim.Body), first[10]} {
			x[bytes.Index(x, []byte(body))+20] ^= 1
		}
		return x
	})
	ix := Open(folderOf(t, disk), Options{})
	defer ix.Close()
	look := func(when string) {
		t.Helper()
		entries, err := ix.Entries(line, 0, 100)
		must(t, err)
		if len(entries) != 7 {
			t.Fatalf("%s: %d entries", when, len(entries))
		}
		for i := range entries {
			want := append(slices.Clone(first[:4]), first[8], first[9], string(newer))[i]
			if raw, err := ix.ReadOne(&entries[i]); err != nil || string(raw) != want {
				t.Errorf("%s: position %d: %.90q, %v", when, i, raw, err)
			}
		}
	}
	look("damaged")
	all, parts, err := ix.Examine(context.Background(), true)
	must(t, err)
	must(t, ix.Rescue(slices.Concat(all, parts), Rescuer{Copy: func(*Entry) []byte { return nil }, Keep: keep(disk)}))
	look("rescued")
	must(t, cutOff(ix))
}
