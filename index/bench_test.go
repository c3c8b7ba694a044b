package index

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

var (
	testContext = uuid.MustParse("01930000-0000-7000-8000-000000000001")
	testStore   = uuid.MustParse("01930000-0000-7000-8000-000000000002")
	testTime    = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
)

// shown is a message as the model has it.
type shown struct {
	id       uuid.UUID
	envelope string // empty if it is erased
}

// model is what a history should show.
type model struct {
	lines    map[uuid.UUID][]shown
	payloads map[blob.Sum]string
	kept     *payloadKeeper
	title    string
}

func newModel() *model {
	return &model{lines: map[uuid.UUID][]shown{}, payloads: map[blob.Sum]string{}, kept: &payloadKeeper{all: map[blob.Sum]string{}}}
}

func (m *model) clone() *model {
	c := &model{lines: map[uuid.UUID][]shown{}, payloads: maps.Clone(m.payloads), kept: m.kept, title: m.title}
	for id, all := range m.lines {
		c.lines[id] = slices.Clone(all)
	}
	return c
}

// payloadKeeper is where payloads are kept that are in no log. It survives power cuts.
type payloadKeeper struct {
	mu  sync.Mutex
	all map[blob.Sum]string
}

func (k *payloadKeeper) keep(payloads iter.Seq2[[]byte, error]) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for b, err := range payloads {
		if err != nil {
			return err
		}
		k.all[blob.SumOf(b)] = string(b)
	}
	return nil
}

func (k *payloadKeeper) get(sum blob.Sum) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[sum]
}

// bench writes histories and compares them with the model.
type bench struct {
	t     *testing.T
	r     *rand.Rand
	disk  *crashfs.FS
	ix    *Index
	model *model
	meta  *ctxfolder.Metadata
	made  int
	times int
	last  []journal.Item // of the last commit
}

