package engine

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
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestCheckBesideWriters: four writers with handles of their own append 10,000 messages, replace, fork, rename and fold; a check
// beside them tells nothing that is not so.
func TestCheckBesideWriters(t *testing.T) {
	const writers, each = 4, 2500
	ctx := context.Background()
	s, dir := newStore(t, WithFoldBytes(64<<10), withRetain(2), WithTextThreshold(300))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	var running sync.WaitGroup
	var left atomic.Int32
	left.Store(writers)
	errs := make([]error, writers)
	for w := range writers {
		running.Go(func() {
			defer left.Add(-1)
			errs[w] = func() error {
				s, err := Open(dir, WithFoldBytes(64<<10), withRetain(2), WithTextThreshold(300))
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
					drafts := make([]Draft, 1+i%20)
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
						err = b.Replace(ctx, done[0].ID, Draft{Body: []byte(`{"replaced":true}`)}, Shared())
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
		for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: checks%2 == 1}) {
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

// TestAdopt: messages that were put there by hand are told of and left alone; adopted, one that goes on where its line ends is the
// line's next, and those that contradict a line get a branch of their own.
func TestAdopt(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, false)
	next := p.foreign("branch-main", 40)
	other := []uuid.UUID{p.foreign("branch-main", 35), p.foreign("branch-alt", 36)}
	found, lost := p.heal(CheckOptions{})
	if len(found) != 3 || lost > 0 {
		t.Fatalf("%d lost, found %+v", lost, found)
	}
	// heal appended a message: what went on at the end contradicts it now.
	if done := p.repair(CheckOptions{Adopt: true}); len(done) != 3 {
		t.Fatalf("%+v", done)
	}
	if again := p.repair(CheckOptions{Adopt: true}); len(again) > 0 {
		t.Errorf("adopted again: %+v", again)
	}
	if found := p.check(true); len(found) > 0 {
		t.Errorf("after adoption: %+v", found)
	}
	c := must[*Context](t)(p.store.Context(ctx, p.id))
	defer c.Close()
	all := p.read(c)
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
			if got[n+i].id != id || got[n+i].text == "" {
				t.Errorf("branch %q, position %d: %+v", name, n+i, got[n+i])
			}
		}
		for i := range n {
			if got[i] != p.want["main"][i] {
				t.Errorf("branch %q, position %d: %+v", name, i, got[i])
			}
		}
	}

	p = newPatient(t, true)
	next = p.foreign("branch-main", 40)
	if done := p.repair(CheckOptions{Adopt: true}); len(done) != 1 {
		t.Fatalf("%+v", done)
	}
	c = must[*Context](t)(p.store.Context(ctx, p.id))
	defer c.Close()
	if got := p.read(c)["main"]; len(got) != 41 || got[40].id != next {
		t.Errorf("main has %d messages", len(got))
	}
}

// TestUnreadable: a message file that cannot be read is told of; it is written again where a journal has the message, and else left
// alone: it may be whole.
func TestUnreadable(t *testing.T) {
	ctx := context.Background()
	for _, second := range []bool{true, false} {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1), withoutPause()))
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		fill(t, c.Active(), 5)
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		if !second {
			if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
				t.Fatal(err)
			}
		}
		id := must[[]*Message](t)(c.Active().Load(ctx))[2].ID
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
		p := &patient{t: t, store: s, id: c.ID()}
		found := p.check(false)
		found = append(found, p.check(true)...)
		if len(found) != 1 || found[0].Kind != integrity.KindUnread || found[0].ID != id || found[0].Repairable != second {
			t.Errorf("journals %v: found %+v", second, found)
		}
		p.repair(CheckOptions{})
		readable.Store(true)
		if found := p.check(true); len(found) > 0 {
			t.Errorf("journals %v: after repair, readable again: %+v", second, found)
		}
	}
}

// broken makes a context on a disk and damages it, durably. It returns what each branch must show after a repair; of one message
// there is no copy.
func broken(t *testing.T, disk *crashfs.FS) (*Store, said) {
	t.Helper()
	ctx := context.Background()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1), WithTextThreshold(50), withoutPause()))
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	want := said{}
	add := func(b *Branch, n int) {
		text := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("z", 60))
		must[Appended](t)(b.Append(ctx, Draft{ID: testID(n), Body: []byte(text)}))
		want[b.Name()] = append(want[b.Name()], saidMessage{testID(n), text})
	}
	for n := range 4 {
		add(c.Active(), n+1)
	}
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
		t.Fatal(err)
	}
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 2))
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
	folder := testID(60000).String()
	in := must[interface {
		Replace(string, []byte) error
		Remove(string) error
		Rename(from, to string) error
		SyncDir(string) error
		Close() error
	}](t)(disk.Sub(folder))
	file := func(branch string, n int) string {
		return "messages/branch-" + branch + "/" + testID(n).String() + ".json"
	}
	first := must[[]byte](t)(vfs.ReadFile(disk, folder+"/"+file("main", 1), 1<<20))
	for _, err := range []error{
		in.Replace(file("main", 1), append([]byte("\ufeff"), first...)), // and this is the only one
		in.Rename(file("main", 4), "messages/branch-main/"+strings.ToUpper(testID(4).String()+".json")),
		in.Replace(file("main", 2), nil),                                              // there is no copy
		in.Replace(file("main", 20), make([]byte, 100)),                               // the journal has it
		in.Remove(file("main", 21)),                                                   // likewise
		in.Rename(file("main", 3), "messages/branch-alt/"+testID(3).String()+".json"), // in the wrong folder
		in.Replace("metadata.json", []byte("{")),
		in.SyncDir("messages/branch-main"), in.SyncDir("messages/branch-alt"), in.SyncDir("."), in.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want["main"][1].body, want["alt"] = "", append([]saidMessage{want["main"][0], {testID(2), ""}}, want["alt"][2:]...)
	return s, want
}

