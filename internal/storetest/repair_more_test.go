package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestCheckBesideWriters: four writers with handles of their own append 10,000 messages, replace, fork, rename and
// fold; a check beside them tells nothing that is not so.
func TestCheckBesideWriters(t *testing.T) {
	const writers, each = 4, 2500
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithFoldBytes(64<<10), engine.WithRetain(2), engine.WithTextThreshold(300))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	var running sync.WaitGroup
	var left atomic.Int32
	left.Store(writers)
	errs := make([]error, writers)
	for w := range writers {
		running.Go(func() {
			defer left.Add(-1)
			errs[w] = func() error {
				s, err := kit.Open(dir, engine.WithFoldBytes(64<<10), engine.WithRetain(2), engine.WithTextThreshold(300))
				if err != nil {
					return err
				}
				defer s.Close()
				c, err := s.Context(ctx, c.ID())
				if err != nil {
					return err
				}
				name := fmt.Sprint("writer ", w)
				b, err := c.NewBranch(ctx, name)
				if err != nil {
					return err
				}
				for i := 0; i < each; {
					drafts := make([]engine.Draft, 1+i%20)
					for k := range drafts {
						drafts[k].Body = fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, i+k, strings.Repeat("x", 20*((i+k)%20)))
					}
					done, err := b.AppendBatch(ctx, drafts)
					if err != nil {
						return err
					}
					i += len(done)
					switch i % 7 {
					case 0:
						err = b.Replace(ctx, done[0].ID, engine.Draft{Body: []byte(`{"replaced":true}`)}, engine.Shared())
					case 1:
						_, err = b.Fork(ctx, fmt.Sprint(name, " at ", i), int64(i/2))
					case 2:
						to := fmt.Sprint("writer ", w, " ", i)
						if err = c.Rename(ctx, name, to); err == nil {
							name = to
							b, err = c.Branch(name)
						}
					}
					if err != nil {
						return err
					}
				}
				return c.Close()
			}()
		})
	}
	checks := 0
	for more := true; more; checks++ {
		more = left.Load() > 0 // the last one is after the end
		for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: checks%2 == 1}) {
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("check %d: %+v", checks, f)
		}
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d checks", checks)
}

// TestAdopt: messages that were put there by hand are told of and left alone; adopted, one that goes on where its line
// ends is the line's next, and those that contradict a line get a branch of their own.
func TestAdopt(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	next := p.Foreign("branch-main", 40)
	other := []uuid.UUID{p.Foreign("branch-main", 35), p.Foreign("branch-alt", 36)}
	found, lost := p.Heal(engine.CheckOptions{})
	if len(found) != 3 || lost > 0 {
		t.Fatalf("%d lost, found %+v", lost, found)
	}
	// heal appended a message: what went on at the end contradicts it now.
	if done := p.Repair(engine.CheckOptions{Adopt: true}); len(done) != 3 {
		t.Fatalf("%+v", done)
	}
	if again := p.Repair(engine.CheckOptions{Adopt: true}); len(again) > 0 {
		t.Errorf("adopted again: %+v", again)
	}
	if found := p.Check(true); len(found) > 0 {
		t.Errorf("after adoption: %+v", found)
	}
	c := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	defer c.Close()
	all := p.Read(c)
	if len(all) != 5 || len(all["main"]) != 41 {
		t.Fatalf("%d branches, main has %d messages", len(all), len(all["main"]))
	}
	for name, from := range map[string][]uuid.UUID{"main (found)": other, "main (found) 2": {next}} {
		got := all[name]
		n := len(got) - len(from)
		if n < 0 {
			t.Fatalf("branch %q has %d messages", name, len(got))
		}
		for i, id := range from {
			if got[n+i].ID != id || got[n+i].Text == "" {
				t.Errorf("branch %q, position %d: %+v", name, n+i, got[n+i])
			}
		}
		for i := range n {
			if got[i] != p.Want["main"][i] {
				t.Errorf("branch %q, position %d: %+v", name, i, got[i])
			}
		}
	}

	p = kit.NewPatient(t, true)
	next = p.Foreign("branch-main", 40)
	if done := p.Repair(engine.CheckOptions{Adopt: true}); len(done) != 1 {
		t.Fatalf("%+v", done)
	}
	c = kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	defer c.Close()
	if got := p.Read(c)["main"]; len(got) != 41 || got[40].ID != next {
		t.Errorf("main has %d messages", len(got))
	}
}

