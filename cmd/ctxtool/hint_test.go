package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	folder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// TestHints meets errors as users do: each says what to run next.
func TestHints(t *testing.T) {
	p := newInProcess(t)
	if p.run(t.Context(), "", "ls"); !strings.Contains(p.stderr.String(), "ctxtool init") {
		t.Errorf("no store: %s", p.stderr.String())
	}
	id, other := p.new(t), p.new(t)
	newer, damaged := p.new(t), p.new(t)
	if code := p.run(t.Context(), "", "append", id, "text"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	message := strings.TrimSpace(p.stdout.String())
	for broken, text := range map[string]string{newer: `{"ctxdir":"context/9"}`, damaged: "{"} {
		if err := os.WriteFile(filepath.Join(p.store, broken, "metadata.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const nobody = "00000000-0000-4000-8000-000000000000"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"show", nobody}, `"ctxtool ls" lists the contexts, "ctxtool trash ls" what was removed`},
		{[]string{"show", id[:6]}, "give more of the id"},
		{[]string{"show", "xyz"}, `"ctxtool ls" lists the contexts`},
		{[]string{"show", id, "--branch", "none"}, `"ctxtool branch ls ` + id + `" lists the branches`},
		{[]string{"archive", id, "--branch", "none"}, `"ctxtool branch ls ` + id + `" lists the branches`},
		{[]string{"branch", "switch", id, "none"}, `"ctxtool branch ls ` + id + `" lists the branches`},
		{[]string{"branch", "new", id, "main"}, `"ctxtool branch ls ` + id + `" lists the names that are taken`},
		{[]string{"branch", "fork", id, "MAIN"}, `"ctxtool branch ls ` + id + `" lists the names that are taken`},
		{[]string{"branch", "fork", id, "f", "--at", "9"}, `"ctxtool branch ls ` + id + `" tells how many messages there are`},
		{[]string{"branch", "fork", id, "f", "--at", nobody}, `"ctxtool show ` + id + ` --no-content" tells the ids`},
		{[]string{"branch", "rm", id, "main"}, `"ctxtool branch switch ` + id + ` NAME" makes another one active`},
		{[]string{"branch", "forkk"}, "did you mean fork?"},
		{[]string{"new", "--id", id}, `"ctxtool show ` + id + `" shows it`},
		{[]string{"append", id, "x", "--expect-position", "7"}, `"ctxtool branch ls ` + id + `" tells how many messages there are`},
		{[]string{"append", id, "x", "--id", message}, "another id, or none"},
		{[]string{"append", id, "xyz", "--max-message", "2"}, "--max-message"},
		{[]string{"append", id, "--attach", "/does/not/exist"}, "is the path right?"},
		{[]string{"erase", id, nobody}, `"ctxtool show ` + id + ` --no-content" tells the ids`},
		{[]string{"trash", "restore", "999"}, `"ctxtool trash ls" lists the items`},
		{[]string{"trash", "restore", "xyz"}, `"ctxtool trash ls" lists the items`},
		{[]string{"rollback", id, "--from-backup"}, `"ctxtool rollback ` + id + ` --to FILE" writes a legacy file`},
		{[]string{"rollback", id, "--to", there}, "name a file that is not there yet"},
		{[]string{"backup", id, "--to", p.store}, "name another folder"},
		{[]string{"import", "/does/not/exist"}, "is the path right?"},
		{[]string{"export", id, "-o", "/does/not/exist"}, "is the path right?"},
		{[]string{"init", filepath.Join(there, "in")}, "is the path right?"},
		{[]string{"show", newer}, "a newer ctxtool may read it"},
		{[]string{"show", damaged}, `"ctxtool repair ` + damaged + `" mends what can be mended`},
		{[]string{"meta", other, "--set", "branches=[]"}, `"ctxtool branch" changes them`},
		{[]string{"ls", "--sort", "x"}, "usage: ctxtool ls"},
	}
	for _, test := range tests {
		code := p.run(t.Context(), "", append(test.args, "--json")...)
		var r errorRecord
		if err := json.Unmarshal([]byte(p.stderr.String()), &r); err != nil || code == 0 || !strings.Contains(r.Hint, test.want) {
			t.Errorf("%q: %d, %v\n%s\nwanted the hint %s", test.args, code, err, p.stderr.String(), test.want)
		}
	}
}

// TestRareHints are of errors that cannot be brought about everywhere.
func TestRareHints(t *testing.T) {
	id := uuid.MustParse("0195f0a0-0000-7000-8000-00000000000a")
	in := func(op string, err error) error { return &ctxdir.Error{Op: op, Context: id, Err: err} }
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	tests := []struct {
		err  error
		want string
	}{
		{in("append", ctxdir.ErrLocked), "--lock-timeout waits longer"},
		{in("append", path(syscall.ENOSPC)), `the disk is full: "ctxtool trash empty" frees what lies in the trash`},
		{
			in("append", fmt.Errorf("%w: %w", ctxdir.ErrDurability, syscall.EIO)),
			"whether it is stored is not certain: append again with the same id",
		},
		{in("append", path(syscall.EROFS)), "the file system is for reading only: --store names a store elsewhere"},
		{in("append", path(fs.ErrPermission)), "check who may read and write there"},
		{in("read", ctxdir.ErrDamaged), `"ctxtool repair ` + id.String() + `" mends what can be mended`},
		{in("refresh", folder.ErrGone), `"ctxtool ls" lists the contexts, "ctxtool trash ls" what was removed`},
		{in("restore", ctxdir.ErrExist), `"ctxtool rm" moves what is there to the trash`},
		{in("replace", ctxdir.ErrShared), "--shared changes it in all of them"},
		{&summedError{"all of it", path(fs.ErrNotExist)}, ""},
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, ""},
		{errors.New("something else"), ""},
	}
	for _, test := range tests {
		if got := hint(test.err); got != test.want {
			t.Errorf("%v: %q, wanted %q", test.err, got, test.want)
		}
	}
}
