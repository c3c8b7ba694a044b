package index

import (
	"bytes"
	stdcontext "context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// bench is a context with one line, without the packages above.
type bench struct {
	t    testing.TB
	root string
	fs   vfs.FS
	dir  *ctxfolder.Dir
	log  *Log
	line uuid.UUID
	ids  []uuid.UUID
}

var testStore = uuid.MustParse("00000000-0000-4000-8000-000000000001")

func newBench(t testing.TB) *bench {
	root := t.TempDir()
	fsys, err := vfs.OS(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{ctxfolder.Locks, ctxfolder.Staging} {
		if err := fsys.Mkdir(d); err != nil {
			t.Fatal(err)
		}
	}
	m := &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "main", CreatedAt: time.Now(), Revision: 1}
	b := &bench{t: t, root: root, fs: fsys, line: uuid.New()}
	if _, err := branch.New(m, "main", b.line); err != nil {
		t.Fatal(err)
	}
	begin, err := BeginFiles(m, testStore)
	if err != nil {
		t.Fatal(err)
	}
	if err := ctxfolder.Create(stdcontext.Background(), fsys, m, begin); err != nil {
		t.Fatal(err)
	}
	b.root = filepath.Join(root, m.ID.String())
	b.open(m.ID)
	t.Cleanup(func() {
		b.close()
		_ = fsys.Close()
	})
	return b
}

func (b *bench) open(id uuid.UUID) {
	dir, err := ctxfolder.Open(b.fs, testStore, id)
	if err != nil {
		b.t.Fatal(err)
	}
	b.dir, b.log = dir, Open(dir, Options{})
}

func (b *bench) close() {
	_ = b.log.Close()
	_ = b.dir.Close()
}

func (b *bench) reopen() {
	id := b.dir.ID
	b.close()
	b.open(id)
}

// add commits n messages in one batch; with files, their files are made too.
func (b *bench) add(n int, files bool) error {
	ctx := stdcontext.Background()
	if err := b.dir.Lock.Acquire(ctx); err != nil {
		return err
	}
	if err := b.log.Prepare(); err != nil {
		_ = b.dir.Lock.Release()
		return err
	}
	c, _, err := b.log.Counts(b.line)
	if err != nil {
		return err
	}
	var items []Item
	prev := c.Last
	for i := range n {
		env := &message.Envelope{
			ID: uuid.New(), Line: b.line, Position: c.End() + int64(i), Prev: prev, StoredAt: time.Now().UTC(),
			Branch: "main", Body: fmt.Appendf(nil, `{"n":%d}`, c.End()+int64(i)),
		}
		prev = env.ID
		items = append(items, Item{Kind: KindAppend, Envelope: env, Body: env.AppendTo(nil)})
	}
	commit := b.log.Append(items)
	_ = b.dir.Lock.Release()
	if commit.Err != nil {
		return commit.Err
	}
	if err := commit.Wait(); err != nil {
		return err
	}
	for _, it := range items {
		b.ids = append(b.ids, it.Envelope.ID)
		if files {
			if err := b.dir.CreateMessage("branch-main", it.Envelope.ID, it.Body, it.Envelope.StoredAt); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// shows checks that the line holds exactly the first n ids.
func (b *bench) shows(n int) {
	b.t.Helper()
	entries, err := b.log.Entries(b.line, 0, 1<<40)
	b.must(err)
	if len(entries) != n {
		b.t.Fatalf("%d entries, wanted %d", len(entries), n)
	}
	for i, e := range entries {
		if e.Position != int64(i) || e.ID != b.ids[i] || e.Lost != "" {
			b.t.Fatalf("entry %d: %+v, wanted %s", i, e, b.ids[i])
		}
	}
}

func (b *bench) journal(gen int) string {
	return filepath.Join(b.root, fmt.Sprintf("journal-%d.jsonl", gen))
}

// used returns the bytes of a journal without the space laid out behind its records.
func (b *bench) used(gen int) []byte {
	raw, err := os.ReadFile(b.journal(gen))
	b.must(err)
	return append(bytes.TrimRight(raw, "\n"), '\n')
}

func TestTornTailIsCut(t *testing.T) {
	t.Parallel()
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for name, tear := range map[string]func(raw []byte, whole, cut int) []byte{
		"end": func(raw []byte, _, cut int) []byte { return raw[:cut] },
		"NULs": func(raw []byte, _, cut int) []byte {
			return append(bytes.Clone(raw[:cut]), make([]byte, len(raw)-cut)...)
		},
		"page": func(raw []byte, whole, cut int) []byte {
			return append(append(append(bytes.Clone(raw[:whole]), bytes.Repeat([]byte{'\n'}, cut-whole)...), raw[cut:]...), "\n\n"...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.must(b.add(3, true))
			whole := len(b.used(1))
			b.must(b.add(1, false)) // its file is never made: the commit did not end
			raw := b.used(1)
			ids := b.ids[:3]
			intact := t.TempDir()
			b.must(os.CopyFS(intact, os.DirFS(b.root)))
			inTrash := 0
			for cut := whole + 1; cut < len(raw); cut += stride {
				if name == "page" && len(bytes.Trim(raw[cut:], "\n")) == 0 {
					continue
				}
				b.close()
				b.must(os.RemoveAll(b.root))
				b.must(os.CopyFS(b.root, os.DirFS(intact)))
				b.must(os.WriteFile(b.journal(1), tear(raw, whole, cut), 0o600))
				b.reopen()
				b.ids = ids[:3:3]
				b.shows(3)
				b.must(b.add(1, false))
				b.reopen()
				b.shows(4)
				items, err := filepath.Glob(filepath.Join(b.root, "trash", "*", "journal-1.jsonl"))
				b.must(err)
				inTrash += len(items)
				if cut > whole+200 && cut < len(raw)-40 {
					cut += 37
				}
			}
			if inTrash == 0 {
				t.Fatal("no torn tail is in the trash")
			}
		})
	}
}

func TestTornRecordWithFileIsReinstated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(4, true))
	raw := b.used(1)
	b.must(os.WriteFile(b.journal(1), raw[:len(raw)-7], 0o600))
	b.reopen()
	b.shows(4) // for a reader, from the file
	b.must(b.add(1, true))
	b.reopen()
	b.shows(5)
}

func TestDamagedRecordInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]bool{"with files": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.must(b.add(5, files))
			raw := b.used(1)
			at := bytes.Index(raw, []byte(b.ids[2].String()))
			raw[at] ^= 1
			b.must(os.WriteFile(b.journal(1), raw, 0o600))
			b.reopen()
			entries, err := b.log.Entries(b.line, 0, 10)
			b.must(err)
			if len(entries) != 5 || entries[2].ID != b.ids[2] || (entries[2].Lost == "") != files ||
				entries[3].ID != b.ids[3] || entries[3].Lost != "" {
				t.Fatalf("entries %+v", entries)
			}
			if p, err := b.log.Problems(); err != nil || len(p) == 0 {
				t.Fatalf("no problem was reported: %v", err)
			}
			b.must(b.add(1, files))
			b.reopen()
			entries, err = b.log.Entries(b.line, 0, 10)
			b.must(err)
			if len(entries) != 6 || entries[5].ID != b.ids[5] {
				t.Fatalf("entries after an append %+v", entries)
			}
		})
	}
}

