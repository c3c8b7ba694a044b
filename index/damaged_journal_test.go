package index

import (
	"bytes"
	stdcontext "context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// label commits a change of the metadata.
func (b *bench) label(n int) {
	b.t.Helper()
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	defer func() { b.must(b.dir.Lock.Release()) }()
	b.must(b.log.Prepare())
	m, _, _, err := b.log.Metadata()
	b.must(err)
	m = m.Clone()
	m.Revision++
	m.Title = fmt.Sprintf("title %d", n)
	item, err := b.log.MetadataItem(m)
	b.must(err)
	c := b.log.Append([]Item{item})
	b.must(c.Err)
	b.must(c.Wait())
}

// long appends a message of several sectors, durably, and makes its file if asked to.
func (b *bench) long(file bool) {
	b.t.Helper()
	c := b.addGroup(1, 700)
	b.must(c.Wait())
	if file {
		b.makeFile(len(b.ids) - 1)
	}
}

// batch appends messages in one write, durably, and makes no files.
func (b *bench) batch(n int) {
	b.t.Helper()
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	b.must(b.log.Prepare())
	c := b.log.Append(b.items(slices.Repeat([]int{700}, n)))
	b.must(b.dir.Lock.Release())
	b.must(c.Err)
	b.must(c.Wait())
}

// items are items for the next messages, with texts of these sizes.
func (b *bench) items(sizes []int) (items []Item) {
	for i, size := range sizes {
		item := b.next()
		item.Envelope.Position += int64(i)
		if len(b.ids) > 0 {
			item.Envelope.Prev = b.ids[len(b.ids)-1]
		}
		item.Envelope.Body = []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)
		item.Body = item.Envelope.AppendTo(nil)
		items, b.ids = append(items, item), append(b.ids, item.Envelope.ID)
	}
	return items
}

// makeFile makes the file of a message from its record.
func (b *bench) makeFile(i int) {
	b.t.Helper()
	e := b.recordAt(int64(i))
	raw, ok := b.log.ReadRecord(e)
	if !ok {
		b.t.Fatalf("no record of message %d", i)
	}
	b.must(b.dir.CreateMessage("branch-main", e.ID, raw, e.StoredAt()))
}

// damagedJournal is a context whose newest journal a test damages.
type damagedJournal struct {
	*bench
	disk    *crashfs.FS
	name    string
	raw     []byte
	records []change // of that journal
	filed   map[int]bool
	folded  uint64 // up to here index.json or another journal says that all was durable
}

// newDamagedJournal makes a context. history has a letter for each step: m and f append a message without and with its
// file, b a batch of three without files, g and h a group of two, of which the second has its file with h. l changes the
// metadata, | folds, / folds into a new journal, > begins a new journal, so that the one before is to be damaged, and .
// lets another process continue.
func newDamagedJournal(t *testing.T, history string) *damagedJournal {
	b, disk := newCrashBench(t)
	d := &damagedJournal{bench: b, disk: disk, filed: map[int]bool{}}
	for i, step := range history {
		switch step {
		case 'm', 'f':
			d.filed[len(b.ids)] = step == 'f'
			b.long(step == 'f')
		case 'b':
			b.batch(3)
		case 'g', 'h':
			c := b.addGroup(2, 700)
			b.must(c.Wait())
			if step == 'h' {
				b.makeFile(len(b.ids) - 1)
				d.filed[len(b.ids)-1] = true
			}
		case 'l':
			b.label(i)
		case '|':
			b.fold(false)
			d.folded = b.log.state.seq
		case '/':
			b.must(b.rotate())
			d.folded = b.log.state.seq
		case '>':
			b.must(b.dir.Lock.Acquire(stdcontext.Background()))
			b.must(b.log.Prepare())
			b.must(b.log.renew(roomy))
			b.must(b.dir.Lock.Release())
			d.folded = b.log.state.seq
		case '.':
			b.reopen()
		}
	}
	gen, err := b.log.NewestJournal()
	b.must(err)
	if strings.Contains(history, ">") {
		gen--
	}
	d.name = ctxfolder.JournalFile(gen)
	j, err := openJournal(b.dir, gen, nil)
	b.must(err)
	defer j.f.Close()
	n, err := j.whole()
	b.must(err)
	size, err := j.size()
	b.must(err)
	d.records, d.raw = n.changes, make([]byte, size)
	_, err = j.f.ReadAt(d.raw, 0)
	b.must(err)
	return d
}

