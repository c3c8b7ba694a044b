package engine

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
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
)

// ids are those of branch main at some positions.
func (p *patient) ids(positions ...int) (ids []uuid.UUID) {
	for _, i := range positions {
		ids = append(ids, p.want["main"][i].id)
	}
	return ids
}

// in does something with a handle of its own.
func (p *patient) in(do func(c *Context)) {
	p.t.Helper()
	c := must[*Context](p.t)(p.store.Context(context.Background(), p.id))
	defer c.Close()
	do(c)
}

// settled repairs until nothing is wrong that can be mended, which is to be the case after the first time.
func (p *patient) settled(when string) {
	p.t.Helper()
	p.repair(CheckOptions{})
	for _, f := range p.check(true) {
		if f.Repairable || f.Severity == SeverityError {
			p.t.Errorf("%s, after a repair: %+v", when, f)
		}
	}
	if again := p.repair(CheckOptions{}); len(again) > 0 {
		p.t.Errorf("%s: a second repair did %+v", when, again)
	}
}

// once looks whether branches show each id once: every message of what the patient had with its content, but for the
// lost ones, whose ids are found all the same.
func (p *patient) once(when string, lost []uuid.UUID) {
	p.t.Helper()
	ctx := context.Background()
	p.in(func(c *Context) {
		for _, name := range []string{"main", "alt"} {
			b := must[*Branch](p.t)(c.Branch(name))
			seen := map[uuid.UUID]bool{}
			for i, m := range must[[]*Message](p.t)(b.Load(ctx)) {
				if seen[m.ID] {
					p.t.Errorf("%s: branch %s shows %s again at %d", when, name, m.ID, i)
				}
				seen[m.ID] = true
				if i >= len(p.want[name]) {
					continue
				}
				body, err := m.Body(ctx)
				if w := p.want[name][i]; m.ID != w.id || (err != nil) != slices.Contains(lost, w.id) || err == nil && string(body) != w.text {
					p.t.Errorf("%s: branch %s, position %d: %s %s, %v; wanted %s %s", when, name, i, m.ID, body, err, w.id, w.text)
				}
				found, err := b.Message(ctx, m.ID)
				if err != nil || found.Position != m.Position || (found.Unavailable == nil) != (m.Unavailable == nil) {
					p.t.Errorf("%s: branch %s, position %d is not found by its id: %+v, %v", when, name, i, found, err)
				}
			}
		}
	})
}

// retry appends messages of main anew under the ids they have. Each is to be there already.
func (p *patient) retry(when string, ids []uuid.UUID) {
	p.t.Helper()
	p.in(func(c *Context) {
		for i, w := range p.want["main"] {
			if !slices.Contains(ids, w.id) {
				continue
			}
			at, err := c.Active().Append(context.Background(), Draft{ID: w.id, Body: json.RawMessage(w.text)})
			if err != nil || !at.Existed || at.Position != int64(i) {
				p.t.Errorf("%s: position %d was appended anew: %+v, %v", when, i, at, err)
			}
		}
	})
}

