package storetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestCheckBesideReplace: a check has waited for the file of a message, and then the message is replaced. Its file, which
// lags behind the commit once more, is not missing.
func TestCheckBesideReplace(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithFiles(engine.FilesOnReturn)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(`{"n":1}`)})
	kit.Check(t, disk.Remove(c.ID().String()+"/"+c.Dir.MessagePath("branch-main", kit.TestID(1))), c.Close(), s.Close())

	making, checked := make(chan bool), make(chan bool)
	slow := &hookedFS{FS: disk, remove: func(string) {}, open: func(name string) {
		if strings.HasPrefix(name, "."+kit.TestID(1).String()) {
			making <- true
			<-checked
		}
	}}
	writes := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(slow), engine.WithSealBytes(-1)))
	c = kit.Must[*engine.Context](t)(writes.Context(ctx, c.ID()))
	replaced := make(chan error)
	awaited, begun := false, false
	beside := &hookedFS{FS: disk, remove: func(string) {}, open: func(string) {}, look: func(name string) {
		awaited = awaited || strings.HasSuffix(name, ".files")
		if awaited && !begun && strings.HasPrefix(name, "log-") { // the look after the wait
			begun = true
			go func() { replaced <- c.Active().Replace(ctx, kit.TestID(1), engine.Draft{Body: []byte(`{"n":2}`)}) }()
			<-making
		}
	}}
	checks := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(beside), engine.WithoutPause()))
	kit.NothingFound(t, "replaced", checks, checking.Options{})
	if !begun {
		t.Fatal("nothing was replaced meanwhile")
	}
	close(checked)
	kit.Check(t, <-replaced, c.Close(), writes.Close(), checks.Close())
}

// TestCheckBesideSeals: whenever a check has listed the logs and lists the segments, somebody makes another one. None is of
// another history.
func TestCheckBesideSeals(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithFiles(engine.FilesOnReturn)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	appended := 0
	seal := func() {
		kit.Append(t, c.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"n":%d}`, appended)})
		kit.Check(t, c.Seal(ctx))
		appended++
	}
	seal()
	logs := false
	beside := &hookedFS{FS: disk, remove: func(string) {}, open: func(string) { logs = false }, list: func(name string) {
		if logs && name == "segments" && appended < 40 {
			seal()
		}
		logs = name == "."
	}}
	checks := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(beside), engine.WithoutPause()))
	kit.NothingFound(t, "sealed again and again", checks, checking.Options{})
	if appended < 4 {
		t.Errorf("%d segments were made", appended)
	}
	kit.Check(t, checks.Close(), c.Close(), s.Close())
}