// TestUnreadable: a message file that cannot be read is told of; it is written again where a journal has the message,
// and else left alone: it may be whole.
func TestUnreadable(t *testing.T) {
	ctx := context.Background()
	for _, second := range []bool{true, false} {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithFoldBytes(-1), engine.WithoutPause()))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 5)
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		if !second {
			if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
				t.Fatal(err)
			}
		}
		id := kit.Load(t, c.Active())[2].ID
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var readable atomic.Bool
		disk.Fail(func(o crashfs.Op) error {
			if strings.HasSuffix(o.To, id.String()+".json") { // a new file can be read
				readable.Store(true)
			}
			ofMessage := strings.HasSuffix(o.Path, id.String()+".json") && !strings.Contains(o.Path, "trash")
			if ofMessage && !readable.Load() && (o.Kind == crashfs.KindOpen || o.Kind == crashfs.KindRead) {
				return syscall.EACCES
			}
			return nil
		})
		p := &kit.Patient{T: t, Store: s, ID: c.ID()}
		found := p.Check(false)
		found = append(found, p.Check(true)...)
		if len(found) != 1 || found[0].Kind != integrity.KindUnread || found[0].ID != id || found[0].Repairable != second {
			t.Errorf("journals %v: found %+v", second, found)
		}
		p.Repair(engine.CheckOptions{})
		readable.Store(true)
		if found := p.Check(true); len(found) > 0 {
			t.Errorf("journals %v: after repair, readable again: %+v", second, found)
		}
	}
}

// broken makes a context on a disk and damages it, durably. It returns what each branch must show after a repair; of
// one message there is no copy.
func broken(t *testing.T, disk *crashfs.FS) (*engine.Store, kit.Transcript) {
	t.Helper()
	ctx := context.Background()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.Manual(50, engine.WithFS(disk))...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	want := kit.Transcript{}
	add := func(b *engine.Branch, n int) {
		text := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("z", 60))
		kit.Append(t, b, engine.Draft{ID: kit.TestID(n), Body: []byte(text)})
		want[b.Name()] = append(want[b.Name()], kit.TranscriptMessage{kit.TestID(n), text})
	}
	for n := range 4 {
		add(c.Active(), n+1)
	}
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
		t.Fatal(err)
	}
	alt := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2))
	want["alt"] = want["main"][:2:2]
	add(alt, 10)
	for n := range 3 {
		add(c.Active(), n+20)
	}
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	folder := kit.TestID(60000).String()
	in := kit.Must[interface {
		Replace(string, []byte) error
		Remove(string) error
		Rename(from, to string) error
		SyncDir(string) error
		Close() error
	}](t)(disk.Sub(folder))
	file := func(branch string, n int) string {
		return "messages/branch-" + branch + "/" + kit.TestID(n).String() + ".json"
	}
	first := kit.Must[[]byte](t)(vfs.ReadFile(disk, folder+"/"+file("main", 1), 1<<20))
	for _, err := range []error{
		in.Replace(file("main", 1), append([]byte("\ufeff"), first...)), // and this is the only one
		in.Rename(file("main", 4), "messages/branch-main/"+strings.ToUpper(kit.TestID(4).String()+".json")),
		in.Replace(file("main", 2), nil),                                                  // there is no copy
		in.Replace(file("main", 20), make([]byte, 100)),                                   // the journal has it
		in.Remove(file("main", 21)),                                                       // likewise
		in.Rename(file("main", 3), "messages/branch-alt/"+kit.TestID(3).String()+".json"), // in the wrong folder
		in.Replace("metadata.json", []byte("{")),
		in.SyncDir("messages/branch-main"), in.SyncDir("messages/branch-alt"), in.SyncDir("."), in.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want["main"][1].Body, want["alt"] = "", append([]kit.TranscriptMessage{want["main"][0], {kit.TestID(2), ""}}, want["alt"][2:]...)
	return s, want
}