// TestRepairCut cuts the power at every operation of a repair. Whatever the disk holds then, to repair again comes to what one
// repair does.
func TestRepairCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	repair := func(s *Store) error {
		for _, err := range s.Repair(ctx, nil, CheckOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	states := 0
	for k := 1; ; k += stride() {
		disk := crashfs.New()
		s, want := broken(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		err := repair(s)
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *powercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			left := disk.Crash(choice)
			if err := func() error {
				s, err := Open("disk", withFS(left), WithFoldBytes(-1), withoutPause())
				if err != nil {
					return err
				}
				defer s.Close()
				if !over {
					if err := repair(s); err != nil {
						return fmt.Errorf("repairing again: %w", err)
					}
				}
				for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: true}) {
					if err != nil || f.Kind != integrity.KindLost {
						return fmt.Errorf("check: %+v, %w", f, err)
					}
				}
				c, err := s.Context(ctx, testID(60000))
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
							text = bodyOf(m)
						}
						if m.ID != messages[i].id || text != messages[i].body {
							return fmt.Errorf("%s, position %d: %s %.60s, %w", name, i, m.ID, text, m.Unavailable)
						}
					}
				}
				return nil
			}(); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, lastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// TestRepairStopped: a repair that is cancelled, or whose results nobody wants any more, leaves nothing worse, and the next one
// does the rest.
func TestRepairStopped(t *testing.T) {
	for n := range 4 {
		p := newPatient(t, true)
		for _, path := range p.main[5:8] {
			write(t, path, nil)
		}
		p.remove(p.glob("metadata.json")...)
		ctx, cancel := context.WithCancel(context.Background())
		seen := 0
		for _, err := range p.store.Repair(ctx, nil, CheckOptions{}) {
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
		if _, lost := p.heal(CheckOptions{}); lost > 0 {
			t.Errorf("stopped after %d: %d messages are gone", n, lost)
		}
	}
}

// TestCopiedContext: a context's folder that was copied under another id is a context of its own after a repair.
func TestCopiedContext(t *testing.T) {
	for _, second := range []bool{false, true} {
		p := newPatient(t, second)
		id := uuid.New()
		dir := filepath.Join(p.store.Path(), id.String())
		if err := os.CopyFS(dir, os.DirFS(p.dir)); err != nil {
			t.Fatal(err)
		}
		found := p.check(true)
		if len(found) == 0 {
			t.Error("check told nothing")
		}
		for _, f := range found {
			if f.Context != id {
				t.Errorf("about the other one: %+v", f)
			}
		}
		p.id, p.dir = id, dir
		if _, lost := p.heal(CheckOptions{}); lost > 0 {
			t.Errorf("%d messages of the copy are gone", lost)
		}
		c := must[*Context](t)(p.store.Context(context.Background(), id))
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
		k := newCounted(t, WithFoldBytes(-1))
		c := must[*Context](t)(k.store.Create(ctx, Metadata{}))
		for range messages / 500 {
			fill(t, c.Active(), 500)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		fill(t, c.Active(), 10)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		k.tear(t, c.ID())
		again := must[*Context](t)(k.store.Context(ctx, c.ID()))
		defer again.Close()
		calls := k.during(func() {
			must[Appended](t)(again.Active().Append(ctx, Draft{Body: []byte(`{"a":1}`)}))
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
	folder := must[interface {
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

// TestCheckBesideRemovals: a context that is removed between being listed and being looked at is no finding, nor anything to be repaired.
func TestCheckBesideRemovals(t *testing.T) {
	ctx := context.Background()
	for name, look := range map[string]func(s *Store, o CheckOptions) (found []string){
		"check": func(s *Store, o CheckOptions) (found []string) {
			for f, err := range s.Check(ctx, nil, o) {
				found = append(found, fmt.Sprint(f, err))
			}
			return found
		},
		"repair": func(s *Store, o CheckOptions) (found []string) {
			for r, err := range s.Repair(ctx, nil, o) {
				found = append(found, fmt.Sprint(r, err))
			}
			return found
		},
	} {
		s, _ := newStore(t)
		ids := map[uuid.UUID]bool{}
		for range 4 {
			c := must[*Context](t)(s.Create(ctx, Metadata{}))
			ids[c.ID()] = true
			check(t, c.Close())
		}
		found := look(s, CheckOptions{Progress: func(p CheckProgress) {
			for id := range ids {
				if id != p.Context {
					must[Trashed](t)(s.Delete(ctx, id))
				}
			}
			clear(ids)
		}})
		if len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}
