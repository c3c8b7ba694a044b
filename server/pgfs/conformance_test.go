package pgfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"pgregory.net/rapid"
)

// pair runs each operation on the database and on a real folder.
type pair struct {
	t     *rapid.T
	disk  *disk
	at    [2]vfs.FS
	files []*[2]vfs.File
}

var kinds = []error{fs.ErrExist, fs.ErrNotExist, fs.ErrClosed, io.EOF, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EINVAL}

func kind(err error) string {
	if err == nil {
		return "nil"
	}
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k.Error()
		}
	}
	return "another error"
}

// both runs an operation on each file system and compares what it says.
func (p *pair) both(what string, run func(i int) (string, error)) bool {
	var said [2]string
	var errs [2]error
	for i := range said {
		s, err := run(i)
		errs[i] = err
		said[i] = s + " " + kind(err)
	}
	p.t.Logf("%s: %.80q", what, said[0])
	if said[0] != said[1] {
		p.t.Fatalf("%s: the database says %.300q (%v), the folder %.300q (%v)", what, said[0], errs[0], said[1], errs[1])
	}
	return errs[0] == nil
}

func (p *pair) name() string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(p.t, "name"), "/")
}

func (p *pair) file() *[2]vfs.File {
	if len(p.files) == 0 {
		p.t.Skip("no file is open")
	}
	return rapid.SampledFrom(p.files).Draw(p.t, "file")
}

func (p *pair) bytes() []byte {
	n := rapid.SampledFrom([]int{0, 1, 700, 5000, 70_000, 1_100_000}).Draw(p.t, "bytes")
	if rapid.Bool().Draw(p.t, "blank") {
		return bytes.Repeat([]byte{'\n'}, n)
	}
	b := make([]byte, n)
	seed := rapid.Byte().Draw(p.t, "seed")
	for i := range b {
		b[i] = byte(i/3) ^ seed
	}
	return b
}

func (p *pair) offset() int64 {
	return rapid.SampledFrom([]int64{0, 1, 600, 4096, 65_536, 69_000, 200_000}).Draw(p.t, "offset")
}

func (p *pair) open(name string, flag int) {
	var f [2]vfs.File
	if p.both(fmt.Sprintf("open %s %x", name, flag), func(i int) (string, error) {
		h, err := p.at[i].OpenFile(name, flag)
		f[i] = h
		return "", err
	}) {
		if info, err := f[1].Stat(); err == nil && info.IsDir() {
			p.both("close", func(i int) (string, error) { return "", f[i].Close() })
			return
		}
		p.files = append(p.files, &f)
	}
}