// TestRetryOfDamaged: a message whose file is its only copy, and is damaged or lost, is found by its id, and to append
// it again makes it what it was, in its place; before a repair and after. No id is shown twice, and a repair settles.
func TestRetryOfDamaged(t *testing.T) {
	garbage := func(p *patient) { write(p.t, p.main[5], []byte("garbage")) }
	for _, d := range []struct {
		name   string
		do     func(p *patient)
		ids    []int // that are damaged
		hidden bool  // until a repair
		served bool  // they are there all the same
		back   bool  // by a repair
	}{
		{name: "missing", do: func(p *patient) { p.remove(p.main[5], p.main[30]) }, ids: []int{5, 30}, hidden: true},
		{name: "garbage", do: garbage, ids: []int{5}},
		{name: "empty", do: func(p *patient) { write(p.t, p.main[30], nil) }, ids: []int{30}},
		{name: "bit flipped, time kept", do: func(p *patient) { p.keepTime(p.main[5], func() { p.change(p.main[5], flipped) }) }, ids: []int{5}},
		{name: "another id", do: func(p *patient) {
			p.change(p.main[30], func(b []byte) []byte { return bytes.Replace(b, []byte(`"id":"0`), []byte(`"id":"1`), 1) })
		}, ids: []int{30}},
		{name: "swapped", do: func(p *patient) {
			a, b := must[[]byte](p.t)(os.ReadFile(p.main[30])), must[[]byte](p.t)(os.ReadFile(p.main[31]))
			write(p.t, p.main[30], b)
			write(p.t, p.main[31], a)
		}, ids: []int{30, 31}, back: true},
		{name: "position of another message", do: func(p *patient) { p.tell(5, 8) }, ids: []int{5}, served: true},
		{name: "position beyond the end", do: func(p *patient) { p.tell(30, 999) }, ids: []int{30}, served: true},
		{name: "too large", do: func(p *patient) {
			if err := os.Truncate(p.main[30], 65<<20); err != nil {
				p.t.Fatal(err)
			}
		}, ids: []int{30}},
		{name: "first and last", do: func(p *patient) {
			write(p.t, p.main[0], []byte("{}"))
			write(p.t, p.main[39], []byte("{}"))
		}, ids: []int{0, 39}},
	} {
		for _, repaired := range []bool{false, true} {
			if d.hidden && !repaired {
				continue // TestStoredAgain has it
			}
			t.Run(fmt.Sprintf("%s, repaired %v", d.name, repaired), func(t *testing.T) {
				t.Parallel()
				p := newPatient(t, false)
				d.do(p)
				ids, lost := p.ids(d.ids...), p.ids(d.ids...)
				if d.served || d.back && repaired {
					lost = nil
				}
				if repaired {
					p.settled("damaged")
				}
				p.once("damaged", lost)
				var lay []byte // in its place
				if info, err := os.Stat(p.main[d.ids[0]]); err == nil && info.Size() < 1<<20 && len(lost) > 0 {
					lay = must[[]byte](t)(os.ReadFile(p.main[d.ids[0]]))
				}
				p.retry("damaged", ids)
				if lay != nil && !p.inTrash(lay) {
					t.Error("what lay in its place is nowhere")
				}
				p.once("retried", nil)
				p.retry("retried", ids)
				p.settled("retried")
				p.once("repaired", nil)
				p.retry("repaired", ids)
				p.once("retried again", nil)
			})
		}
	}
}

// tell makes the file of one of main's messages tell another position.
func (p *patient) tell(position, told int) {
	p.t.Helper()
	p.change(p.main[position], func(b []byte) []byte {
		return bytes.Replace(b, fmt.Appendf(nil, `"position":%d,`, position), fmt.Appendf(nil, `"position":%d,`, told), 1)
	})
}

// TestRetryOfArchived is TestRetryOfDamaged for messages that a damaged pack had.
func TestRetryOfArchived(t *testing.T) {
	for name, do := range map[string]func(p *patient) []uuid.UUID{
		"pack, half": func(p *patient) (known []uuid.UUID) {
			p.remove(p.packs()[0])
			p.in(func(c *Context) {
				for _, m := range must[[]*Message](p.t)(c.Active().Load(context.Background())) {
					if m.Unavailable != nil && m.ID != uuid.Nil { // the message behind it tells its id
						known = append(known, m.ID)
					}
				}
			})
			return known
		},
		"message frame": func(p *patient) []uuid.UUID {
			part := p.part("messages", 1)
			p.flip(part)
			return part.ids
		},
		"message frame and tables": func(p *patient) []uuid.UUID {
			part := p.part("messages", 1)
			p.flip(part, p.part("directory", 0), p.part("ids", 0))
			return part.ids
		},
		"message frame and its rows": func(p *patient) []uuid.UUID {
			part := p.part("messages", 1)
			p.flip(part, p.part("rows", 1))
			return part.ids[len(part.ids)-1:] // the message behind them tells the id of one
		},
	} {
		for _, repaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, repaired %v", name, repaired), func(t *testing.T) {
				t.Parallel()
				kind := "all"
				if strings.HasSuffix(name, "half") {
					kind = "half"
				}
				p := newArchived(t, kind)
				gone := do(p)
				if repaired {
					p.settled("damaged")
				}
				again := slices.DeleteFunc(slices.Clone(gone), func(id uuid.UUID) bool {
					return !slices.ContainsFunc(p.want["main"], func(b body) bool { return b.id == id })
				})
				if len(again) == 0 {
					t.Fatal("the part has no messages of main")
				}
				p.retry("damaged", again)
				p.settled("retried")
				p.retry("repaired", again)
				p.in(func(c *Context) {
					for i, m := range must[[]*Message](t)(c.Active().Load(context.Background())) {
						if slices.Contains(again, m.ID) && (m.Unavailable != nil || m.ID != p.want["main"][i].id) {
							t.Errorf("position %d: %+v", i, m)
						}
					}
					if n := must[int64](t)(c.Active().Len(context.Background())); n != int64(len(p.want["main"])) {
						t.Errorf("%d messages, wanted %d", n, len(p.want["main"]))
					}
				})
			})
		}
	}
}