// TestDamageAtTheEndOfALine damages records, or cuts them off. The rebuild must find them in the message files, even if
// no later record of their line exists.
func TestDamageAtTheEndOfALine(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(raw []byte, ids []uuid.UUID) []byte{
		"bit in the last one": func(raw []byte, ids []uuid.UUID) []byte {
			raw[bytes.LastIndex(raw, []byte(ids[4].String()))] ^= 1
			return raw
		},
		"cut between records": func(raw []byte, ids []uuid.UUID) []byte {
			return raw[:bytes.LastIndex(raw[:bytes.Index(raw, []byte(ids[3].String()))], []byte(headChain))]
		},
		"cut in a record": func(raw []byte, ids []uuid.UUID) []byte {
			return raw[:bytes.Index(raw, []byte(ids[2].String()))+60]
		},
		"last records blank": func(raw []byte, _ []uuid.UUID) []byte {
			return bytes.TrimRight(raw, "\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.must(b.add(5, true))
			raw, err := os.ReadFile(b.journal(1))
			b.must(err)
			b.must(os.WriteFile(b.journal(1), damage(raw, b.ids), 0o600))
			b.reopen()
			b.shows(5)
			b.must(b.add(1, true))
			b.shows(6)
			b.must(b.log.Fold(stdcontext.Background(), true))
			b.reopen()
			b.shows(6)
		})
	}
}

// faulty lets syncs of journals fail.
type faulty struct {
	vfs.FS
	fail bool
}

type faultyFile struct {
	vfs.File
	fs *faulty
}

var errDisk = errors.New("the disk is on fire")

func (f *faulty) OpenFile(name string, flag int) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	return faultyFile{file, f}, err
}

func (f faultyFile) Datasync() error {
	if f.fs.fail {
		f.fs.fail = false
		return errDisk
	}
	return f.File.Datasync()
}

