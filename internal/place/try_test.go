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

// odd is a file system that does something else than it should.
type odd struct {
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

func (o *odd) OpenFile(name string, flag int) (vfs.File, error) {
	if o.create != nil {
		return nil, o.create
	}
	f, err := o.FS.OpenFile(name, flag)
	return oddFile{f, o}, err
}

func (o *odd) Lstat(name string) (fs.FileInfo, error) {
	if o.fold {
		name = strings.NewReplacer("DOCTOR", "doctor", "É", "é").Replace(name)
		name = name[:len(TemporaryStart)] + strings.ToLower(name[len(TemporaryStart):])
	}
	if o.unicode {
		name = strings.ReplaceAll(name, "e\u0301", "é")
	}
	info, err := o.FS.Lstat(name)
	return oddInfo{info, o}, err
}

func (o *odd) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
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

func (o *odd) SyncDir(name string) error { return errors.Join(o.folder, o.FS.SyncDir(name)) }
func (o *odd) SyncAll() error            { return o.all } // nothing else is to be flushed by a test
func (o *odd) Remove(name string) error  { return errors.Join(o.remove, o.FS.Remove(name)) }

func (o *odd) Lock(name string) vfs.Lock {
	if o.lock != nil {
		return o.lock(o.FS.Lock(name))
	}
	return o.FS.Lock(name)
}

type oddFile struct {
	vfs.File
	fs *odd
}

func (f oddFile) WriteAt(b []byte, off int64) (int, error) {
	if f.fs.write != nil {
		return 0, f.fs.write
	}
	return f.File.WriteAt(b, off)
}

func (f oddFile) Datasync() error { return f.fs.datasync }
func (f oddFile) SetModTime(t time.Time) error {
	return errors.Join(f.fs.modTime, f.File.SetModTime(t))
}

type oddInfo struct {
	fs.FileInfo
	fs *odd
}

func (i oddInfo) ModTime() time.Time {
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
		odd  odd
		kind Kind
		want Severity
		says string
	}{
		"read-only":            {odd{create: syscall.EROFS}, KindWrite, Warning, "not tried"},
		"not ours":             {odd{create: fs.ErrPermission}, KindWrite, Warning, "permission"},
		"full":                 {odd{write: syscall.ENOSPC}, KindWrite, Error, "cannot be written"},
		"stays":                {odd{remove: fs.ErrPermission}, KindWrite, Error, "cannot be removed"},
		"no fdatasync":         {odd{datasync: syscall.EINVAL}, KindSync, Error, "a file cannot be synced"},
		"no folder sync":       {odd{folder: syscall.EINVAL}, KindSync, Error, "a folder cannot be synced"},
		"no syncfs":            {odd{all: errors.ErrUnsupported}, KindSync, OK, "can be synced"},
		"syncfs fails":         {odd{all: syscall.EIO}, KindSync, Error, "the file system cannot be synced"},
		"slow clock":           {odd{off: -time.Hour}, KindClock, Warning, "1h0m0s off"},
		"fast clock":           {odd{off: time.Hour}, KindClock, Warning, "1h0m0s off"},
		"steps of two seconds": {odd{coarse: 2 * time.Second}, KindTimes, Warning, "1.123456s off"},
		"of two seconds now":   {odd{coarse: 2 * time.Second}, KindClock, OK, ""},
		"times cannot be set":  {odd{modTime: fs.ErrPermission}, KindTimes, Warning, "cannot be set"},
		"two hold a lock":      {odd{lock: func(l vfs.Lock) vfs.Lock { return free{l} }}, KindLock, Error, "two can hold"},
		"nobody gets a lock":   {odd{lock: func(l vfs.Lock) vfs.Lock { return refusing{l} }}, KindLock, Error, "cannot be taken: somebody"},
		"no locks":             {odd{lock: func(l vfs.Lock) vfs.Lock { return failing{l} }}, KindLock, Error, "no locks available"},
		"case":                 {odd{fold: true}, KindNames, Info, "the same in upper and lower case;"},
		"Unicode":              {odd{unicode: true}, KindNames, Info, "the same in any Unicode form;"},
		"both":                 {odd{fold: true, unicode: true}, KindNames, Info, "lower case and in any"},
		"respelled":            {odd{respell: true}, KindNames, Warning, "comes back as"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			under, err := vfs.OS(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer under.Close()
			test.odd.FS = under
			found := try(&test.odd)
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