func folderOf(t *testing.T, disk *crashfs.FS) Folder {
	t.Helper()
	dir, err := disk.Sub(".") // another process has its own
	must(t, err)
	segments, err := disk.Sub("segments")
	must(t, err)
	return Folder{testStore, testContext, dir, segments}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBench(t *testing.T, seed uint64) *bench {
	b := &bench{t: t, r: rand.New(rand.NewPCG(seed, 1)), disk: crashfs.New(), model: newModel()}
	must(t, b.disk.Mkdir("segments"))
	must(t, b.disk.SyncDir("."))
	line := uuid.MustParse("01950000-0000-7000-8000-000000000001")
	b.meta = &ctxfolder.Metadata{
		ID: testContext, Title: "begun", CreatedAt: testTime, UpdatedAt: testTime, ActiveBranch: "main",
		Lines: []ctxfolder.Line{{ID: line, Folder: "branch-main"}}, Branches: []ctxfolder.Branch{{Name: "main", Line: line}},
	}
	must(t, Begin(folderOf(t, b.disk), b.meta))
	must(t, b.disk.SyncDir("."))
	b.ix, b.model.title = Open(folderOf(t, b.disk), b.options()), "begun"
	must(t, b.ix.Refresh())
	t.Cleanup(func() { b.ix.Close() })
	return b
}

func (b *bench) options() Options { return Options{Full: 4 << 10, Payloads: b.model.kept.keep} }

func (b *bench) newID() uuid.UUID {
	b.made++
	var id uuid.UUID
	if b.r.IntN(4) == 0 { // one that is not above the others
		for i := range id {
			id[i] = byte(b.r.Uint32())
		}
		id[6], id[8] = id[6]&0xf|0x40, id[8]&0x3f|0x80
		return id
	}
	return uuid.MustParse(fmt.Sprintf("01940000-%04x-7000-8000-%012x", b.made, b.made))
}

func (b *bench) envelope(line uuid.UUID, position int64, id uuid.UUID) []byte {
	b.times++
	text := fmt.Sprint("text ", b.times, " ", string(make([]byte, b.r.IntN(300))))
	body, _ := json.Marshal(map[string]string{"role": "user", "content": text})
	e := message.Envelope{
		ID: id, Line: line, Position: position, StoredAt: testTime.Add(time.Duration(b.times) * time.Millisecond), Branch: "main",
		Role: "user", Type: "text", Body: body,
	}
	return e.AppendTo(nil)
}

// change is one random commit: its items, and what it makes of a model.
func (b *bench) change(m *model) (items []journal.Item, group bool) {
	line := b.anyLine()
	all := m.lines[line]
	switch b.r.IntN(10) {
	case 0:
		if len(all) > 0 {
			p := b.r.IntN(len(all))
			if all[p].envelope == "" {
				return nil, false
			}
			raw := b.envelope(line, int64(p), all[p].id)
			items = append(items, journal.Item{Kind: journal.Replace, Body: raw, Was: int64(len(all[p].envelope))})
			all[p].envelope = string(raw)
		}
	case 1:
		if len(all) > 0 && b.r.IntN(3) == 0 {
			end := b.r.IntN(len(all) + 1)
			all = all[:end]
			t := trim{Line: line, End: int64(end), Bytes: bytesOf(all)}
			if end > 0 {
				t.Last = all[end-1].id
			}
			body, _ := json.Marshal(t)
			items = append(items, journal.Item{Kind: journal.Trim, Body: body})
		}
	case 2:
		if len(all) > 0 && b.r.IntN(2) == 0 {
			p := b.r.IntN(len(all))
			all[p].envelope = ""
			body, _ := json.Marshal(erasure{Line: line, Positions: []int64{int64(p)}, Bytes: bytesOf(all)})
			items = append(items, journal.Item{Kind: journal.Erase, Body: body})
		}
	case 3:
		b.meta = b.meta.Clone()
		b.meta.Title, b.meta.Revision = fmt.Sprint("title ", b.times), b.meta.Revision+1
		b.times++
		it, err := b.ix.MetadataItem(b.meta)
		must(b.t, err)
		items, m.title = append(items, it), b.meta.Title
	case 4:
		payload := fmt.Sprint("payload ", b.times)
		b.times++
		sum := blob.SumOf([]byte(payload))
		body := fmt.Sprintf(`{"blob":"%x","text":%q}`, sum[:], payload)
		items = append(items, journal.Item{Kind: journal.Payload, Body: []byte(body)})
		m.payloads[sum] = payload
		fallthrough
	default:
		for range 1 + b.r.IntN(4) {
			id := b.newID()
			raw := b.envelope(line, int64(len(all)), id)
			items = append(items, journal.Item{Kind: journal.Add, Body: raw})
			all = append(all, shown{id, string(raw)})
		}
		group = b.r.IntN(2) == 0
	}
	m.lines[line] = all
	return items, group
}

func bytesOf(all []shown) (n int64) {
	for i := range all {
		n += int64(len(all[i].envelope))
	}
	return n
}

func (b *bench) anyLine() uuid.UUID {
	n := 1 + b.r.IntN(3)
	return uuid.MustParse(fmt.Sprintf("01950000-0000-7000-8000-00000000000%d", n))
}

// commit commits a random change. The model has it from now on.
func (b *bench) commit() error {
	if err := b.ix.Prepare(); err != nil {
		return err
	}
	next := b.model.clone()
	items, group := b.change(next)
	if len(items) == 0 {
		return nil
	}
	c := b.ix.Append(items, group)
	if c.Err != nil {
		return c.Err
	}
	if err := c.Wait(); err != nil {
		return err
	}
	b.model, b.last = next, items
	return nil
}

// compare compares a history with the model.
func (b *bench) compare(ix *Index, when string) {
	b.t.Helper()
	if err := difference(ix, b.model, b.r); err != nil {
		b.t.Fatalf("%s: %v", when, err)
	}
}

func difference(ix *Index, m *model, r *rand.Rand) error {
	meta, err := ix.Metadata()
	if err != nil {
		return err
	}
	if meta == nil || meta.Title != m.title {
		return fmt.Errorf("the title is not %q: %+v", m.title, meta)
	}
	counts, _, err := ix.AllCounts()
	if err != nil {
		return err
	}
	for line, c := range counts {
		if c.Count > 0 && len(m.lines[line]) == 0 {
			return fmt.Errorf("line %s has %d messages, wanted none", line, c.Count)
		}
	}
	for line, all := range m.lines {
		c, ok, err := ix.Counts(line)
		if err != nil {
			return err
		}
		if !ok && len(all) == 0 {
			continue
		}
		if c.Count != int64(len(all)) || c.Bytes != bytesOf(all) {
			return fmt.Errorf("line %s: %+v, wanted %d of %d bytes", line, c, len(all), bytesOf(all))
		}
		from := int64(r.IntN(len(all) + 1))
		for _, span := range [][2]int64{{0, c.End()}, {from, c.End()}, {0, from}} {
			if err := differenceIn(ix, line, all, span[0], span[1]); err != nil {
				return err
			}
		}
		for i := range all {
			e, ok, err := ix.Find(line, all[i].id, c.End())
			if err != nil || !ok || e.Position != int64(i) {
				return fmt.Errorf("message %d of line %s is found at %d: %v, %w", i, line, e.Position, ok, err)
			}
			if isNew, err := ix.IsNew(all[i].id); err != nil || isNew {
				return fmt.Errorf("message %d of line %s is new: %w", i, line, err)
			}
		}
	}
	for sum, text := range m.payloads {
		b, ok, err := ix.Payload(sum)
		if err == nil && !ok {
			b = []byte(m.kept.get(sum))
		}
		if err != nil || string(b) != text {
			return fmt.Errorf("payload %q: %q, %v, %w", text, b, ok, err)
		}
	}
	return nil
}

func differenceIn(ix *Index, line uuid.UUID, all []shown, from, to int64) error {
	entries, err := ix.Entries(line, from, to)
	if err != nil {
		return err
	}
	if int64(len(entries)) != to-from {
		return fmt.Errorf("line %s has %d entries from %d to %d", line, len(entries), from, to)
	}
	bodies := make([][]byte, len(entries))
	ix.Read(entries, bodies)
	for i := range entries {
		e, want := &entries[i], &all[from+int64(i)]
		if e.Position != from+int64(i) || e.ID != want.id || (e.Gone == archive.Erased) != (want.envelope == "") {
			return fmt.Errorf("line %s, position %d: %+v, wanted %s", line, from+int64(i), e, want.id)
		}
		if string(bodies[i]) != want.envelope {
			_, err := ix.ReadOne(e)
			return fmt.Errorf("line %s, position %d: %q, wanted %q: %w", line, e.Position, bodies[i], want.envelope, err)
		}
	}
	return nil
}

// again opens the history as another process does.
func (b *bench) again(disk vfs.FS) *Index {
	b.t.Helper()
	ix := Open(folderOf(b.t, disk.(*crashfs.FS)), b.options())
	must(b.t, ix.Refresh())
	return ix
}
