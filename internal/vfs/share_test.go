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

// TestShareSyncsFails: when a shared sync fails, each caller that waited for it makes its own, which tells it of its file.
// Nothing is shared from then on.
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
			t.Errorf("%d calls failed, wanted the 4 whose files the sync lost", failed)
		}
		delete(d.fail, crashfs.KindSyncAll)
		d.made = nil
		if err := errors.Join(together(t, fsys, 5, vfs.File.Datasync)...); err != nil {
			t.Errorf("files that were opened after the failure: %v", err)
		}
		if slices.Contains(d.made, crashfs.KindSyncAll) {
			t.Errorf("a sync was shared after a failure: %v", d.made)
		}
		d.fail[crashfs.KindDatasync] = syscall.EIO
		fsys = vfs.ShareSyncs(d.FS)
		if err := together(t, fsys, 1, vfs.File.Datasync)[0]; !errors.Is(err, syscall.EIO) {
			t.Errorf("alone: %v", err)
		}
		delete(d.fail, crashfs.KindDatasync)
		if err := fsys.SyncDir("."); err != nil {
			t.Errorf("after the failure of another call: %v", err)
		}
	})
}

// TestShareSyncsToldOthers: the system may tell another caller of SyncAll that it lost what one of these wrote. That one
// is told, and only that one.
func TestShareSyncsToldOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		fsys := vfs.ShareSyncs(d.FS)
		var written sync.WaitGroup
		written.Add(5)
		told := make(chan struct{})
		go func() {
			written.Wait()
			if err := errors.Join(d.FailWriteback("c"), d.SyncAll()); err == nil {
				t.Error("SyncAll succeeded")
			}
			close(told)
		}()
		errs := together(t, fsys, 5, func(f vfs.File) error {
			written.Done()
			<-told
			return f.Datasync()
		})
		for i, err := range errs {
			if errors.Is(err, syscall.EIO) != (i == 2) {
				t.Errorf("file %c: %v", 'a'+i, err)
			}
		}
	})
}

// TestShareSyncsEarlier: a failure from before the sharing concerns none of its files, though the system tells its first
// SyncAll.
func TestShareSyncsEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		file, err := d.OpenFile("before", os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := d.FailWriteback("before"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(together(t, vfs.ShareSyncs(d.FS), 5, vfs.File.Datasync)...); err != nil {
			t.Error(err)
		}
		if !slices.Contains(d.made, crashfs.KindSyncAll) {
			t.Errorf("nothing was shared: %v", d.made)
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
