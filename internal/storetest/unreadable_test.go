//go:build unix

package storetest_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// unreadableCase is a place, relative to the context's folder, and who has to say that it cannot be read: in any case, and
// once no log has the messages any more.
type unreadableCase struct{ path, told, sealed string }

var unreadablePlaces = map[string]unreadableCase{
	"a message":         {"messages/branch-alt/*.json", "check", ""},
	"a branch":          {"messages/branch-alt", "check repair gc erase", ""},
	"all branches":      {"messages", "check repair gc erase", ""},
	"a segment":         {"segments/*.zst", "", "check show backup repair gc erase"},
	"all segments":      {"segments", "", "check show list backup repair gc erase"},
	"metadata.json":     {"metadata.json", "check show list repair", ""},
	"logs":              {"log-*.jsonl", "check show list backup repair gc erase", ""},
	"index.json":        {"index.json", "", ""},
	"the context":       {"", "check show list backup repair gc erase trash", ""},
	"trash":             {"trash", "trash gc erase", ""},
	"an item":           {"trash/*-*", "trash gc erase", ""},
	"a file in an item": {"trash/*-*/*-*.json", "erase", ""},
	"a note":            {"trash/*/item.json", "trash gc", ""},
	"the store's trash": {"../trash", "trash gc erase", ""},
	"an item there":     {"../trash/*-*", "trash gc erase", ""},
	"a note there":      {"../trash/*-*/item.json", "trash erase", ""},
	"a context there":   {"../trash/*-*/*-*", "gc", ""},
	"blobs":             {"../blobs", "check gc", "show backup"},
	"a blob":            {"../blobs/*/*/*.zst", "check", "show backup"},
	"the cache":         {"../summaries.jsonl", "", ""},
	"the log":           {"../collected.jsonl", "", ""},
}

// TestUnreadablePlaces: what cannot be read for want of permission is told of by who needs it, and nothing is lost:
// when it can be read again, everything is there.
func TestUnreadablePlaces(t *testing.T) {
	t.Parallel()
	if !kit.AsNobody(t) {
		return
	}
	for i, name := range slices.Sorted(maps.Keys(unreadablePlaces)) {
		place := unreadablePlaces[name]
		for n, log := range []bool{true, false} {
			if testing.Short() && (i+n+kit.Today())%2 == 0 {
				continue // another day
			}
			t.Run(name, func(t *testing.T) {
				p := kit.NewPatient(t, log)
				p.AddTrash()
				told := strings.Fields(place.told)
				if !log {
					told = append(told, strings.Fields(place.sealed)...)
				} else if strings.HasPrefix(place.path, "segments") {
					t.Skip("a log has everything")
				}
				for _, path := range p.Glob(place.path) {
					kit.Check(t, os.Chmod(path, 0))
				}
				for _, op := range []string{"check", "show", "list", "backup", "trash", "gc", "erase", "repair"} {
					if op == "list" { // it reads only contexts that are not in the cache: see TestListKeepsUnreadable
						kit.Check(t, os.RemoveAll(filepath.Join(p.Store.Path(), listing.SummariesFile)))
					}
					problems := p.Problems(op)
					t.Logf("log %v: %s: %.300q", log, op, problems)
					if slices.Contains(told, op) && len(problems) == 0 {
						t.Errorf("log %v: %s says nothing", log, op)
					}
				}
				p.Permit()
				// It is gone, or is erased when that is done again.
				delete(p.Want, "empty")
				if _, lost := p.Heal(checking.Options{}); lost > 0 {
					t.Errorf("log %v: %d messages are lost", log, lost)
				}
				p.RestoreAll()
			})
		}
	}
}

