package trash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// archivist is a context whose collections archive: 12 messages on main, the last two a day younger than the others,
// and 3 messages of its own on "alt", which was forked at 6.
type archivist struct {
	*testing.T
	c    *engine.Context
	dir  string
	said []archiving.Result
}

const day = 24 * time.Hour

func newArchiving(t *testing.T, settings engine.Settings) *archivist {
	t.Helper()
	clock := kit.NewClock()
	c, dir := kit.NewContext(t, kit.Manual(100, engine.WithClock(clock.Now))...)
	kit.Fill(t, c.Active(), 10)
	alt := kit.Must[*engine.Branch](t)(c.Active().Fork(t.Context(), "alt", 6))
	kit.Fill(t, alt, 3)
	clock.Set(kit.Load(t, alt)[8].StoredAt.Add(day))
	kit.Fill(t, c.Active(), 2)
	kit.Check(t, c.Store.Configure(t.Context(), func(s *engine.Settings) error { *s = settings; return nil }))
	return &archivist{T: t, c: c, dir: dir}
}

// inFiles returns the positions of the messages that a branch shows and that have files.
func (a *archivist) inFiles(branch string) (positions []int64) {
	a.Helper()
	kit.Check(a.T, a.c.Refresh(context.Background()))
	for _, m := range kit.Load(a.T, kit.Must[*engine.Branch](a.T)(a.c.Branch(branch))) {
		files := kit.Must[[]string](a.T)(filepath.Glob(filepath.Join(a.dir, "messages", "*", m.ID.String()+".json")))
		if len(files) > 0 {
			positions = append(positions, m.Position)
		}
	}
	return positions
}

func (a *archivist) segments() int {
	return len(kit.Must[[]string](a.T)(filepath.Glob(filepath.Join(a.dir, "segments", "*.zst"))))
}

// options are those of a collection that notes what it archived.
func (a *archivist) options() trash.CollectOptions {
	a.said = nil
	return trash.CollectOptions{Grace: -1, Archived: func(r archiving.Result) { a.said = append(a.said, r) }}
}

// TestCollectArchives: a collection archives what the settings say: messages that are old enough, except the newest of
// each branch. It says so, in its log too. A dry run says the same and changes nothing.
func TestCollectArchives(t *testing.T) {
	upTo := func(from, to int64) (all []int64) {
		for ; from < to; from++ {
			all = append(all, from)
		}
		return all
	}
	const seconds = int64(day / time.Second)
	for _, x := range []struct {
		name      string
		settings  engine.Settings
		main, alt []int64 // in files afterwards
		messages  int64
	}{
		{"nothing", engine.Settings{}, upTo(0, 12), upTo(0, 9), 0},
		{"negative", engine.Settings{ArchiveAfter: -1, KeepLast: -1}, upTo(0, 12), upTo(0, 9), 0},
		{"after a day", engine.Settings{ArchiveAfter: seconds}, upTo(10, 12), nil, 13},
		{"after a week", engine.Settings{ArchiveAfter: 7 * seconds}, upTo(0, 12), upTo(0, 9), 0},
		{"all but the newest", engine.Settings{KeepLast: 4}, upTo(5, 12), upTo(5, 9), 5}, // a line has no files up to a position
		{"both", engine.Settings{ArchiveAfter: seconds, KeepLast: 1}, upTo(10, 12), []int64{8}, 12},
		{"more than there are", engine.Settings{KeepLast: 100}, upTo(0, 12), upTo(0, 9), 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := newArchiving(t, x.settings)
			s, log := a.c.Store, func() string {
				return string(kit.Must[[]byte](t)(os.ReadFile(filepath.Join(filepath.Dir(a.dir), "collected.jsonl"))))
			}
			alt := kit.Must[*engine.Branch](t)(a.c.Branch("alt"))
			onMain, onAlt := kit.Bodies(t, a.c.Active()), kit.Bodies(t, alt)
			o := a.options()
			o.DryRun = true
			kit.Finish(t, trash.Collect(t.Context(), s, o))
			if n := a.messages(); n != x.messages || a.segments() != 0 {
				t.Errorf("a dry run: %d messages, wanted %d, and %d segments", n, x.messages, a.segments())
			}
			kit.Finish(t, trash.Collect(t.Context(), s, a.options()))
			if n := a.messages(); n != x.messages {
				t.Errorf("archived %d messages, wanted %d", n, x.messages)
			}
			if got := a.inFiles(engine.MainBranch); !slices.Equal(got, x.main) {
				t.Errorf("of main %v are in files, wanted %v", got, x.main)
			}
			if got := a.inFiles("alt"); !slices.Equal(got, x.alt) {
				t.Errorf("of alt %v are in files, wanted %v", got, x.alt)
			}
			if logged := strings.Contains(log(), `"record":"archived"`); logged != (x.messages > 0) {
				t.Errorf("the log says archived: %v\n%s", logged, log())
			}
			if !slices.Equal(kit.Bodies(t, a.c.Active()), onMain) || !slices.Equal(kit.Bodies(t, alt), onAlt) {
				t.Error("the branches show something else")
			}
			before := kit.Tree(t, a.dir)
			kit.Finish(t, trash.Collect(t.Context(), s, a.options()))
			if kit.Tree(t, a.dir) != before || len(a.said) > 0 {
				t.Errorf("a second collection: %+v", a.said)
			}
			kit.NothingFound(t, "afterwards", s, checking.Options{ReadData: true})
		})
	}
}

