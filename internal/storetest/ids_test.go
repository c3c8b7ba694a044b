package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRetryOfDamaged: a message whose file is its only copy, and is damaged or lost, is found by its id, and to append
// it again makes it what it was, in its place; before a repair and after. No id is shown twice, and a repair settles.
func TestRetryOfDamaged(t *testing.T) {
	garbage := func(p *kit.Patient) { kit.Write(p.T, p.Main[5], []byte("garbage")) }
	for _, d := range []struct {
		name   string
		do     func(p *kit.Patient)
		ids    []int // that are damaged
		hidden bool  // until a repair
		served bool  // they are there all the same
		back   bool  // by a repair
	}{
		{name: "missing", do: func(p *kit.Patient) { p.Remove(p.Main[5], p.Main[30]) }, ids: []int{5, 30}, hidden: true},
		{name: "garbage", do: garbage, ids: []int{5}},
		{name: "empty", do: func(p *kit.Patient) { kit.Write(p.T, p.Main[30], nil) }, ids: []int{30}},
		{name: "bit flipped, time kept", do: func(p *kit.Patient) {
			p.KeepTime(p.Main[5], func() { p.Change(p.Main[5], kit.FlipBit) })
		}, ids: []int{5}},
		{name: "another id", do: func(p *kit.Patient) {
			p.Change(p.Main[30], func(b []byte) []byte { return bytes.Replace(b, []byte(`"id":"0`), []byte(`"id":"1`), 1) })
		}, ids: []int{30}},
		{name: "swapped", do: func(p *kit.Patient) {
			a, b := kit.Must[[]byte](p.T)(os.ReadFile(p.Main[30])), kit.Must[[]byte](p.T)(os.ReadFile(p.Main[31]))
			kit.Write(p.T, p.Main[30], b)
			kit.Write(p.T, p.Main[31], a)
		}, ids: []int{30, 31}, back: true},
		{name: "position of another message", do: func(p *kit.Patient) { p.SetPosition(5, 8) }, ids: []int{5}, served: true},
		{name: "position beyond the end", do: func(p *kit.Patient) { p.SetPosition(30, 999) }, ids: []int{30}, served: true},
		{name: "too large", do: func(p *kit.Patient) {
			if err := os.Truncate(p.Main[30], 65<<20); err != nil {
				p.T.Fatal(err)
			}
		}, ids: []int{30}},
		{name: "first and last", do: func(p *kit.Patient) {
			kit.Write(p.T, p.Main[0], []byte("{}"))
			kit.Write(p.T, p.Main[39], []byte("{}"))
		}, ids: []int{0, 39}},
	} {
		for _, repaired := range []bool{false, true} {
			if d.hidden && !repaired {
				continue // TestStoredAgain has it
			}
			t.Run(fmt.Sprintf("%s, repaired %v", d.name, repaired), func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, false)
				d.do(p)
				ids, lost := p.IDs(d.ids...), p.IDs(d.ids...)
				if d.served || d.back && repaired {
					lost = nil
				}
				if repaired {
					p.Settle("damaged")
				}
				p.VerifyIDs("damaged", lost)
				var lay []byte // in its place
				if info, err := os.Stat(p.Main[d.ids[0]]); err == nil && info.Size() < 1<<20 && len(lost) > 0 {
					lay = kit.Must[[]byte](t)(os.ReadFile(p.Main[d.ids[0]]))
				}
				p.Retry("damaged", ids)
				if lay != nil && !p.InTrash(lay) {
					t.Error("what lay in its place is nowhere")
				}
				p.VerifyIDs("retried", nil)
				p.Retry("retried", ids)
				p.Settle("retried")
				p.VerifyIDs("repaired", nil)
				p.Retry("repaired", ids)
				p.VerifyIDs("retried again", nil)
			})
		}
	}
}