func TestFailedSyncBeginsANewJournal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := &faulty{FS: b.dir.FS}
	b.dir.FS = f
	b.must(b.add(2, true))
	f.fail = true
	if err := b.add(1, false); !errors.Is(err, ErrDurability) || !errors.Is(err, errDisk) {
		t.Fatalf("a failed sync gave %v", err)
	}
	// The record was written and counts, acknowledged or not: its id is the one that the index knows.
	e, err := b.log.Entries(b.line, 2, 3)
	b.must(err)
	b.ids = append(b.ids[:2], e[0].ID)
	b.must(b.add(1, true))
	if _, err := os.Stat(b.journal(2)); err != nil {
		t.Fatalf("no new journal: %v", err)
	}
	b.shows(4)
	b.must(os.Truncate(b.journal(1), 10000)) // what the failed sync left there does not matter
	b.reopen()
	b.shows(4)
	b.must(b.log.Fold(stdcontext.Background(), true))
	b.must(b.add(1, true))
	b.reopen()
	b.shows(5)
}

func TestRecommitAcknowledges(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := &faulty{FS: b.dir.FS}
	b.dir.FS = f
	ctx := stdcontext.Background()
	b.must(b.add(2, true))
	b.must(b.dir.Lock.Acquire(ctx))
	b.must(b.log.Prepare())
	env := &message.Envelope{ID: uuid.New(), Line: b.line, Position: 2, Prev: b.ids[1], StoredAt: time.Now().UTC(), Body: []byte(`{}`)}
	commit := b.log.Append([]Item{{Kind: KindAppend, Envelope: env, Body: env.AppendTo(nil)}})
	b.must(b.dir.Lock.Release())
	f.fail = true
	if err := commit.Wait(); !errors.Is(err, ErrDurability) {
		t.Fatal(err)
	}
	if err := commit.Wait(); !errors.Is(err, ErrDurability) {
		t.Fatalf("a failed sync was tried again: %v", err)
	}
	b.must(b.dir.Lock.Acquire(ctx))
	ok, err := b.log.Recommit(commit)
	b.must(b.dir.Lock.Release())
	if !ok || err != nil {
		t.Fatalf("recommit: %v, %v", ok, err)
	}
	b.ids = append(b.ids, env.ID)
	b.must(os.Remove(b.journal(1)))
	b.reopen()
	b.shows(3)
}

func TestFoldsRetireOneGenerationLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for gen := 1; gen <= 4; gen++ {
		b.must(b.add(3, gen%2 == 0))
		b.must(b.log.Fold(stdcontext.Background(), true))
		b.must(b.log.Fold(stdcontext.Background(), true)) // does nothing
		names, err := filepath.Glob(filepath.Join(b.root, "journal-*"))
		b.must(err)
		if want := []string{b.journal(gen), b.journal(gen + 1)}; len(names) != 2 || names[0] != want[0] || names[1] != want[1] {
			t.Fatalf("after fold %d: %v, wanted %v", gen, names, want)
		}
		b.shows(3 * gen)
		b.reopen()
		b.shows(3 * gen)
	}
	for _, id := range b.ids {
		if _, err := os.Stat(filepath.Join(b.root, "messages", "branch-main", id.String()+".json")); err != nil {
			t.Fatalf("a fold did not make the file: %v", err)
		}
	}
}

// TestFoldedMessagesOutliveTheirFiles loses the files of folded messages that are not settled. The folded journals must
// serve the messages, and the next settle must write the files again.
func TestFoldedMessagesOutliveTheirFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		b.must(b.add(3, true))
		b.must(b.log.Fold(stdcontext.Background(), false))
	}
	b.must(os.RemoveAll(filepath.Join(b.root, "messages", "branch-main")))
	b.reopen()
	entries, err := b.log.Entries(b.line, 0, 9)
	b.must(err)
	records := make([][]byte, len(entries))
	b.log.ReadRecords(entries, records)
	for i, record := range records {
		if env, err := message.Parse(record); err != nil || env.ID != b.ids[i] {
			t.Errorf("position %d: %v, %v", i, env.ID, err)
		}
		if e, ok, err := b.log.Find(b.line, b.ids[i], 9, false); !ok || err != nil || e.Position != int64(i) {
			t.Errorf("by id, position %d: %v, %v", e.Position, ok, err)
		}
	}
	b.must(b.log.Fold(stdcontext.Background(), true))
	for _, id := range b.ids {
		if _, err := os.Stat(filepath.Join(b.root, "messages", "branch-main", id.String()+".json")); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(b.root); err != nil || len(entries) != 6 {
		t.Errorf("%v, %v; wanted two journals, metadata, index, rows and messages", entries, err)
	}
}