// TestStoredAgain: a message whose file is missing without a trace, and that is appended again before anybody noticed,
// is shown once with its content, at the end. The old position has no file then: it is missing, not edited; a repair
// marks it once, and what is changed at the one place is not at the other.
func TestStoredAgain(t *testing.T) {
	ctx := context.Background()
	for _, marked := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced when marked: ", marked), func(t *testing.T) {
			p := newPatient(t, false)
			id, draft := p.want["main"][30].id, Draft{ID: p.want["main"][30].id, Body: json.RawMessage(p.want["main"][30].text)}
			p.remove(p.main[30])
			p.in(func(c *Context) {
				must[Appended](t)(c.Active().Append(ctx, draft))
				if err := c.Fold(ctx); err != nil {
					t.Fatal(err)
				}
				if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
					t.Fatal(err)
				}
			})
			show := func(when, text string) {
				t.Helper()
				p.in(func(c *Context) {
					ms := must[[]*Message](t)(c.Active().Load(ctx))
					if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].Unavailable != nil || ms[40].Edited || bodyOf(ms[40]) != text {
						t.Errorf("%s: %d messages, %+v, %+v", when, len(ms), ms[30], ms[len(ms)-1])
					}
					if m, err := c.Active().Message(ctx, id); err != nil || m.Position != 40 || bodyOf(m) != text {
						t.Errorf("%s: found %+v, %v", when, m, err)
					}
				})
			}
			show("stored again", string(draft.Body))
			found := p.check(true)
			if len(found) != 1 || found[0].Kind != integrity.KindMissing || !strings.Contains(found[0].Detail, "stored again at position 40") {
				t.Errorf("a check tells of %+v", found)
			}
			if marked {
				p.settled("stored again")
				show("repaired", string(draft.Body))
			}
			p.in(func(c *Context) {
				if err := c.Active().Replace(ctx, id, Draft{Body: []byte(`{"new":1}`)}); err != nil {
					t.Error(err)
				}
				if at, err := c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"new":1}`)}); err != nil || !at.Existed || at.Position != 40 {
					t.Errorf("a retry: %+v, %v", at, err)
				}
			})
			show("replaced", `{"new":1}`)
			p.settled("replaced")
			show("replaced and repaired", `{"new":1}`)
			if found := p.check(true); len(found) != 1 || found[0].Kind != integrity.KindLost || !strings.Contains(found[0].Detail, "stored again") {
				t.Errorf("a check tells of %+v", found)
			}
			other, _ := newStore(t)
			copied, err := p.store.Backup(ctx, p.id, other)
			if err != nil || copied.Missing != 1 {
				t.Errorf("a backup: %+v, %v", copied, err)
			}
			c := must[*Context](t)(other.Context(ctx, p.id))
			defer c.Close()
			if m, err := c.Active().Message(ctx, id); err != nil || m.Position != 40 || m.Unavailable != nil {
				t.Errorf("in the backup: %+v, %v", m, err)
			}
			for f, err := range other.Check(ctx, nil, CheckOptions{ReadData: true}) {
				if err != nil || f.Kind != integrity.KindLost {
					t.Errorf("a check of the backup: %+v, %v", f, err)
				}
			}
		})
	}
}

// TestStoredAgainBesideItsFile: the file of a message that was stored again meanwhile turns up elsewhere. It takes no other one's place.
func TestStoredAgainBesideItsFile(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	w := p.want["main"][30]
	raw := must[[]byte](t)(os.ReadFile(p.main[30]))
	p.remove(p.main[30])
	p.in(func(c *Context) {
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: w.id, Body: json.RawMessage(w.text)}))
	})
	p.settled("stored again")
	raw = bytes.Replace(raw, []byte("message 30"), []byte("edited"), 1)
	write(t, filepath.Join(p.dir, "messages", "branch-alt", filepath.Base(p.main[30])), raw)
	p.repair(CheckOptions{Adopt: true})
	p.settled("found elsewhere")
	p.in(func(c *Context) {
		ms := must[[]*Message](t)(c.Active().Load(ctx))
		if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].Unavailable != nil || bodyOf(ms[40]) != w.text {
			t.Errorf("%d messages, %+v, %+v", len(ms), ms[30], ms[40])
		}
	})
	p.in(func(c *Context) {
		if infos := must[[]BranchInfo](t)(c.Branches(ctx)); len(infos) != len(p.want) {
			t.Errorf("it was taken in as another message: %+v", infos)
		}
	})
	if !p.inTrash(raw) {
		t.Error("the file that turned up is nowhere")
	}
}

// TestRetryOfLostElsewhere: what a repair has marked lost is found by its id by who opened the context before, also
// behind an index that was made anew, and is no more among the lost ones when it is back.
func TestRetryOfLostElsewhere(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	before := must[*Context](t)(p.store.Context(ctx, p.id))
	defer before.Close()
	must[int64](t)(before.Active().Len(ctx))
	lost := p.ids(5, 30)
	p.remove(p.main[5], p.main[30])
	p.settled("missing")
	for _, id := range lost {
		if m, err := before.Active().Message(ctx, id); err != nil || !errors.Is(m.Unavailable, ErrDamaged) {
			t.Errorf("through an older handle: %+v, %v", m, err)
		}
	}
	count := func(want int) {
		t.Helper()
		told := 0
		for _, n := range regexp.MustCompile(`"lost":(\d+)`).FindAllSubmatch(must[[]byte](t)(os.ReadFile(p.glob("index.json")[0])), -1) {
			told += int(n[1][0] - '0')
		}
		if told != want {
			t.Errorf("index.json tells of %d lost messages, wanted %d", told, want)
		}
	}
	count(2)
	p.remove(p.glob("index.json")...)
	p.once("without index.json", lost)
	p.retry("without index.json", lost[:1])
	p.in(func(c *Context) {
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	count(1)
	p.remove(slices.Concat(p.glob("index.json"), p.glob("journal-*.jsonl"))...)
	p.once("without index.json and journals", lost[1:])
	p.retry("without index.json and journals", lost)
	p.once("retried", nil)
	p.in(func(c *Context) {
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	count(0)
	p.settled("retried")
	p.once("in the end", nil)
}

// TestRetryOfLostUnderDerivedName: a message whose id another line has in the same folder does not get that one's file
// when its own is lost.
func TestRetryOfLostUnderDerivedName(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{"retry", "replace", "an older version"} {
		c, dir := newContext(t, WithFoldBytes(-1), withoutPause())
		fill(t, c.Active(), 3)
		id := uuid.New()
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"of":"old"}`)}))
		old := must[*Branch](t)(c.Active().Fork(ctx, "old", 4))
		if err := c.Active().Rewind(ctx, 3); err != nil {
			t.Fatal(err)
		}
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"of":"new"}`)}))
		if how == "an older version" {
			check(t, c.Active().Replace(ctx, id, Draft{Body: []byte(`{"of":"newest"}`)}))
		}
		files := must[[]string](t)(filepath.Glob(filepath.Join(dir, "messages", "branch-main", "*.json")))
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return !bytes.Contains(must[[]byte](t)(os.ReadFile(f)), []byte(`"file":`)) })
		if len(files) != 1 {
			t.Fatalf("files of derived names: %v", files)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		p := &patient{t: t, store: c.store, id: c.ID(), dir: dir}
		p.settled("missing")
		if m, err := c.Active().Message(ctx, id); err != nil || m.Unavailable == nil {
			t.Errorf("lost: %+v, %v", m, err)
		}
		switch how {
		case "retry":
			if at := must[Appended](t)(c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"of":"new"}`)})); !at.Existed || at.Position != 3 {
				t.Errorf("%+v", at)
			}
		case "replace":
			if err := c.Active().Replace(ctx, id, Draft{Body: []byte(`{"of":"new"}`)}); err != nil {
				t.Error(err)
			}
		default:
			for x, err := range c.store.Trash(ctx, c.ID()) {
				if check(t, err); x.Kind == "version" {
					must[Restored](t)(c.store.Restore(ctx, x.Item))
				}
			}
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		p.settled(how)
		again := must[*Context](t)(c.store.Context(ctx, c.ID()))
		for b, want := range map[*Branch]string{must[*Branch](t)(again.Branch("old")): `{"of":"old"}`, again.Active(): `{"of":"new"}`} {
			if m, err := b.Message(ctx, id); err != nil || m.Unavailable != nil || m.Position != 3 || bodyOf(m) != want {
				t.Errorf("%s: branch %s: %+v, %v", how, b.Name(), m, err)
			}
		}
		if err := errors.Join(again.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		_ = old
	}
}