func (p *pair) operations() map[string]func(*rapid.T) {
	names := func(op string, run func(f vfs.FS, name string) (string, error)) func(*rapid.T) {
		return func(*rapid.T) {
			name := p.name()
			p.both(op+" "+name, func(i int) (string, error) { return run(p.at[i], name) })
		}
	}
	move := func(op string, run func(f vfs.FS, from, to string) error) func(*rapid.T) {
		return func(*rapid.T) {
			from, to := p.name(), p.name()
			p.both(op+" "+from+" "+to, func(i int) (string, error) { return "", run(p.at[i], from, to) })
		}
	}
	files := func(op string, run func(f vfs.File) (string, error)) func(*rapid.T) {
		return func(*rapid.T) {
			f := p.file()
			p.both(op, func(i int) (string, error) { return run(f[i]) })
		}
	}
	return map[string]func(*rapid.T){
		"open": func(*rapid.T) {
			flags := []int{os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL,
				os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND | os.O_CREATE}
			p.open(p.name(), rapid.SampledFrom(flags).Draw(p.t, "flag"))
		},
		"create":    func(*rapid.T) { p.open(p.name(), os.O_RDWR|os.O_CREATE) },
		"mkdir":     names("mkdir", func(f vfs.FS, name string) (string, error) { return "", f.Mkdir(name) }),
		"remove":    names("remove", func(f vfs.FS, name string) (string, error) { return "", f.Remove(name) }),
		"lstat":     names("lstat", stat),
		"readdir":   names("readdir", list),
		"syncdir":   names("syncdir", func(f vfs.FS, name string) (string, error) { return "", f.SyncDir(name) }),
		"rename":    move("rename", vfs.FS.Rename),
		"renamenew": move("renamenew", vfs.FS.RenameNew),
		"replace": func(*rapid.T) {
			name, b := p.name(), p.bytes()
			p.both("replace "+name, func(i int) (string, error) { return "", p.at[i].Replace(name, b) })
		},
		"sync":     files("sync", func(f vfs.File) (string, error) { return "", f.Sync() }),
		"datasync": files("datasync", func(f vfs.File) (string, error) { return "", f.Datasync() }),
		"read": func(*rapid.T) {
			f, b := p.file(), make([]byte, rapid.SampledFrom([]int{1, 900, 80_000}).Draw(p.t, "length"))
			p.both("read", func(i int) (string, error) { n, err := f[i].Read(b); return string(b[:n]), err })
		},
		"readat": func(*rapid.T) {
			f, off, b := p.file(), p.offset(), make([]byte, rapid.SampledFrom([]int{1, 900, 80_000}).Draw(p.t, "length"))
			p.both("readat", func(i int) (string, error) { n, err := f[i].ReadAt(b, off); return string(b[:n]), err })
		},
		"write": func(*rapid.T) {
			f, b := p.file(), p.bytes()
			p.both("write", func(i int) (string, error) { n, err := f[i].Write(b); return fmt.Sprint(n), err })
		},
		"writeat": func(*rapid.T) {
			f, off, b := p.file(), p.offset(), p.bytes()
			p.both("writeat", func(i int) (string, error) { n, err := f[i].WriteAt(b, off); return fmt.Sprint(n), err })
		},
		"truncate": func(*rapid.T) {
			f, size := p.file(), p.offset()
			p.both("truncate", func(i int) (string, error) { return "", f[i].Truncate(size) })
		},
		"close": func(*rapid.T) {
			f := p.file()
			p.both("close", func(i int) (string, error) { return "", f[i].Close() })
			p.files = slices.DeleteFunc(p.files, func(o *[2]vfs.File) bool { return o == f })
		},
		"reopen": func(*rapid.T) { p.reopen() },
		"":       func(*rapid.T) { p.compare(".") },
	}
}

func stat(f vfs.FS, name string) (string, error) {
	info, err := f.Lstat(name)
	if err != nil {
		return "", err
	}
	size := info.Size()
	if info.IsDir() {
		size = 0
	}
	return fmt.Sprint(info.Name(), size, info.Mode()), nil
}

func list(f vfs.FS, name string) (string, error) {
	var names []string
	for e, err := range f.ReadDir(name) {
		if err != nil {
			return "", err
		}
		names = append(names, fmt.Sprint(e.Name(), e.IsDir()))
	}
	slices.Sort(names)
	return strings.Join(names, " "), nil
}

// compare reads both trees.
func (p *pair) compare(dir string) {
	p.both("readdir "+dir, func(i int) (string, error) { return list(p.at[i], dir) })
	for e := range p.at[1].ReadDir(dir) {
		name := dir + "/" + e.Name()
		p.both("lstat "+name, func(i int) (string, error) { return stat(p.at[i], name) })
		if e.IsDir() {
			p.compare(name)
			continue
		}
		p.both("content of "+name, func(i int) (string, error) {
			f, err := p.at[i].OpenFile(name, os.O_RDONLY)
			if err != nil {
				return "", err
			}
			defer f.Close()
			b, err := io.ReadAll(f) // vfs.ReadFile refuses holes, which only a folder has
			return string(b), err
		})
	}
}

// reopen takes the user over from itself: all that was not written is written first.
func (p *pair) reopen() {
	for _, f := range p.files {
		p.both("close", func(i int) (string, error) { return "", f[i].Close() })
	}
	p.files = nil
	if err := p.at[0].Close(); err != nil {
		p.t.Fatal(err)
	}
	p.at[0] = p.disk.open()
	p.compare(".")
}

// TestLikeFolder runs the same operations on a database and on a folder.
func TestLikeFolder(t *testing.T) {
	newDisk := anyBucket(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		check(t, err)
		real, err := vfs.OS(dir)
		check(t, err)
		d := newDisk(rt)
		p := &pair{t: rt, disk: d, at: [2]vfs.FS{d.open(), real}}
		rt.Repeat(p.operations())
		p.reopen()
		if len(d.damages) > 0 {
			rt.Fatal(d.damages)
		}
		_ = real.Close()
	})
}
