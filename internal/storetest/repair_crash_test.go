package storetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

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
	for k := range kit.Cuts(1) {
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