func TestEveryCacheCanGo(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *bench){
		"index.json": func(b *bench) { b.must(os.Remove(filepath.Join(b.root, "index.json"))) },
		"rows":       func(b *bench) { b.must(os.RemoveAll(filepath.Join(b.root, "index"))) },
		"newest journal": func(b *bench) {
			b.must(os.Remove(b.journal(3)))
		},
		"retained journal": func(b *bench) { b.must(os.Remove(b.journal(2))) },
		"everything": func(b *bench) {
			b.must(os.Remove(filepath.Join(b.root, "index.json")))
			b.must(os.RemoveAll(filepath.Join(b.root, "index")))
			b.must(os.Remove(b.journal(2)))
			b.must(os.Remove(b.journal(3)))
		},
		"row": func(b *bench) {
			f, err := os.OpenFile(filepath.Join(b.root, "index", b.line.String()+".rows"), os.O_RDWR, 0)
			b.must(err)
			_, err = f.WriteAt([]byte("xx"), 2*rowWidth+20)
			b.must(err)
			b.must(f.Close())
		},
		"index of another context": func(b *bench) {
			o := newBench(b.t)
			raw, err := os.ReadFile(filepath.Join(o.root, "index.json"))
			b.must(err)
			b.must(os.WriteFile(filepath.Join(b.root, "index.json"), raw, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for range 2 {
				b.must(b.add(4, true))
				b.must(b.log.Fold(stdcontext.Background(), true))
			}
			b.must(b.add(2, true))
			lose(b)
			b.reopen()
			b.shows(10)
			b.must(b.add(1, true))
			b.shows(11)
			b.reopen()
			b.shows(11)
			if p, err := b.log.Problems(); err != nil || len(p) > 0 {
				t.Fatalf("the rebuilt index was not saved: %v, %v", p, err)
			}
		})
	}
}

func FuzzJournal(f *testing.F) {
	b := newBench(f)
	b.must(b.add(3, false))
	raw := b.used(1)
	f.Add(raw)
	f.Add(raw[:len(raw)-9])
	f.Add(bytes.Replace(raw, []byte(`"n":1`), []byte(`"n":7`), 1))
	f.Fuzz(func(t *testing.T, journal []byte) {
		b.t = t
		b.must(os.WriteFile(b.journal(1), journal, 0o600))
		b.reopen()
		entries, err := b.log.Entries(b.line, 0, 100)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ctxfolder.ErrVersion) {
			t.Fatal(err)
		}
		for i, e := range entries {
			if e.Position != int64(i) {
				t.Fatalf("entry %d has position %d", i, e.Position)
			}
		}
	})
}

func FuzzRow(f *testing.F) {
	e := Entry{Position: 7, ID: uuid.New(), File: uuid.New(), Size: 1, Sum: 2, At: 3}
	f.Add(appendRow(nil, &e))
	lost := Entry{Position: 8, Lost: "because \"it\" is gone"}
	f.Add(appendRow(nil, &lost))
	f.Fuzz(func(t *testing.T, row []byte) {
		e, err := parseRow(row)
		if err == nil && !bytes.Contains(row, fmt.Appendf(nil, `"pos":%15d,`, e.Position)) {
			t.Fatalf("%q became %+v", row, e)
		}
	})
}

func FuzzIndex(f *testing.F) {
	b := newBench(f)
	b.must(b.add(3, true))
	b.must(b.log.Fold(stdcontext.Background(), true))
	raw, err := os.ReadFile(filepath.Join(b.root, "index.json"))
	b.must(err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if x, err := parseIndexFile(raw); err == nil && len(x.Journals) == 0 {
			t.Fatal("an index without journals")
		}
	})
}

func TestRowRoundTrip(t *testing.T) {
	t.Parallel()
	for _, e := range []Entry{
		{Position: 0, ID: uuid.New(), Size: 12, Sum: 1 << 63, At: 1763692800123456789},
		{Position: 9_999_999_999, ID: uuid.New(), File: uuid.New(), Size: maxLen, Sum: 5, At: 1<<63 - 1, gen: maxLen, off: maxLen},
		{Position: 5, Lost: "no copy was found"},
	} {
		row := appendRow(nil, &e)
		if len(row) != rowWidth || row[len(row)-1] != '\n' {
			t.Errorf("a row of %d bytes: %q", len(row), row)
		}
		got, err := parseRow(row)
		if err != nil || got != e {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
		for i := range bytes.TrimRight(row, " \n") {
			row[i] ^= 2
			if _, err := parseRow(row); err == nil {
				t.Errorf("byte %d is not checked", i)
			}
			row[i] ^= 2
		}
	}
}
