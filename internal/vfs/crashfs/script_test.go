package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// script runs commands on a file system and writes down what they returned, in the same words for every
// implementation. A command is one line:
//
//	open H NAME FLAGS | write H DATA | writeat H OFF DATA | read H N | readat H OFF N | trunc H SIZE
//	stat H | mtime H SECONDS | sync H | datasync H | close H
//	mkdir P | rename A B | renamenew A B | remove P | ls P | lstat P | replace P DATA | cat P | syncdir P
//	sub S P | closefs S
//
// FLAGS are letters: r w (rw both) c(reate) x(excl) t(runc) a(ppend). "@S " before a command runs it in
// folder S. A name ” is the empty one.
type script struct {
	dirs  map[string]vfs.FS
	files map[string]vfs.File
}

func newScript(fsys vfs.FS) *script {
	return &script{map[string]vfs.FS{"": fsys}, map[string]vfs.File{}}
}

func (s *script) close() {
	for _, f := range s.files {
		_ = f.Close()
	}
	for _, d := range s.dirs {
		_ = d.Close()
	}
}

func (s *script) run(lines ...string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, line+": "+s.step(line))
	}
	return out
}

func (s *script) step(line string) string {
	where := ""
	if strings.HasPrefix(line, "@") {
		where, line, _ = strings.Cut(line[1:], " ")
	}
	w := strings.Fields(line)
	for i := range w {
		if w[i] == "''" {
			w[i] = ""
		}
	}
	fsys := s.dirs[where]
	if fsys == nil {
		return "no such folder handle"
	}
	switch w[0] {
	case "write", "writeat", "read", "readat", "trunc", "stat", "mtime", "sync", "datasync", "close":
		f := s.files[w[1]]
		if f == nil {
			return "no such handle"
		}
		return fileStep(f, w)
	case "open":
		f, err := fsys.OpenFile(w[2], flags(w[3]))
		if err == nil {
			if old := s.files[w[1]]; old != nil {
				_ = old.Close()
			}
			s.files[w[1]] = f
		}
		return class(err)
	case "sub":
		sub, err := fsys.Sub(w[2])
		if err != nil {
			return "fails"
		}
		s.dirs[w[1]] = sub
		return "ok"
	case "closefs":
		return class(s.dirs[w[1]].Close())
	}
	return folderStep(fsys, w)
}

func fileStep(f vfs.File, w []string) string {
	num := func(i int) int64 { n, _ := strconv.ParseInt(w[i], 10, 64); return n }
	switch w[0] {
	case "write":
		n, err := f.Write([]byte(w[2]))
		return fmt.Sprint(n, " ", class(err))
	case "writeat":
		n, err := f.WriteAt([]byte(w[3]), num(2))
		return fmt.Sprint(n, " ", class(err))
	case "read":
		b := make([]byte, num(2))
		n, err := f.Read(b)
		return fmt.Sprintf("%q %s", b[:n], class(err))
	case "readat":
		b := make([]byte, num(3))
		n, err := f.ReadAt(b, num(2))
		return fmt.Sprintf("%q %s", b[:n], class(err))
	case "trunc":
		return class(f.Truncate(num(2)))
	case "mtime":
		return vague(f.SetModTime(time.Unix(num(2), 123456789)))
	case "sync":
		return class(f.Sync())
	case "datasync":
		return vague(f.Datasync())
	case "close":
		return class(f.Close())
	}
	info, err := f.Stat()
	return describe(info, err)
}

func folderStep(fsys vfs.FS, w []string) string {
	switch w[0] {
	case "mkdir":
		return class(fsys.Mkdir(w[1]))
	case "rename":
		return class(fsys.Rename(w[1], w[2]))
	case "renamenew":
		return class(fsys.RenameNew(w[1], w[2]))
	case "remove":
		return class(fsys.Remove(w[1]))
	case "replace":
		return vague(fsys.Replace(w[1], []byte(w[2])))
	case "syncdir":
		if info, err := fsys.Lstat(w[1]); err == nil && !info.IsDir() {
			return "not a folder" // vfs.OS syncs a file here, crashfs refuses
		}
		return class(fsys.SyncDir(w[1]))
	case "lstat":
		return describe(fsys.Lstat(w[1]))
	case "cat":
		b, err := vfs.ReadFile(fsys, w[1], 1<<20)
		if errors.Is(err, vfs.ErrNotRegular) {
			return "not regular"
		}
		return fmt.Sprintf("%q %s", b, class(err))
	case "ls":
		var names []string
		for e, err := range fsys.ReadDir(w[1]) {
			if err != nil {
				return class(err)
			}
			names = append(names, e.Type().String()+e.Name())
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	panic("unknown command " + w[0])
}

func flags(s string) int {
	f := 0
	switch {
	case strings.Contains(s, "rw"):
		f = os.O_RDWR
	case strings.Contains(s, "w"):
		f = os.O_WRONLY
	}
	for r, flag := range map[string]int{"c": os.O_CREATE, "x": os.O_EXCL, "t": os.O_TRUNC, "a": os.O_APPEND} {
		if strings.Contains(s, r) {
			f |= flag
		}
	}
	return f
}

// describe leaves out what the two implementations may differ in: the size of folders and the current time.
func describe(info fs.FileInfo, err error) string {
	if err != nil {
		return class(err)
	}
	s := fmt.Sprint(info.Name(), " ", info.Mode())
	if !info.IsDir() {
		s += fmt.Sprint(" ", info.Size())
	}
	if t := info.ModTime(); t.Year() < 2010 {
		s += fmt.Sprint(" ", t.UnixNano())
	}
	return s
}

// class names an error as callers tell errors apart.
func class(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case err == io.EOF:
		return "EOF"
	case errors.Is(err, fs.ErrClosed):
		return "closed"
	case errors.As(err, &errno):
		s := errno.Error()
		for _, e := range []error{fs.ErrExist, fs.ErrNotExist} {
			if errors.Is(err, e) {
				s += " = " + e.Error()
			}
		}
		return s
	case errors.Is(err, fs.ErrExist):
		return class(syscall.EEXIST) // an error of the seam itself
	}
	return "fails"
}

// vague is class where vfs.OS has errors that cannot be told apart.
func vague(err error) string {
	if s := class(err); s != "closed" && s != syscall.ENOTDIR.Error() {
		return s
	}
	return "fails"
}

// write makes a file, its data not synced.
func write(t *testing.T, fsys vfs.FS, name, data string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE)
	check(t, err)
	_, err = f.Write([]byte(data))
	check(t, err)
	check(t, f.Close())
}

// writeSynced makes a file, its name not synced.
func writeSynced(t *testing.T, fsys vfs.FS, name, data string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE)
	check(t, err)
	_, err = f.Write([]byte(data))
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
