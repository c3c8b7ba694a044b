//go:build unix

package storetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
)

// AsNobody runs the test as a user whom permissions stop, if root runs it. It reports whether this is that run.
func AsNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const nobody = 65534
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	b := Must[[]byte](t)(os.ReadFile(Must[string](t)(os.Executable())))
	Check(t, os.WriteFile(program, b, 0o755), os.Chown(dir, nobody, nobody), os.Chmod(filepath.Dir(dir), 0o755))
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", fmt.Sprintf("-test.short=%v", testing.Short()))
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

// Problems does what a verb does, and returns what it says is wrong.
func (p *Patient) Problems(op string) (told []string) {
	p.T.Helper()
	ctx := context.Background()
	switch op {
	case "check":
		for f, err := range checking.Check(ctx, p.Store, nil, checking.Options{ReadData: true}) {
			told = problems(told, err, string(f.Kind)+" "+f.Path+" "+f.Detail)
		}
	case "show":
		c, err := p.Store.Context(ctx, p.ID)
		if err != nil {
			return problems(told, err)
		}
		defer c.Close()
		for _, b := range c.Current().Branches {
			for m, err := range Must[*engine.Branch](p.T)(c.Branch(b.Name)).Messages(ctx) {
				if err == nil {
					err = m.Unavailable
				}
				if err == nil {
					_, err = m.Body(ctx)
				}
				told = problems(told, err)
			}
		}
		return problems(told, c.Problem())
	case "list":
		for x, err := range listing.New(p.Store).List(ctx, listing.ListOptions{}) {
			told = problems(problems(told, err), x.Problem)
		}
	case "backup":
		to := Must[*engine.Store](p.T)(Init(filepath.Join(p.T.TempDir(), "copy")))
		defer to.Close()
		b, err := backup.Copy(ctx, p.Store, p.ID, to)
		told = problems(problems(told, err), b.Problem)
	case "trash":
		for x, err := range trash.List(ctx, p.Store) {
			told = problems(problems(told, err), x.Problem)
		}
	case "gc":
		for _, err := range trash.Collect(ctx, p.Store, trash.CollectOptions{Grace: trash.DefaultGrace}) {
			told = problems(told, err)
		}
	case "erase":
		_, err := Erase(p.Store, p.ID, p.Want["empty"][0].ID, erase.Options{})
		told = problems(told, err)
	case "repair":
		for f, err := range checking.Repair(ctx, p.Store, nil, checking.Options{}) {
			told = problems(told, err, string(f.Kind)+" "+f.Path+" "+f.Detail)
		}
	}
	return told
}

func problems(told []string, err error, more ...string) []string {
	if err != nil {
		return append(told, err.Error())
	}
	return append(told, more...)
}

// AddTrash adds to a patient what trash has, and what is to be collected and erased.
func (p *Patient) AddTrash() {
	p.T.Helper()
	ctx := context.Background()
	c := Must[*engine.Context](p.T)(p.Store.Context(ctx, p.ID))
	erased := Append(p.T, Must[*engine.Branch](p.T)(c.Branch("empty")), engine.Draft{Body: []byte(`{"text":"to be erased"}`)})
	Check(p.T, c.Dir.SetAside("messages/branch-empty/"+erased.ID.String()+".json"))
	gone := Must[*engine.Branch](p.T)(c.Active().Fork(ctx, "gone", 3))
	Fill(p.T, gone, 2)
	Check(p.T, c.Remove(ctx, "gone"))
	Collect(p.T, p.Store, trash.CollectOptions{Grace: trash.DefaultGrace}) // it begins the log
	Check(p.T, c.Refresh(ctx))
	left := Must[*engine.Branch](p.T)(c.Active().Fork(ctx, "left", 3))
	Fill(p.T, left, 2)
	Check(p.T, c.Remove(ctx, "left"))
	p.Want = p.Read(c)
	Check(p.T, c.Close())
	other := Must[*engine.Context](p.T)(p.Store.Create(ctx, engine.Metadata{}))
	Fill(p.T, other.Active(), 2)
	Check(p.T, other.Close())
	Must[engine.TrashItem](p.T)(p.Store.Delete(ctx, other.ID()))
	List(p.T, p.Store)
	if _, err := os.Lstat(filepath.Join(p.Store.Path(), listing.SummariesFile)); err != nil {
		Write(p.T, filepath.Join(p.Store.Path(), listing.SummariesFile), nil)
	}
}

// Permit lets everything be read again, wherever it lies now.
func (p *Patient) Permit() {
	p.T.Helper()
	var walk func(path string)
	walk = func(path string) {
		info := Must[fs.FileInfo](p.T)(os.Lstat(path))
		switch {
		case info.IsDir():
			Check(p.T, os.Chmod(path, 0o700))
			for _, e := range Must[[]os.DirEntry](p.T)(os.ReadDir(path)) {
				walk(filepath.Join(path, e.Name()))
			}
		case info.Mode().IsRegular():
			Check(p.T, os.Chmod(path, 0o600))
		}
	}
	walk(p.Store.Path())
}

// RestoreAll brings back all there is in trash that can come back.
func (p *Patient) RestoreAll() {
	p.T.Helper()
	ctx := context.Background()
	for _, kind := range []string{"line", "context"} {
		var items []uuid.UUID
		for _, x := range TrashOf(p.T, p.Store, kind) {
			items = append(items, x.Item)
		}
		if len(items) == 0 {
			p.T.Errorf("there is no %s in trash any more", kind)
		}
		for _, item := range items {
			if r, err := trash.Restore(ctx, p.Store, item); err != nil {
				p.T.Errorf("restoring a %s: %+v, %v", kind, r, err)
			}
		}
	}
}
