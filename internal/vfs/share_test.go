package vfs_test

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// slowDisk is a disk whose syncs take a second, and the kinds of those it made.
type slowDisk struct {
	*crashfs.FS
	mu   sync.Mutex
	made []crashfs.Kind
	fail map[crashfs.Kind]error
}

func newSlowDisk() *slowDisk {
	d := &slowDisk{FS: crashfs.New(), fail: map[crashfs.Kind]error{}}
	d.Fail(func(o crashfs.Op) error {
		switch o.Kind {
		case crashfs.KindSync, crashfs.KindDatasync, crashfs.KindSyncDir, crashfs.KindSyncAll:
			time.Sleep(time.Second)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.made = append(d.made, o.Kind)
			return d.fail[o.Kind]
		}
		return nil
	})
	return d
}

// together runs f for n files at the same time, each in its own goroutine, and returns its errors.
func together(t *testing.T, fsys vfs.FS, n int, f func(vfs.File) error) []error {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			file, err := fsys.OpenFile(string(rune('a'+i)), os.O_RDWR|os.O_CREATE)
			if err == nil {
				_, err = file.Write([]byte("x"))
			}
			if err == nil {
				err = errors.Join(f(file), file.Close())
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errs
}

// TestShareSyncs: the first of nine callers syncs its own file at once; the others, which ask meanwhile, share one sync,
// after which a power cut takes none of their files.
func TestShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		fsys := vfs.ShareSyncs(d.FS)
		if err := errors.Join(together(t, fsys, 9, vfs.File.Datasync)...); err != nil {
			t.Fatal(err)
		}
		if want := []crashfs.Kind{crashfs.KindDatasync, crashfs.KindSyncAll}; !slices.Equal(d.made, want) {
			t.Errorf("the disk made %v, wanted %v", d.made, want)
		}
	})
}

// TestShareSyncsBegins: a sync covers only what was written before it began, so a caller never takes part in the running
// one.
func TestShareSyncsBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		fsys := vfs.ShareSyncs(d.FS)
		var ends []time.Duration
		var mu sync.Mutex
		began := time.Now()
		together(t, fsys, 3, func(f vfs.File) error {
			info, err := f.Stat()
			if err != nil {
				return err
			}
			time.Sleep(time.Duration(info.Name()[0]-'a') * 600 * time.Millisecond) // asks at 0, 0.6 and 1.2 s
			err = f.Sync()
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Since(began))
			return err
		})
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(ends, want) {
			t.Errorf("the syncs ended after %v, wanted %v", ends, want)
		}
	})
}

// TestShareSyncsFails: a shared sync that fails fails for all that wait for it, and every later call fails: the system
// has told nobody whose write it was. A call that failed alone says nothing about the others.
func TestShareSyncsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		fsys := vfs.ShareSyncs(d.FS)
		d.fail[crashfs.KindSyncAll] = syscall.EIO
		failed := 0
		for _, err := range together(t, fsys, 5, vfs.File.Datasync) {
			if errors.Is(err, syscall.EIO) {
				failed++
			}
		}
		if failed != 4 {
			t.Errorf("%d calls failed, wanted the 4 that shared a sync", failed)
		}
		delete(d.fail, crashfs.KindSyncAll)
		if err := fsys.SyncDir("."); !errors.Is(err, syscall.EIO) {
			t.Errorf("after a failure: %v", err)
		}
		fsys = vfs.ShareSyncs(d.FS)
		d.fail[crashfs.KindDatasync] = syscall.EIO
		if err := together(t, fsys, 1, vfs.File.Datasync)[0]; !errors.Is(err, syscall.EIO) {
			t.Errorf("alone: %v", err)
		}
		delete(d.fail, crashfs.KindDatasync)
		if err := fsys.SyncDir("."); err != nil {
			t.Errorf("after the failure of another call: %v", err)
		}
	})
}

// TestShareSyncsToldOthers: a failure that the system has reported to another caller of SyncAll may be about a file of
// these.
func TestShareSyncsToldOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		fsys := vfs.ShareSyncs(d.FS)
		d.fail[crashfs.KindSyncAll] = syscall.EIO
		if err := d.SyncAll(); err == nil {
			t.Fatal("SyncAll succeeded")
		}
		delete(d.fail, crashfs.KindSyncAll)
		failed := 0
		for _, err := range together(t, fsys, 5, vfs.File.Datasync) {
			if err != nil {
				failed++
			}
		}
		if failed != 4 {
			t.Errorf("%d calls failed, wanted 4", failed)
		}
	})
}

// TestShareSyncsUnsupported: without SyncAll each caller syncs its own.
func TestShareSyncsUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		d.fail[crashfs.KindSyncAll] = errors.ErrUnsupported
		if err := errors.Join(together(t, vfs.ShareSyncs(d.FS), 5, vfs.File.Datasync)...); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, kind := range d.made {
			if kind == crashfs.KindDatasync {
				n++
			}
		}
		if n != 5 {
			t.Errorf("%d files were synced, wanted 5: %v", n, d.made)
		}
	})
}

// TestShareSyncsReplace: a file that was replaced through a shared FS is whole after a power cut, under one name or the
// other.
func TestShareSyncsReplace(t *testing.T) {
	disk := crashfs.New()
	fsys := vfs.ShareSyncs(disk)
	for _, content := range []string{"old", "new"} {
		if err := errors.Join(fsys.Replace("a", []byte(content)), fsys.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := vfs.ReadFile(fsys, "a", 10); string(b) != "new" || err != nil {
		t.Errorf("it reads %q, %v", b, err)
	}
	entries := 0
	for _, err := range fsys.ReadDir(".") {
		if entries++; err != nil {
			t.Fatal(err)
		}
	}
	if entries != 1 {
		t.Errorf("%d files are left, wanted 1", entries)
	}
}