// TestListKeepsUnreadable: a list shows what it read of a context as long as the inode, size and time of the files stay
// the same, though they cannot be read any more. Once it reads the context again, it says why it cannot.
func TestListKeepsUnreadable(t *testing.T) {
	if !kit.AsNobody(t) {
		return
	}
	for _, name := range []string{"metadata.json", "logs"} {
		t.Run(name, func(t *testing.T) {
			p := kit.NewPatient(t, true)
			long := time.Now().Add(-time.Hour)
			for _, path := range append(p.Glob("*.json*"), p.Dir) {
				kit.Check(t, os.Chtimes(path, long, long))
			}
			want := kit.List(t, p.Store)
			if len(want) != 1 || want[0].Problem != nil || want[0].Messages == 0 {
				t.Fatalf("%+v", want)
			}
			for _, path := range p.Glob(unreadablePlaces[name].path) {
				kit.Check(t, os.Chmod(path, 0))
			}
			kit.ForgetListCheck(t, p.Store.FS)
			next := kit.Must[*engine.Store](t)(kit.Open(p.Store.Path())) // its first list examines all contexts
			for _, s := range []*engine.Store{p.Store, next} {
				if diff := cmp.Diff(want, kit.List(t, s)); diff != "" {
					t.Errorf("the context is in the cache: %s", diff)
				}
			}
			kit.Check(t, next.Close())
			now := time.Now()
			kit.Check(t, os.Chtimes(p.Dir, now, now))
			if got := kit.List(t, p.Store); len(got) != 1 || got[0].Problem == nil {
				t.Errorf("the files changed, and the list says nothing: %+v", got)
			}
			p.Permit()
			if got := kit.List(t, p.Store); len(got) != 1 || got[0].Problem != nil || got[0].Messages != want[0].Messages {
				t.Errorf("%+v when all can be read again", got)
			}
		})
	}
}

// TestUnreadableTrashIsPurged: an item that is due and cannot be removed is told of, each time, and goes when it can
// be; what is beside it is collected and purged meanwhile.
func TestUnreadableTrashIsPurged(t *testing.T) {
	if !kit.AsNobody(t) {
		return
	}
	clock := kit.NewClock()
	s, dir := kit.NewStore(t, engine.WithClock(clock.Now))
	var folders []string
	for range 2 {
		c, _ := kit.NewOrphan(t, s)
		first := kit.Must[[]*engine.Message](t)(c.Active().Range(t.Context(), 0, 1))[0]
		kit.Check(t, c.Dir.SetAside("messages/branch-main/"+first.ID.String()+".json"), c.Close())
		folders = append(folders, filepath.Join(dir, c.ID().String()))
	}
	items, _ := filepath.Glob(filepath.Join(folders[0], "trash", "*-*"))
	inside := filepath.Join(items[0], "folder")
	kit.Check(t, os.Mkdir(inside, 0o700), os.WriteFile(inside+"/file", nil, 0o600), os.Chmod(inside, 0))
	clock.Jump(8 * 24 * time.Hour)
	for round, want := range []int{3, 0, 0} {
		orphan := kit.Must[*engine.Context](t)(s.Context(t.Context(), uuid.MustParse(filepath.Base(folders[round%2]))))
		kit.Fill(t, kit.Must[*engine.Branch](t)(orphan.NewBranch(t.Context(), "more")), 1)
		kit.Check(t, orphan.Remove(t.Context(), "more"), orphan.Close())
		moved, purged, failed := 0, 0, 0
		for x, err := range trash.Collect(t.Context(), s, trash.CollectOptions{Grace: trash.DefaultGrace}) {
			switch {
			case err != nil:
				failed++
			case x.Purged:
				purged++
			default:
				moved++
			}
		}
		if moved != 0 || purged != want || (failed > 0) != (round < 2) {
			t.Errorf("round %d: %d moved, %d purged, %d failed", round, moved, purged, failed)
		}
		if round == 1 {
			hidden, _ := filepath.Glob(filepath.Join(folders[0], "trash", ".*", "folder"))
			kit.Check(t, os.Chmod(hidden[0], 0o700))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folders[0], "trash", ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