// expected is what the model knows of a damaged journal: the messages that must be shown, and how many positions must
// stay taken.
func (d *damagedJournal) expected(raw []byte) (shown map[int]bool, taken int) {
	shown = map[int]bool{}
	intact := func(c *change) bool {
		end := c.off + c.size()
		return end <= int64(len(raw)) && bytes.Equal(raw[c.off:end], d.raw[c.off:end])
	}
	proven := d.folded // up to here all was durable, by what is left
	for i := range d.records {
		c := &d.records[i]
		if intact(c) {
			proven = max(proven, c.mark)
		}
		if c.kind == KindAppend && d.filed[int(c.address.Position)] {
			proven = max(proven, c.seq)
		}
	}
	recorded := map[int]bool{}
	for i := range d.records {
		c := &d.records[i]
		if c.kind == KindAppend {
			recorded[int(c.address.Position)] = true
		}
	}
	for i := range d.ids {
		shown[i] = d.filed[i] || !recorded[i] // it is folded
	}
	for i := range d.records {
		commit := d.records[:i+1] // up to the record that ends the commit of record i
		for commit[len(commit)-1].more {
			commit = d.records[:len(commit)+1]
		}
		c := &d.records[i]
		if c.kind != KindAppend {
			continue
		}
		lost := func(c change) bool { return !intact(&c) }
		p := int(c.address.Position)
		shown[p] = shown[p] || !slices.ContainsFunc(commit, lost) || c.seq <= proven && intact(c)
		// The beginning of the envelope says which position a lost record had, if records behind it count.
		at := c.off + int64(c.width)
		legible := at+400 < int64(len(raw)) && bytes.Equal(raw[at:at+400], d.raw[at:at+400])
		if c.seq <= proven && legible && !slices.ContainsFunc(d.records[i+1:min(i+2, len(d.records))], lost) && i+1 < len(d.records) {
			taken = max(taken, p+1)
		}
	}
	for p := range shown {
		if shown[p] {
			taken = max(taken, p+1)
		}
	}
	return shown, taken
}

// check damages the journal, opens the context, and compares with the model, before and after the next writer.
func (d *damagedJournal) check(what string, raw []byte) {
	d.t.Helper()
	b := *d.bench
	b.fs = d.disk.Crash(crashfs.Keep)
	b.open(d.dir.ID)
	defer func() { b.close() }()
	f, err := b.dir.FS.OpenFile(d.name, os.O_RDWR)
	b.must(err)
	b.must(f.Truncate(int64(len(raw))))
	_, err = f.WriteAt(raw, 0)
	b.must(err)
	b.must(f.Close())

	shown, taken := d.expected(raw)
	read := func() []Entry {
		d.t.Helper()
		entries, err := b.log.Entries(b.line, 0, 1<<40)
		b.must(err)
		for i, e := range entries {
			switch {
			case e.Position != int64(i):
				d.t.Fatalf("%s: position %d at %d", what, e.Position, i)
			case i < len(d.ids) && shown[i] && (e.Lost != "" || e.ID != d.ids[i]):
				d.t.Fatalf("%s: message %d is not shown: %+v", what, i, e)
			case i < len(d.ids) && e.Lost == "" && e.ID != d.ids[i] && i < taken:
				d.t.Fatalf("%s: message %d is another one", what, i)
			}
		}
		if len(entries) < taken {
			d.t.Fatalf("%s: %d positions, wanted %d", what, len(entries), taken)
		}
		return entries
	}
	before := read()
	if len(before) > len(d.ids) {
		d.t.Fatalf("%s: %d messages of %d", what, len(before), len(d.ids))
	}
	lost := slices.ContainsFunc(before, func(e Entry) bool { return e.Lost != "" })
	if p, err := b.log.Problems(); err != nil || lost && len(p) == 0 {
		d.t.Fatalf("%s: a message is lost and nothing says so: %v", what, err)
	}
	b.ids = nil
	b.must(b.add(1, true))
	for range 2 {
		after := read()
		if len(after) != len(before)+1 || after[len(before)].ID != b.ids[0] {
			d.t.Fatalf("%s: %d messages before an append, %d after", what, len(before), len(after))
		}
		for i := range before {
			if before[i].ID != after[i].ID || (before[i].Lost == "") != (after[i].Lost == "") {
				d.t.Fatalf("%s: message %d was %+v, and is %+v after an append", what, i, before[i], after[i])
			}
		}
		b.fold(true)
		b.reopen()
	}
}