// TestRetryOfArchived is TestRetryOfDamaged for messages that a damaged pack had.
func TestRetryOfArchived(t *testing.T) {
	for name, do := range map[string]func(p *kit.Patient) []uuid.UUID{
		"pack, half": func(p *kit.Patient) (known []uuid.UUID) {
			p.Remove(p.Packs()[0])
			p.In(func(c *engine.Context) {
				for _, m := range kit.Load(p.T, c.Active()) {
					if m.Unavailable != nil && m.ID != uuid.Nil { // the message behind it tells its id
						known = append(known, m.ID)
					}
				}
			})
			return known
		},
		"message frame": func(p *kit.Patient) []uuid.UUID {
			part := p.Part("messages", 1)
			p.Flip(part)
			return part.IDs
		},
		"message frame and tables": func(p *kit.Patient) []uuid.UUID {
			part := p.Part("messages", 1)
			p.Flip(part, p.Part("directory", 0), p.Part("ids", 0))
			return part.IDs
		},
		"message frame and its rows": func(p *kit.Patient) []uuid.UUID {
			part := p.Part("messages", 1)
			p.Flip(part, p.Part("rows", 1))
			return part.IDs[len(part.IDs)-1:] // the message behind them tells the id of one
		},
	} {
		for _, repaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, repaired %v", name, repaired), func(t *testing.T) {
				t.Parallel()
				kind := "all"
				if strings.HasSuffix(name, "half") {
					kind = "half"
				}
				p := kit.NewArchivedPatient(t, kind)
				gone := do(p)
				if repaired {
					p.Settle("damaged")
				}
				again := slices.DeleteFunc(slices.Clone(gone), func(id uuid.UUID) bool {
					return !slices.ContainsFunc(p.Want["main"], func(b kit.Body) bool { return b.ID == id })
				})
				if len(again) == 0 {
					t.Fatal("the part has no messages of main")
				}
				p.Retry("damaged", again)
				p.Settle("retried")
				p.Retry("repaired", again)
				p.In(func(c *engine.Context) {
					for i, m := range kit.Load(t, c.Active()) {
						if slices.Contains(again, m.ID) && (m.Unavailable != nil || m.ID != p.Want["main"][i].ID) {
							t.Errorf("position %d: %+v", i, m)
						}
					}
					if n := kit.Must[int64](t)(c.Active().Len(context.Background())); n != int64(len(p.Want["main"])) {
						t.Errorf("%d messages, wanted %d", n, len(p.Want["main"]))
					}
				})
			})
		}
	}
}

// TestRetryOfLostElsewhere: what a repair has marked lost is found by its id by who opened the context before, also
// behind an index that was made anew, and is no more among the lost ones when it is back.
func TestRetryOfLostElsewhere(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	before := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	defer before.Close()
	kit.Must[int64](t)(before.Active().Len(ctx))
	lost := p.IDs(5, 30)
	p.Remove(p.Main[5], p.Main[30])
	p.Settle("missing")
	for _, id := range lost {
		if m, err := before.Active().Message(ctx, id); err != nil || !errors.Is(m.Unavailable, engine.ErrDamaged) {
			t.Errorf("through an older handle: %+v, %v", m, err)
		}
	}
	count := func(want int) {
		t.Helper()
		told := 0
		for _, n := range regexp.MustCompile(`"lost":(\d+)`).FindAllSubmatch(kit.Must[[]byte](t)(os.ReadFile(p.Glob("index.json")[0])), -1) {
			told += int(n[1][0] - '0')
		}
		if told != want {
			t.Errorf("index.json tells of %d lost messages, wanted %d", told, want)
		}
	}
	count(2)
	p.Remove(p.Glob("index.json")...)
	p.VerifyIDs("without index.json", lost)
	p.Retry("without index.json", lost[:1])
	p.In(func(c *engine.Context) {
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	count(1)
	p.Remove(slices.Concat(p.Glob("index.json"), p.Glob("journal-*.jsonl"))...)
	p.VerifyIDs("without index.json and journals", lost[1:])
	p.Retry("without index.json and journals", lost)
	p.VerifyIDs("retried", nil)
	p.In(func(c *engine.Context) {
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	count(0)
	p.Settle("retried")
	p.VerifyIDs("in the end", nil)
}

// TestRetryOfLostWhoseNameIsTaken: a message that comes back when another line has a file of its name in their folder
// gets another name, and is found under it.
func TestRetryOfLostWhoseNameIsTaken(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1), engine.WithoutPause())
	settle := func() {
		t.Helper()
		kit.Check(t, c.Fold(ctx), c.Log.Exclusively(ctx, c.Log.Retire))
	}
	kit.Fill(t, c.Active(), 3)
	id := uuid.New()
	kit.Append(t, c.Active(), engine.Draft{ID: id, Body: []byte(`{"of":"old"}`)})
	old := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "old", 4))
	kit.Check(t, c.Active().Rewind(ctx, 3))
	settle()
	kit.Check(t, os.Remove(filepath.Join(dir, "messages", "branch-main", id.String()+".json")))
	kit.Append(t, c.Active(), engine.Draft{ID: id, Body: []byte(`{"of":"new"}`)})
	settle()
	p := &kit.Patient{T: t, Store: c.Store, ID: c.ID(), Dir: dir}
	p.Settle("taken")
	if m, err := old.Message(ctx, id); err != nil || m.Unavailable == nil {
		t.Errorf("lost: %+v, %v", m, err)
	}
	if at := kit.Append(t, old, engine.Draft{ID: id, Body: []byte(`{"of":"old"}`)}); !at.Existed || at.Position != 3 {
		t.Errorf("%+v", at)
	}
	settle()
	p.Settle("back")
	p.In(func(c *engine.Context) {
		for b, want := range map[*engine.Branch]string{kit.Must[*engine.Branch](t)(c.Branch("old")): `{"of":"old"}`, c.Active(): `{"of":"new"}`} {
			if m, err := b.Message(ctx, id); err != nil || m.Unavailable != nil || m.Position != 3 || kit.BodyOf(m) != want {
				t.Errorf("branch %s: %+v, %v", b.Name(), m, err)
			}
		}
	})
}

