package integrity_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

var crashed = uuid.MustParse("01930000-0000-7000-8000-000000000001")

func openOn(t *testing.T, disk *crashfs.FS) *engine.Store {
	t.Helper()
	s, err := engine.Open("disk", engine.WithFS(disk), engine.WithoutPause(), engine.WithSealBytes(-1), engine.InOrder())
	check(t, err)
	return s
}

// file returns the paths of the context's files whose names have a prefix and a suffix, in a folder of it.
func filesOn(t *testing.T, disk *crashfs.FS, folder, prefix, suffix string) (all []string) {
	t.Helper()
	folder = path.Join(crashed.String(), folder)
	for e, err := range disk.ReadDir(folder) {
		check(t, err)
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			all = append(all, folder+"/"+e.Name())
		}
	}
	return all
}

func changeOn(t *testing.T, disk *crashfs.FS, name string, f func(b []byte) []byte) {
	t.Helper()
	b, err := vfs.ReadFile(disk, name, 1<<20)
	check(t, err, disk.Replace(name, f(b)))
}

// bodiesOn returns what the context shows.
func bodiesOn(t *testing.T, disk *crashfs.FS) (all []string) {
	t.Helper()
	s := openOn(t, disk)
	c, err := s.Context(context.Background(), crashed)
	check(t, err)
	ms, err := c.Active().Load(context.Background())
	check(t, err)
	for _, m := range ms {
		all = append(all, string(m.Stored))
	}
	check(t, c.Close(), s.Close())
	return all
}

// crashes damages a context. views are the files of its messages.
var crashes = map[string]func(t *testing.T, disk *crashfs.FS, views []string){
	"record": func(t *testing.T, disk *crashfs.FS, _ []string) {
		for _, log := range filesOn(t, disk, ".", "log-", ".jsonl") {
			changeOn(t, disk, log, func(b []byte) []byte { return bytes.Replace(b, []byte(`"n":7`), []byte(`"n":9`), 1) })
		}
	},
	"log": func(t *testing.T, disk *crashfs.FS, _ []string) {
		for _, log := range filesOn(t, disk, ".", "log-", ".jsonl") {
			check(t, disk.Remove(log))
		}
	},
	"message in a segment": func(t *testing.T, disk *crashfs.FS, _ []string) {
		changeOn(t, disk, filesOn(t, disk, "segments", "1-", ".zst")[0], func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"n":2`), []byte(`"n":9`), 1)
		})
	},
	"segment": func(t *testing.T, disk *crashfs.FS, _ []string) {
		check(t, disk.Remove(filesOn(t, disk, "segments", "1-", ".zst")[0]))
	},
	"footer": func(t *testing.T, disk *crashfs.FS, _ []string) {
		changeOn(t, disk, filesOn(t, disk, "segments", "1-", ".zst")[0], func(b []byte) []byte { return b[:len(b)-9] })
	},
	"metadata.json and files": func(t *testing.T, disk *crashfs.FS, views []string) {
		check(t, disk.Remove(crashed.String()+"/metadata.json"), disk.Remove(views[3]))
		changeOn(t, disk, views[4], func(b []byte) []byte { return b[:9] })
		check(t, disk.Rename(views[5], crashed.String()+"/messages/"+path.Base(views[5])))
	},
}

// sound makes a context whose newest messages are in a log.
func sound(t *testing.T) (disk *crashfs.FS, views []string) {
	t.Helper()
	ctx := context.Background()
	disk = crashfs.New()
	s, err := engine.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.InOrder(), engine.WithFiles(engine.FilesOnReturn))
	check(t, err)
	c, err := s.Create(ctx, engine.Metadata{ID: crashed})
	check(t, err)
	for n := range 9 {
		r, err := c.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d}`, n)})
		check(t, err)
		views = append(views, c.ID().String()+"/"+c.Dir.MessagePath("branch-main", r.ID))
		if n == 5 {
			check(t, c.Seal(ctx))
		}
	}
	check(t, c.Close(), s.Close(), disk.SyncAll())
	return disk, views
}

// TestRepairCrash cuts the power while a repair runs. Another repair finishes it: everything is there, once.
func TestRepairCrash(t *testing.T) {
	t.Parallel()
	for name, do := range crashes {
		disk, views := sound(t)
		want := bodiesOn(t, disk)
		do(t, disk, views)
		check(t, disk.SyncAll())
		for cut := 1; ; cut++ {
			left := disk.Crash(crashfs.Keep)
			left.CutAt(len(left.Ops()) + cut)
			s, err := engine.Open("disk", engine.WithFS(left), engine.WithoutPause(), engine.WithSealBytes(-1), engine.InOrder())
			if err == nil {
				for _, err = range checking.Repair(context.Background(), s, nil, checking.Options{}) {
				}
				_ = s.Close()
			}
			if !left.PowerCut() {
				check(t, err)
				break
			}
			for _, how := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(cut))} {
				repairCrashed(t, left.Crash(how), fmt.Sprintf("%s, cut at %d, %s", name, cut, how), want)
			}
		}
	}
}

// repairCrashed repairs once more. Who finds no trace of a lost log takes in what was in it only on request.
func repairCrashed(t *testing.T, disk *crashfs.FS, when string, want []string) {
	t.Helper()
	ctx := context.Background()
	s := openOn(t, disk)
	for r, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
		if err != nil {
			t.Fatalf("%s: %+v, %v", when, r, err)
		}
	}
	for r, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
		t.Fatalf("%s, another repair: %+v, %v", when, r, err)
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		t.Errorf("%s: %+v, %v", when, f, err)
	}
	check(t, s.Close())
	if got := bodiesOn(t, disk); strings.Join(got, "") != strings.Join(want, "") {
		t.Fatalf("%s: %v", when, got)
	}
}
