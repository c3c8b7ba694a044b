package place

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// faultyFS is a file system that does something else than it should.
type faultyFS struct {
	vfs.FS
	create   error
	write    error
	datasync error
	folder   error
	all      error
	remove   error
	modTime  error
	off      time.Duration // of a new file's time
	coarse   time.Duration // in what steps times are kept
	fold     bool          // names of other case are found
	unicode  bool          // names of other form are found
	respell  bool          // names come back in another form
	lock     func(vfs.Lock) vfs.Lock
}

func (o *faultyFS) OpenFile(name string, flag int) (vfs.File, error) {
	if o.create != nil {
		return nil, o.create
	}
	f, err := o.FS.OpenFile(name, flag)
	return faultyFile{f, o}, err
}

func (o *faultyFS) Lstat(name string) (fs.FileInfo, error) {
	if o.fold {
		name = strings.NewReplacer("DOCTOR", "doctor", "É", "é").Replace(name)
		name = name[:len(TemporaryStart)] + strings.ToLower(name[len(TemporaryStart):])
	}
	if o.unicode {
		name = strings.ReplaceAll(name, "e\u0301", "é")
	}
	info, err := o.FS.Lstat(name)
	return faultyInfo{info, o}, err
}

func (o *faultyFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		for e, err := range o.FS.ReadDir(name) {
			if o.respell && err == nil {
				e = respelled{e}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (o *faultyFS) SyncDir(name string) error { return errors.Join(o.folder, o.FS.SyncDir(name)) }
func (o *faultyFS) SyncAll() error            { return o.all } // nothing else is to be flushed by a test
func (o *faultyFS) Remove(name string) error  { return errors.Join(o.remove, o.FS.Remove(name)) }

func (o *faultyFS) Lock(name string) vfs.Lock {
	if o.lock != nil {
		return o.lock(o.FS.Lock(name))
	}
	return o.FS.Lock(name)
}

type faultyFile struct {
	vfs.File
	fs *faultyFS
}

func (f faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if f.fs.write != nil {
		return 0, f.fs.write
	}
	return f.File.WriteAt(b, off)
}

func (f faultyFile) Datasync() error { return f.fs.datasync }
func (f faultyFile) SetModTime(t time.Time) error {
	return errors.Join(f.fs.modTime, f.File.SetModTime(t))
}

type faultyInfo struct {
	fs.FileInfo
	fs *faultyFS
}

func (i faultyInfo) ModTime() time.Time {
	at := i.FileInfo.ModTime().Add(i.fs.off)
	if i.fs.coarse > 0 {
		at = at.Truncate(i.fs.coarse)
	}
	return at
}

type respelled struct{ fs.DirEntry }

func (e respelled) Name() string { return strings.ReplaceAll(e.DirEntry.Name(), "é", "e\u0301") }

// free is a lock that everybody gets, refusing one that nobody gets.
type (
	free     struct{ vfs.Lock }
	refusing struct{ vfs.Lock }
	failing  struct{ vfs.Lock }
)

func (free) TryAcquire() (bool, error)     { return true, nil }
func (free) Release() error                { return nil }
func (refusing) TryAcquire() (bool, error) { return false, nil }
func (failing) TryAcquire() (bool, error)  { return false, syscall.ENOLCK }

func TestTry(t *testing.T) {
	for name, test := range map[string]struct {
		fs   faultyFS
		kind Kind
		want Severity
		says string
	}{
		"read-only":            {faultyFS{create: syscall.EROFS}, KindWrite, Warning, "not checked"},
		"not ours":             {faultyFS{create: fs.ErrPermission}, KindWrite, Warning, "permission"},
		"full":                 {faultyFS{write: syscall.ENOSPC}, KindWrite, Error, "cannot write"},
		"stays":                {faultyFS{remove: fs.ErrPermission}, KindWrite, Error, "cannot remove"},
		"no fdatasync":         {faultyFS{datasync: syscall.EINVAL}, KindSync, Error, "cannot sync a file"},
		"no folder sync":       {faultyFS{folder: syscall.EINVAL}, KindSync, Error, "cannot sync a folder"},
		"no syncfs":            {faultyFS{all: errors.ErrUnsupported}, KindSync, OK, "can be synced"},
		"syncfs fails":         {faultyFS{all: syscall.EIO}, KindSync, Error, "cannot sync the file system"},
		"slow clock":           {faultyFS{off: -time.Hour}, KindClock, Warning, "1h0m0s off"},
		"fast clock":           {faultyFS{off: time.Hour}, KindClock, Warning, "1h0m0s off"},
		"steps of two seconds": {faultyFS{coarse: 2 * time.Second}, KindTimes, Warning, "1.123456s off"},
		"of two seconds now":   {faultyFS{coarse: 2 * time.Second}, KindClock, OK, ""},
		"times cannot be set":  {faultyFS{modTime: fs.ErrPermission}, KindTimes, Warning, "cannot set"},
		"two hold a lock":      {faultyFS{lock: func(l vfs.Lock) vfs.Lock { return free{l} }}, KindLock, Error, "two handles can hold"},
		"nobody gets a lock": {faultyFS{lock: func(l vfs.Lock) vfs.Lock { return refusing{l} }}, KindLock, Error,
			"cannot acquire a lock: another process"},
		"no locks":  {faultyFS{lock: func(l vfs.Lock) vfs.Lock { return failing{l} }}, KindLock, Error, "no locks available"},
		"case":      {faultyFS{fold: true}, KindNames, Info, "the same in upper and lower case;"},
		"Unicode":   {faultyFS{unicode: true}, KindNames, Info, "the same in any Unicode form;"},
		"both":      {faultyFS{fold: true, unicode: true}, KindNames, Info, "lower case and in any"},
		"respelled": {faultyFS{respell: true}, KindNames, Warning, "stores "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			under, err := vfs.OS(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer under.Close()
			test.fs.FS = under
			found := try(&test.fs)
			if x := worst(found, test.kind); x.Severity != test.want || !strings.Contains(x.Detail, test.says) {
				t.Errorf("%+v, wanted %q with %q", x, test.want, test.says)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestTryHere tries a real folder: whatever it can do, nothing stays.
func TestTryHere(t *testing.T) {
	dir := t.TempDir()
	found := Try(dir)
	for _, kind := range []Kind{KindWrite, KindSync, KindClock, KindTimes, KindLock, KindNames} {
		if worst(found, kind).Severity == "" {
			t.Errorf("nothing about %s", kind)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if found := Try(dir + "/none"); len(found) != 1 || found[0].Kind != KindWrite || found[0].Severity != Warning {
		t.Errorf("%+v", found)
	}
}