// messages returns how many messages the last collection archived.
func (a *archivist) messages() (n int64) {
	for _, r := range a.said {
		n += r.Messages
	}
	return n
}

// TestDailyCollectionArchives: a collection that is due archives too, a bounded part of each context, and reads the
// settings anew.
func TestDailyCollectionArchives(t *testing.T) {
	a := newArchiving(t, engine.Settings{})
	other := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(a.dir), engine.WithClock(a.c.Store.Now)))
	defer other.Close()
	kit.Check(t, a.c.Store.Configure(t.Context(), func(s *engine.Settings) error { s.KeepLast = 5; return nil }))
	if kit.Check(t, trash.CollectIfDue(t.Context(), other, a.options().Limited(1))); a.messages() != 1 {
		t.Errorf("archived %d messages, wanted 1", a.messages())
	}
	if kit.Check(t, trash.CollectIfDue(t.Context(), other, a.options().Limited(1))); a.messages() != 0 {
		t.Error("archived twice on a day")
	}
	if got := a.inFiles(engine.MainBranch); len(got) != 11 || got[0] != 1 {
		t.Errorf("%v are in files", got)
	}
}

// TestArchivingDaily: many collections that archive a little each leave few segments, and payloads stay blobs.
func TestArchivingDaily(t *testing.T) {
	t.Parallel()
	a := newArchiving(t, engine.Settings{KeepLast: 1})
	kit.Finish(t, trash.Collect(t.Context(), a.c.Store, a.options()))
	before := len(kit.BlobFiles(t, filepath.Dir(a.dir)))
	for i := range 20 {
		body := fmt.Sprintf(`{"content":"%d %s"}`, i, strings.Repeat("a long text ", 20))
		kit.Append(t, a.c.Active(), engine.Draft{Body: []byte(body)})
		kit.Finish(t, trash.Collect(t.Context(), a.c.Store, a.options()))
	}
	if got := a.inFiles(engine.MainBranch); len(got) != 1 || got[0] != 31 {
		t.Errorf("%v are in files", got)
	}
	if n := a.segments(); n > 4 {
		t.Errorf("%d segments", n)
	}
	if n := len(kit.BlobFiles(t, filepath.Dir(a.dir))); n != before+20 {
		t.Errorf("%d blobs, wanted %d", n, before+20)
	}
	kit.NothingFound(t, "afterwards", a.c.Store, checking.Options{ReadData: true})
}
