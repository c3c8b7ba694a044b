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

// TestHints causes errors as users do: each says what to run next.
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
	logs, err := filepath.Glob(filepath.Join(p.store, damaged, "log-*"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		if err := os.Remove(path); err != nil {
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
		{[]string{"show", nobody}, findContext},
		{[]string{"show", id[:6]}, "type more of the id"},
		{[]string{"show", "xyz"}, `run "ctxtool ls" to list the contexts`},
		{[]string{"show", id, "--branch", "none"}, `run "ctxtool branch ls ` + id + `" to list the branches`},
		{[]string{"archive", id, "--branch", "none"}, `run "ctxtool branch ls ` + id + `" to list the branches`},
		{[]string{"branch", "switch", id, "none"}, `run "ctxtool branch ls ` + id + `" to list the branches`},
		{[]string{"branch", "new", id, "main"}, `run "ctxtool branch ls ` + id + `" to list the names in use`},
		{[]string{"branch", "fork", id, "MAIN"}, `run "ctxtool branch ls ` + id + `" to list the names in use`},
		{[]string{"branch", "fork", id, "f", "--at", "9"}, `run "ctxtool branch ls ` + id + `" to see the number of messages`},
		{[]string{"branch", "fork", id, "f", "--at", nobody}, `run "ctxtool show ` + id + ` --no-content" to list the ids`},
		{[]string{"branch", "rm", id, "main"}, `"ctxtool branch switch ` + id + ` NAME" to make another branch active`},
		{[]string{"branch", "forkk"}, "did you mean fork?"},
		{[]string{"new", "--id", id}, `run "ctxtool show ` + id + `" to see it`},
		{[]string{"append", id, "x", "--expect-position", "7"}, `run "ctxtool branch ls ` + id + `" to see the number of messages`},
		{[]string{"append", id, "x", "--id", message}, "another id, or without --id"},
		{[]string{"append", id, "xyz", "--max-message", "2"}, "--max-message"},
		{[]string{"append", id, "--attach", "/does/not/exist"}, "check the path"},
		{[]string{"erase", id, nobody}, `run "ctxtool show ` + id + ` --no-content" to list the ids`},
		{[]string{"trash", "restore", "999"}, `run "ctxtool trash ls" to list the items`},
		{[]string{"trash", "restore", "xyz"}, `run "ctxtool trash ls" to list the items`},
		{[]string{"rollback", id, "--from-backup"}, `run "ctxtool rollback ` + id + ` --to FILE" to write a legacy file`},
		{[]string{"rollback", id, "--to", there}, "name a file that does not exist yet"},
		{[]string{"backup", id, "--to", p.store}, "name another folder"},
		{[]string{"import", "/does/not/exist"}, "check the path"},
		{[]string{"export", id, "-o", "/does/not/exist"}, "check the path"},
		{[]string{"init", filepath.Join(there, "in")}, "check the path"},
		{[]string{"show", newer}, "use a newer version of ctxtool"},
		{[]string{"show", damaged}, `run "ctxtool repair ` + damaged + `"`},
		{[]string{"meta", other, "--set", "branches=[]"}, `use "ctxtool branch"`},
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

// TestRareHints covers errors that a test cannot cause on every system.
func TestRareHints(t *testing.T) {
	id := uuid.MustParse("0195f0a0-0000-7000-8000-00000000000a")
	in := func(op string, err error) error { return &ctxdir.Error{Op: op, Context: id, Err: err} }
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	tests := []struct {
		err  error
		want string
	}{
		{in("append", ctxdir.ErrLocked), "retry, or wait longer with --lock-timeout"},
		{in("append", path(syscall.ENOSPC)), `free disk space; "ctxtool trash empty" purges the trash`},
		{
			in("append", fmt.Errorf("%w: %w", ctxdir.ErrDurability, syscall.EIO)),
			"the message may or may not be stored; append it again with the same id",
		},
		{in("append", path(syscall.EROFS)), "use a store on a writable file system, as with --store DIR"},
		{in("append", path(fs.ErrPermission)), "check the permissions of the file and its folder"},
		{in("read", ctxdir.ErrDamaged), `run "ctxtool repair ` + id.String() + `"`},
		{in("refresh", folder.ErrGone), findContext},
		{in("restore", ctxdir.ErrExist), `run "ctxtool rm" to move the existing context to the trash`},
		{in("replace", ctxdir.ErrShared), "add --shared to change it on all of them"},
		{problems("", "%v", path(fs.ErrNotExist)), ""},
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, ""},
		{errors.New("something else"), ""},
	}
	for _, test := range tests {
		if got := hint(test.err); got != test.want {
			t.Errorf("%v: %q, wanted %q", test.err, got, test.want)
		}
	}
}