// TestRetryOfLostWhoseNameIsTaken: a message that comes back when another line has a file of its name in their folder
// gets another name, and is found under it.
func TestRetryOfLostWhoseNameIsTaken(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t, WithFoldBytes(-1), withoutPause())
	settle := func() {
		t.Helper()
		check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
	}
	fill(t, c.Active(), 3)
	id := uuid.New()
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"of":"old"}`)}))
	old := must[*Branch](t)(c.Active().Fork(ctx, "old", 4))
	check(t, c.Active().Rewind(ctx, 3))
	settle()
	check(t, os.Remove(filepath.Join(dir, "messages", "branch-main", id.String()+".json")))
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: id, Body: []byte(`{"of":"new"}`)}))
	settle()
	p := &patient{t: t, store: c.store, id: c.ID(), dir: dir}
	p.settled("taken")
	if m, err := old.Message(ctx, id); err != nil || m.Unavailable == nil {
		t.Errorf("lost: %+v, %v", m, err)
	}
	if at := must[Appended](t)(old.Append(ctx, Draft{ID: id, Body: []byte(`{"of":"old"}`)})); !at.Existed || at.Position != 3 {
		t.Errorf("%+v", at)
	}
	settle()
	p.settled("back")
	p.in(func(c *Context) {
		for b, want := range map[*Branch]string{must[*Branch](t)(c.Branch("old")): `{"of":"old"}`, c.Active(): `{"of":"new"}`} {
			if m, err := b.Message(ctx, id); err != nil || m.Unavailable != nil || m.Position != 3 || bodyOf(m) != want {
				t.Errorf("branch %s: %+v, %v", b.Name(), m, err)
			}
		}
	})
}

// TestRetryOfLostWithPayloads: what comes back in its place brings its payloads with it, and goes into a batch with others.
func TestRetryOfLostWithPayloads(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	w := p.want["main"][3] // its text is in a blob
	raw := must[[]byte](t)(os.ReadFile(p.main[3]))
	p.remove(slices.DeleteFunc(slices.Clone(p.blobs), func(path string) bool {
		return !bytes.Contains(raw, []byte(strings.TrimSuffix(filepath.Base(path), ".zst")))
	})...)
	p.remove(p.main[3])
	p.settled("missing")
	p.in(func(c *Context) {
		results, err := c.Active().AppendBatch(ctx, []Draft{
			{Body: []byte(`{"one":1}`)}, {ID: w.id, Body: json.RawMessage(w.text)},
			{Body: []byte(`{"two":2}`)}, {ID: w.id, Body: json.RawMessage(w.text)},
			{ID: w.id, Body: []byte(`{"another":1}`)},
		})
		if err != nil || len(results) != 5 {
			t.Fatal(results, err)
		}
		for i, want := range []Appended{{Position: 40}, {Position: 3, Existed: true}, {Position: 41}, {Position: 3, Existed: true}} {
			if r := results[i]; r.Err != nil || r.Position != want.Position || r.Existed != want.Existed {
				t.Errorf("message %d: %+v", i, r)
			}
		}
		if !errors.Is(results[4].Err, ErrConflict) {
			t.Errorf("another body: %+v", results[4])
		}
	})
	p.once("retried", nil)
}

// TestFoundOlderVersion: of a lost message the file of an older version is put back, where it was or elsewhere. It becomes the message.
func TestFoundOlderVersion(t *testing.T) {
	ctx := context.Background()
	for _, d := range []struct {
		name   string
		marked bool // before it is put back
		folder string
	}{{"marked", true, "branch-main"}, {"marked, in another folder", true, "branch-alt"}, {"in another folder", false, "branch-alt"}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false)
			w := p.want["main"][30]
			older := must[[]byte](t)(os.ReadFile(p.main[30]))
			p.in(func(c *Context) {
				if err := c.Active().Replace(ctx, w.id, Draft{Body: []byte(`{"newer":true}`)}); err != nil {
					t.Fatal(err)
				}
				if err := c.Fold(ctx); err != nil {
					t.Fatal(err)
				}
				if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
					t.Fatal(err)
				}
			})
			p.remove(p.main[30], filepath.Join(p.dir, "trash"))
			if d.marked {
				p.settled("missing")
			}
			write(t, filepath.Join(p.dir, "messages", d.folder, filepath.Base(p.main[30])), older)
			p.settled("put back")
			for _, f := range p.check(true) {
				t.Errorf("a check tells of %+v", f)
			}
			p.once("put back", nil)
		})
	}
}

// TestOlderVersionElsewhere: where a journal has the version that counts, an older one that lies elsewhere does not become the message.
func TestOlderVersionElsewhere(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	w := p.want["main"][30]
	older := must[[]byte](t)(os.ReadFile(p.main[30]))
	p.in(func(c *Context) {
		if err := c.Active().Replace(ctx, w.id, Draft{Body: []byte(`{"newer":true}`)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	p.remove(p.main[30])
	write(t, filepath.Join(p.dir, "messages", "branch-alt", filepath.Base(p.main[30])), older)
	p.settled("older version elsewhere")
	p.want["main"][30].text = `{"newer":true}`
	p.once("repaired", nil)
	if !p.inTrash(older) {
		t.Error("the older version is nowhere")
	}
}

// TestStoredAgainCollected: of a message that was stored again, and collected, the copy in the trash is at the newer position.
func TestStoredAgainCollected(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	w := p.want["main"][30]
	p.remove(p.main[30])
	p.in(func(c *Context) {
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: w.id, Body: json.RawMessage(w.text)}))
		check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire), c.Active().Rewind(ctx, 25))
	})
	var item Collected
	for x, err := range p.store.Collect(ctx, Collecting{Grace: time.Hour}) {
		if check(t, err); x.Kind == "line" {
			item = x
		}
	}
	r := must[Restored](t)(p.store.Restore(ctx, item.Item))
	if r.Missing != 1 {
		t.Errorf("%+v", r)
	}
	p.in(func(c *Context) {
		b := must[*Branch](t)(c.Branch(r.Branch))
		ms := must[[]*Message](t)(b.Load(ctx))
		if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].ID != w.id || bodyOf(ms[40]) != w.text {
			t.Errorf("%d messages, %+v, %+v", len(ms), ms[30], ms[len(ms)-1])
		}
		if m, err := b.Message(ctx, w.id); err != nil || m.Position != 40 {
			t.Errorf("%+v, %v", m, err)
		}
	})
	p.settled("restored")
}

// TestRetryCosts: an append with an id that is new looks at no row of a context that has no lost messages, and reads
// the rows of one that has some once.
func TestRetryCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, WithFoldBytes(-1), withoutPause())
	c := must[*Context](t)(k.store.Create(ctx, Metadata{}))
	defer c.Close()
	const n = 3000
	fill(t, c.Active(), n)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
		t.Fatal(err)
	}
	fill(t, c.Active(), 1) // it reads what is laid out in the new journal
	appends := func() int64 {
		_, bytes := k.read(func() {
			must[Appended](t)(c.Active().Append(ctx, Draft{ID: uuid.New(), Body: []byte(`{}`)}))
		})
		return bytes
	}
	if got := appends(); got > 2000 {
		t.Errorf("%d bytes are read for an append", got)
	}
	m := must[[]*Message](t)(c.Active().Range(ctx, 7, 8))[0]
	if err := c.dir.FS.Remove("messages/branch-main/" + m.ID.String() + ".json"); err != nil {
		t.Fatal(err)
	}
	for _, err := range k.store.Repair(ctx, nil, CheckOptions{}) {
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
	if at := must[Appended](t)(c.Active().Append(ctx, Draft{ID: m.ID, Body: m.Stored})); !at.Existed || at.Position != 7 {
		t.Errorf("%+v", at)
	}
}