// TestRetryOfLostWithPayloads: what comes back in its place brings its payloads with it, and goes into a batch with
// others.
func TestRetryOfLostWithPayloads(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	w := p.Want["main"][3] // its text is in a blob
	raw := kit.Must[[]byte](t)(os.ReadFile(p.Main[3]))
	p.Remove(slices.DeleteFunc(slices.Clone(p.Blobs), func(path string) bool {
		return !bytes.Contains(raw, []byte(strings.TrimSuffix(filepath.Base(path), ".zst")))
	})...)
	p.Remove(p.Main[3])
	p.Settle("missing")
	p.In(func(c *engine.Context) {
		results, err := c.Active().AppendBatch(ctx, []engine.Draft{
			{Body: []byte(`{"one":1}`)}, {ID: w.ID, Body: json.RawMessage(w.Text)},
			{Body: []byte(`{"two":2}`)}, {ID: w.ID, Body: json.RawMessage(w.Text)},
			{ID: w.ID, Body: []byte(`{"another":1}`)},
		})
		if err != nil || len(results) != 5 {
			t.Fatal(results, err)
		}
		for i, want := range []engine.AppendResult{{Position: 40}, {Position: 3, Existed: true}, {Position: 41}, {Position: 3, Existed: true}} {
			if r := results[i]; r.Err != nil || r.Position != want.Position || r.Existed != want.Existed {
				t.Errorf("message %d: %+v", i, r)
			}
		}
		if !errors.Is(results[4].Err, engine.ErrConflict) {
			t.Errorf("another body: %+v", results[4])
		}
	})
	p.VerifyIDs("retried", nil)
}

// TestRetryCosts: an append with an id that is new looks at no row of a context that has no lost messages, and reads
// the rows of one that has some once.
func TestRetryCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithFoldBytes(-1), engine.WithoutPause())
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	const n = 3000
	kit.Fill(t, c.Active(), n)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
		t.Fatal(err)
	}
	kit.Append(t, c.Active(), engine.Draft{ID: uuid.Max, Body: []byte(`{}`)}) // so the next ids are not the greatest
	kit.Fill(t, c.Active(), 1)                                                // it reads what is laid out in the new journal
	appends := func() int64 {
		_, bytes := k.read(func() {
			kit.Append(t, c.Active(), engine.Draft{ID: uuid.New(), Body: []byte(`{}`)})
		})
		return bytes
	}
	if got := appends(); got > 2000 {
		t.Errorf("%d bytes are read for an append", got)
	}
	m := kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 7, 8))[0]
	if err := c.Dir.FS.Remove("messages/branch-main/" + m.ID.String() + ".json"); err != nil {
		t.Fatal(err)
	}
	for _, err := range k.store.Repair(ctx, nil, engine.CheckOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := appends(); got < n*256 {
		t.Errorf("%d bytes are read where rows are to be looked through", got)
	}
	for range 3 {
		if got := appends(); got > 2000 {
			t.Errorf("%d bytes are read for another append", got)
		}
	}
	if at := kit.Append(t, c.Active(), engine.Draft{ID: m.ID, Body: m.Stored}); !at.Existed || at.Position != 7 {
		t.Errorf("%+v", at)
	}
}
