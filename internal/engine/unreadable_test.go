//go:build unix

package engine

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// asNobody runs the test as a user whom permissions stop, if root runs it. It reports whether this is that run.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const nobody = 65534
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	b := must[[]byte](t)(os.ReadFile(must[string](t)(os.Executable())))
	check(t, os.WriteFile(program, b, 0o755), os.Chown(dir, nobody, nobody), os.Chmod(filepath.Dir(dir), 0o755))
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skipf("no program can be run as another user, and permissions do not stop this one: %v", err)
	}
	if err != nil {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return false
}

// unreadable is a place, relative to the context's folder, and who has to say that it cannot be read.
type unreadable struct{ path, told string }

var unreadablePlaces = map[string]unreadable{
	"a message":          {"messages/branch-alt/*.json", "check show backup gc"},
	"a branch":           {"messages/branch-alt", "check show backup repair gc erase"},
	"all branches":       {"messages", "check show backup repair gc erase"},
	"index.json":         {"index.json", "check show list backup repair gc erase"},
	"rows":               {"index/*.rows", "check show backup repair gc erase"},
	"the folder of rows": {"index", "check repair gc erase"},
	"metadata.json":      {"metadata.json", "check show list repair"},
	"journals":           {"journal-*.jsonl", "check show list backup repair gc erase"},
	"the context":        {"", "check show list backup repair gc erase trash"},
	"trash":              {"trash", "trash gc erase"},
	"an item":            {"trash/*-*", "trash gc erase"},
	"a file in an item":  {"trash/*/messages-1.jsonl", "gc erase"},
	"a note":             {"trash/*/item.json", "trash gc"},
	"the store's trash":  {"../trash", "trash gc erase"},
	"an item there":      {"../trash/*-*", "trash gc erase"},
	"a note there":       {"../trash/*-*/item.json", "trash erase"},
	"a context there":    {"../trash/*-*/*-*", "gc"},
	"blobs":              {"../blobs", "check show backup gc"},
	"a blob":             {"../blobs/*/*/*.zst", "check show backup"},
	"the cache":          {"../summaries.jsonl", ""},
	"the log":            {"../collected.jsonl", ""},
}

// TestUnreadablePlaces: what cannot be read for want of permission is told of by who needs it, and nothing is lost: when it can be read
// again, everything is there.
func TestUnreadablePlaces(t *testing.T) {
	if !asNobody(t) {
		return
	}
	for name, place := range unreadablePlaces {
		for _, second := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				p := newPatient(t, second)
				p.more()
				for _, path := range p.glob(place.path) {
					check(t, os.Chmod(path, 0))
				}
				for _, op := range []string{"check", "show", "list", "backup", "trash", "gc", "erase", "repair"} {
					told := p.tries(op)
					t.Logf("journals %v: %s: %.300q", second, op, told)
					if slices.Contains(strings.Fields(place.told), op) && len(told) == 0 {
						t.Errorf("journals %v: %s says nothing", second, op)
					}
				}
				p.permit()
				// It is gone, or is erased when that is done again.
				delete(p.want, "empty")
				if _, lost := p.heal(CheckOptions{}); lost > 0 {
					t.Errorf("journals %v: %d messages are lost", second, lost)
				}
				p.restores()
			})
		}
	}
}

// tries does what a verb does, and returns what it says is wrong.
func (p *patient) tries(op string) (told []string) {
	p.t.Helper()
	ctx := context.Background()
	switch op {
	case "check":
		for f, err := range p.store.Check(ctx, nil, CheckOptions{ReadData: true}) {
			told = tells(told, err, string(f.Kind)+" "+f.Path+" "+f.Detail)
		}
	case "show":
		c, err := p.store.Context(ctx, p.id)
		if err != nil {
			return tells(told, err)
		}
		defer c.Close()
		for _, b := range c.current().Branches {
			for m, err := range must[*Branch](p.t)(c.Branch(b.Name)).Messages(ctx) {
				if err == nil {
					err = m.Unavailable
				}
				if err == nil {
					_, err = m.Body(ctx)
				}
				told = tells(told, err)
			}
		}
		return tells(told, c.Problem())
	case "list":
		for x, err := range p.store.List(ctx) {
			told = tells(tells(told, err), x.Problem)
		}
	case "backup":
		to := must[*Store](p.t)(Init(filepath.Join(p.t.TempDir(), "copy")))
		defer to.Close()
		b, err := p.store.Backup(ctx, p.id, to)
		told = tells(tells(told, err), b.Problem)
	case "trash":
		for x, err := range p.store.Trash(ctx) {
			told = tells(tells(told, err), x.Problem)
		}
	case "gc":
		for _, err := range p.store.Collect(ctx, Collecting{Grace: DefaultGrace}) {
			told = tells(told, err)
		}
	case "erase":
		_, err := erase(p.store, p.id, p.want["empty"][0].id, EraseOptions{})
		told = tells(told, err)
	case "repair":
		for f, err := range p.store.Repair(ctx, nil, CheckOptions{}) {
			told = tells(told, err, string(f.Kind)+" "+f.Path+" "+f.Detail)
		}
	}
	return told
}