// TestDamagedNewestJournal cuts and blanks parts of the newest journal. Each message whose record is whole and proven to
// have been durable, or whose file is valid, keeps its place, before and after the next append, and no other message
// gets a place that was taken.
func TestDamagedNewestJournal(t *testing.T) {
	t.Parallel()
	stride, step := 127, 1
	if testing.Short() {
		stride, step = 1013, 3
	}
	for _, history := range []string{
		"fffffff", "ffff.f.f", "mmmmmm", "mfmfmf", "m.m.m.f", "mmmf", "fffllll", "f.f.f.l.l", "mmmlll", "ffmgffl", "ffgl", "ffgm",
		"ff|ffff", "mm|mmm", "ff|f.f.l.l", "ff/ffff", "mm/mm", "m|lffl",
		"fff>f", "mmm>m", "mlm>m", "b>m", "mb>b", "fb|m", "b.l|l", "fh", "fhl",
	} {
		t.Run(strings.NewReplacer("/", "r", "|", "s", ">", "n").Replace(history), func(t *testing.T) {
			t.Parallel()
			d := newDamagedJournal(t, history)
			first, end := int(d.records[0].off), 0
			for i := range d.records {
				end = max(end, int(d.records[i].off+d.records[i].size()))
			}
			for at := sector; at < end; at += sector * step {
				d.check(fmt.Sprintf("cut at %d", at), d.raw[:at])
			}
			for _, blank := range []byte{0, '\n'} {
				for at := first; at < end; at += stride {
					for _, n := range []int{80, 600, 1100} {
						raw := bytes.Clone(d.raw)
						part := raw[at:min(at+n, end)]
						copy(part, bytes.Repeat([]byte{blank}, len(part)))
						if d.endsCleanly(raw) {
							continue // nothing says that there was more
						}
						d.check(fmt.Sprintf("%d bytes %q at %d", len(part), blank, at), raw)
					}
				}
			}
		})
	}
}

// endsCleanly reports whether a journal holds whole commits and blank space.
func (d *damagedJournal) endsCleanly(raw []byte) bool {
	end := d.records[0].off
	for i := range d.records {
		c := &d.records[i]
		if next := c.off + c.size(); !c.more && bytes.Equal(raw[:next], d.raw[:next]) {
			end = next
		}
	}
	return len(bytes.Trim(raw[end:], "\n")) == 0
}

// TestTornBatch cuts the power after several records that nobody made durable. A prefix of them is left, and nothing
// looks damaged.
func TestTornBatch(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{{700, 700, 700, 700}, {10, 2000, 10, 10}, {5000, 10, 5000}} {
		b, disk := newCrashBench(t)
		b.must(b.add(2, true))
		b.must(b.dir.Lock.Acquire(stdcontext.Background()))
		b.must(b.log.Prepare())
		b.must(b.log.Append(b.items(sizes)).Err)
		b.must(b.dir.Lock.Release())
		seen := map[int]bool{}
		for _, how := range choices(300) {
			left := *b
			left.fs = disk.Crash(how)
			left.open(b.dir.ID)
			counts, _, err := left.log.Counts(b.line)
			b.must(err)
			n := int(counts.Count)
			seen[n] = true
			left.shows(n)
			if p, err := left.log.Problems(); err != nil || len(p) > 0 || n < 2 {
				t.Fatalf("%v, %s: %d messages, %v, %v", sizes, how, n, p, err)
			}
			left.ids = slices.Clone(b.ids[:n])
			b.must(left.add(1, true))
			left.shows(n + 1)
			left.close()
		}
		if len(seen) < 3 {
			t.Errorf("%v: only these outcomes were seen: %v", sizes, seen)
		}
	}
}

// TestDamagedJournalInDoubt damages a journal that a writer has read and must replace, since a sync of it failed in
// another process. The writer reads it again, and must not take the rebuilt state for the end of that journal.
func TestDamagedJournalInDoubt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no process leaves a doubt there")
	}
	b, disk := newCrashBench(t)
	for range 4 {
		b.long(true)
	}
	at := b.recordAt(1).off
	other := b.process(disk)
	other.shows(4)
	f, err := b.dir.FS.OpenFile(ctxfolder.JournalFile(1), os.O_RDWR)
	b.must(err)
	_, err = f.WriteAt(make([]byte, 50), at+300)
	b.must(err)
	b.must(f.Close())
	b.log.state.newest().leaveDoubt()
	b.must(other.add(1, false))
	other.shows(5)
	other.reopen()
	other.shows(5)
	if p, err := other.log.Problems(); err != nil || len(p) > 0 {
		t.Errorf("after the append: %v, %v", p, err)
	}
}