// TestRepairCut cuts the power at every operation of a repair. Whatever the disk holds then, to repair again comes to
// what one repair does.
func TestRepairCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	repair := func(s *engine.Store) error {
		for _, err := range s.Repair(ctx, nil, engine.CheckOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	states := 0
	for k := 1; ; k += kit.Stride() {
		disk := crashfs.New()
		s, want := broken(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		err := repair(s)
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *kit.PowercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			left := disk.Crash(choice)
			if err := func() error {
				s, err := kit.Open("disk", engine.WithFS(left), engine.WithFoldBytes(-1), engine.WithoutPause())
				if err != nil {
					return err
				}
				defer s.Close()
				if !over {
					if err := repair(s); err != nil {
						return fmt.Errorf("repairing again: %w", err)
					}
				}
				for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
					if err != nil || f.Kind != integrity.KindLost {
						return fmt.Errorf("check: %+v, %w", f, err)
					}
				}
				c, err := s.Context(ctx, kit.TestID(60000))
				if err != nil {
					return err
				}
				defer c.Close()
				for name, messages := range want {
					b, err := c.Branch(name)
					if err != nil {
						return err
					}
					got, err := b.Load(ctx)
					if err != nil || len(got) != len(messages) {
						return fmt.Errorf("%s: %d messages, wanted %d, %w", name, len(got), len(messages), err)
					}
					for i, m := range got {
						text := ""
						if m.Unavailable == nil {
							text = kit.BodyOf(m)
						}
						if m.ID != messages[i].ID || text != messages[i].Body {
							return fmt.Errorf("%s, position %d: %s %.60s, %w", name, i, m.ID, text, m.Unavailable)
						}
					}
				}
				return nil
			}(); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// TestRepairStopped: a repair that is cancelled, or whose results nobody wants any more, leaves nothing worse, and the
// next one does the rest.
func TestRepairStopped(t *testing.T) {
	for n := range 4 {
		p := kit.NewPatient(t, true)
		for _, path := range p.Main[5:8] {
			kit.Write(t, path, nil)
		}
		p.Remove(p.Glob("metadata.json")...)
		ctx, cancel := context.WithCancel(context.Background())
		seen := 0
		for _, err := range p.Store.Repair(ctx, nil, engine.CheckOptions{}) {
			if err != nil {
				break
			}
			if seen++; seen > n/2 {
				cancel()
				if n%2 == 0 {
					break
				}
			}
		}
		cancel()
		if _, lost := p.Heal(engine.CheckOptions{}); lost > 0 {
			t.Errorf("stopped after %d: %d messages are gone", n, lost)
		}
	}
}

// TestCopiedContext: a context's folder that was copied under another id is a context of its own after a repair.
func TestCopiedContext(t *testing.T) {
	for _, second := range []bool{false, true} {
		p := kit.NewPatient(t, second)
		id := uuid.New()
		dir := filepath.Join(p.Store.Path(), id.String())
		if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
			t.Fatal(err)
		}
		found := p.Check(true)
		if len(found) == 0 {
			t.Error("check told nothing")
		}
		for _, f := range found {
			if f.Context != id {
				t.Errorf("about the other one: %+v", f)
			}
		}
		p.ID, p.Dir = id, dir
		if _, lost := p.Heal(engine.CheckOptions{}); lost > 0 {
			t.Errorf("%d messages of the copy are gone", lost)
		}
		c := kit.Must[*engine.Context](t)(p.Store.Context(context.Background(), id))
		if c.Metadata().Title != "a title" {
			t.Errorf("title %q", c.Metadata().Title)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecoveryCosts: what the first append after a crash reads grows with the journal, and not with the context.
func TestRecoveryCosts(t *testing.T) {
	ctx := context.Background()
	cost := func(messages int) (files, bytesRead int64) {
		k := newCounted(t, engine.WithFoldBytes(-1))
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
		for range messages / 500 {
			kit.Fill(t, c.Active(), 500)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		kit.Fill(t, c.Active(), 10)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		k.tear(t, c.ID())
		again := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
		defer again.Close()
		calls := k.during(func() {
			kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
		})
		for _, o := range calls {
			switch o.Kind {
			case crashfs.KindOpen:
				files++
			case crashfs.KindRead:
				bytesRead += o.Size
			}
		}
		return files, bytesRead
	}
	files, size := cost(500)
	manyFiles, manySize := cost(5000)
	if manyFiles > files || manySize > size+size/10 {
		t.Errorf("%d files and %d bytes for 500 messages, %d and %d for 5,000", files, size, manyFiles, manySize)
	}
}

// tear leaves half a record behind a context's newest journal.
func (k *counted) tear(t *testing.T, id uuid.UUID) {
	t.Helper()
	folder := kit.Must[interface {
		Close() error
	}](t)(k.disk.Sub(id.String()))
	defer folder.Close()
	f, err := k.disk.OpenFile(id.String()+"/journal-2.jsonl", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw := make([]byte, 1<<20)
	n, _ := f.ReadAt(raw, 0)
	end := int64(len(bytes.TrimRight(raw[:n], "\n"))) + 1
	if _, err := f.WriteAt([]byte(`{"chain":"0123456789abcdef","prev":"`), end); err != nil {
		t.Fatal(err)
	}
}

// TestCheckBesideRemovals: a context that is removed between being listed and being looked at is no finding, nor
// anything to be repaired.
func TestCheckBesideRemovals(t *testing.T) {
	ctx := context.Background()
	for name, look := range map[string]func(s *engine.Store, o engine.CheckOptions) (found []string){
		"check": func(s *engine.Store, o engine.CheckOptions) (found []string) {
			for f, err := range s.Check(ctx, nil, o) {
				found = append(found, fmt.Sprint(f, err))
			}
			return found
		},
		"repair": func(s *engine.Store, o engine.CheckOptions) (found []string) {
			for r, err := range s.Repair(ctx, nil, o) {
				found = append(found, fmt.Sprint(r, err))
			}
			return found
		},
	} {
		s, _ := kit.NewStore(t)
		ids := map[uuid.UUID]bool{}
		for range 4 {
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			ids[c.ID()] = true
			kit.Check(t, c.Close())
		}
		found := look(s, engine.CheckOptions{Progress: func(p engine.CheckProgress) {
			for id := range ids {
				if id != p.Context {
					kit.Must[engine.TrashItem](t)(s.Delete(ctx, id))
				}
			}
			clear(ids)
		}})
		if len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}