func tells(told []string, err error, more ...string) []string {
	if err != nil {
		return append(told, err.Error())
	}
	return append(told, more...)
}

// more adds to a patient what trash has, and what is to be collected and erased.
func (p *patient) more() {
	p.t.Helper()
	ctx := context.Background()
	c := must[*Context](p.t)(p.store.Context(ctx, p.id))
	must[Appended](p.t)(must[*Branch](p.t)(c.Branch("empty")).Append(ctx, Draft{Body: []byte(`{"text":"to be erased"}`)}))
	gone := must[*Branch](p.t)(c.Active().Fork(ctx, "gone", 3))
	fill(p.t, gone, 2)
	check(p.t, c.Remove(ctx, "gone"), c.Fold(ctx))
	collect(p.t, p.store, Collecting{Grace: DefaultGrace})
	check(p.t, c.Refresh(ctx))
	left := must[*Branch](p.t)(c.Active().Fork(ctx, "left", 3))
	fill(p.t, left, 2)
	check(p.t, c.Remove(ctx, "left"), c.Fold(ctx))
	p.want = p.read(c)
	check(p.t, c.Close())
	other := must[*Context](p.t)(p.store.Create(ctx, Metadata{}))
	fill(p.t, other.Active(), 2)
	check(p.t, other.Close())
	must[Trashed](p.t)(p.store.Delete(ctx, other.ID()))
	for range p.store.List(ctx) {
	}
	if _, err := os.Lstat(filepath.Join(p.store.Path(), summariesFile)); err != nil {
		write(p.t, filepath.Join(p.store.Path(), summariesFile), nil)
	}
}

// permit lets everything be read again, wherever it lies now.
func (p *patient) permit() {
	p.t.Helper()
	var walk func(path string)
	walk = func(path string) {
		info := must[fs.FileInfo](p.t)(os.Lstat(path))
		switch {
		case info.IsDir():
			check(p.t, os.Chmod(path, 0o700))
			for _, e := range must[[]os.DirEntry](p.t)(os.ReadDir(path)) {
				walk(filepath.Join(path, e.Name()))
			}
		case info.Mode().IsRegular():
			check(p.t, os.Chmod(path, 0o600))
		}
	}
	walk(p.store.Path())
}

// restores brings back all there is in trash that can come back.
func (p *patient) restores() {
	p.t.Helper()
	ctx := context.Background()
	for _, kind := range []string{"line", "context"} {
		var items []uuid.UUID
		for _, x := range trashOf(p.t, p.store, kind) {
			items = append(items, x.Item)
		}
		if len(items) == 0 {
			p.t.Errorf("there is no %s in trash any more", kind)
		}
		for _, item := range items {
			if r, err := p.store.Restore(ctx, item); err != nil || r.Missing > 0 {
				p.t.Errorf("restoring a %s: %+v, %v", kind, r, err)
			}
		}
	}
}

// TestUnreadableTrashIsPurged: an item that is due and cannot be removed is told of, each time, and goes when it can be; what is beside it
// is collected and purged meanwhile.
func TestUnreadableTrashIsPurged(t *testing.T) {
	if !asNobody(t) {
		return
	}
	clock := newClock()
	s, dir := newStore(t, withClock(clock.now))
	var folders []string
	for range 2 {
		c, _ := orphaned(t, s)
		check(t, c.Close())
		folders = append(folders, filepath.Join(dir, c.ID().String()))
	}
	collect(t, s, Collecting{Grace: DefaultGrace})
	items, _ := filepath.Glob(filepath.Join(folders[0], "trash", "*-*"))
	inside := filepath.Join(items[0], "folder")
	check(t, os.Mkdir(inside, 0o700), os.WriteFile(inside+"/file", nil, 0o600), os.Chmod(inside, 0))
	clock.jump(8 * 24 * time.Hour)
	for round, want := range []int{1, 0, 0} {
		orphan := must[*Context](t)(s.Context(t.Context(), uuid.MustParse(filepath.Base(folders[round%2]))))
		fill(t, must[*Branch](t)(orphan.NewBranch(t.Context(), "more")), 1)
		check(t, orphan.Remove(t.Context(), "more"), orphan.Close())
		moved, purged, failed := 0, 0, 0
		for x, err := range s.Collect(t.Context(), Collecting{Grace: DefaultGrace}) {
			switch {
			case err != nil:
				failed++
			case x.Purged:
				purged++
			default:
				moved++
			}
		}
		if moved != 1 || purged != want || (failed > 0) != (round < 2) {
			t.Errorf("round %d: %d moved, %d purged, %d failed", round, moved, purged, failed)
		}
		if round == 1 {
			hidden, _ := filepath.Glob(filepath.Join(folders[0], "trash", ".*", "folder"))
			check(t, os.Chmod(hidden[0], 0o700))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folders[0], "trash", ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
