package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"
)

// ShareSyncs returns fsys for several goroutines that each make other files durable. Calls of [File.Sync],
// [File.Datasync], [FS.SyncDir] and [FS.SyncAll] that wait at the same time share one SyncAll. The caller that asks while no sync
// runs begins one at once; those that ask meanwhile share the next one. A call that waits alone, or on a system without
// SyncAll, makes its own sync. Each call returns only when what it asked for is durable, so no caller has to know of the
// others.
//
// SyncAll reports a failed write to one caller only, whichever file it is about. So after a failure every later call
// fails: another caller may have written the file. Use only files that were opened through the returned FS: a failure
// from before they were opened is not reported to them. Closing the returned FS closes fsys.
func ShareSyncs(fsys FS) FS {
	s := &syncShare{all: fsys, failures: fsys.SyncFailures()}
	s.ended = sync.NewCond(&s.mu)
	return sharedFS{fsys, s}
}

// syncShare runs the syncs of the callers of one shared FS.
type syncShare struct {
	all      FS
	failures uint64 // of all, when the sharing began

	mu      sync.Mutex
	ended   *sync.Cond // signals the end of a sync
	running bool
	next    *sharedSync // that which begins when the running one has ended; nil if nobody waits for it
	failed  error       // stays
}

// sharedSync is one sync and those who wait for it.
type sharedSync struct {
	callers int
	ended   bool
	err     error
}

// sync returns when a sync that began after the call has ended. own syncs only what the caller needs.
func (s *syncShare) sync(own func() error) error {
	err := s.await(own)
	if errors.Is(err, errors.ErrUnsupported) {
		return own()
	}
	return err
}

func (s *syncShare) await(own func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.next
	if r != nil {
		r.callers++
		for !r.ended {
			s.ended.Wait()
		}
		return r.err
	}
	r = &sharedSync{callers: 1}
	s.next = r
	for s.running {
		s.ended.Wait()
	}
	if r.err = s.failed; r.err == nil {
		s.running, s.next = true, nil
		alone := r.callers == 1
		s.mu.Unlock()
		r.err = s.run(alone, own)
		s.mu.Lock()
		s.running = false
		if !alone && r.err != nil && !errors.Is(r.err, errors.ErrUnsupported) {
			s.failed = r.err
		}
	} else {
		s.next = nil
	}
	r.ended = true
	s.ended.Broadcast()
	return r.err
}

func (s *syncShare) run(alone bool, own func() error) error {
	if alone {
		return own()
	}
	err := s.all.SyncAll()
	if err == nil && s.all.SyncFailures() != s.failures {
		err = errors.New("an earlier sync of the file system failed")
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("shared sync: %w", err)
	}
	return err
}

// sharedFS is a folder whose syncs go through a syncShare.
type sharedFS struct {
	FS
	share *syncShare
}

func (f sharedFS) OpenFile(name string, flag int) (File, error) {
	file, err := f.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return sharedFile{file, f.share}, nil
}

func (f sharedFS) Replace(name string, data []byte) error {
	tmp := path.Join(path.Dir(name), TemporaryName(path.Base(name)))
	err := writeNew(f, tmp, data, func(file File) error {
		_ = file.SetModTime(time.Now()) // see replaceIn
		return file.Sync()
	})
	if err == nil {
		err = f.Rename(tmp, name)
	}
	if err != nil {
		_ = f.Remove(tmp)
	}
	return err
}

func (f sharedFS) SyncDir(name string) error {
	return f.share.sync(func() error { return f.FS.SyncDir(name) })
}

func (f sharedFS) SyncAll() error { return f.share.sync(f.FS.SyncAll) }

func (f sharedFS) Sub(name string) (FS, error) {
	sub, err := f.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return sharedFS{sub, f.share}, nil
}

// The optional interfaces of the FS.

func (f sharedFS) subStat(name string) (FS, fs.FileInfo, error) {
	sub, info, err := SubStat(f.FS, name)
	if err != nil {
		return nil, nil, err
	}
	return sharedFS{sub, f.share}, info, nil
}

func (f sharedFS) createFile(name string, data []byte, at time.Time) error {
	return CreateFile(f.FS, name, data, at)
}

func (f sharedFS) createWhole(name string, data []byte, at time.Time) error {
	return CreateWhole(f.FS, name, data, at)
}

func (f sharedFS) loadFile(name string, size int64) ([]byte, error) {
	return LoadFile(f.FS, name, size)
}

func (f sharedFS) readFile(name string, limit int64) ([]byte, fs.FileInfo, error) {
	return ReadStat(f.FS, name, limit)
}

func (f sharedFS) loadFiles(n int, file func(i int) (name string, size int64), loaded func(i int, b []byte)) {
	LoadFiles(f.FS, n, file, loaded)
}

func (f sharedFS) readRegular(name string, limit int64) ([]byte, error) {
	return ReadRegular(f.FS, name, limit)
}

func (f sharedFS) lstatNumbers(names []string) ([]fs.FileInfo, error) {
	return LstatNumbers(f.FS, names...)
}

func (f sharedFS) lstatIn(folder string, names []string) ([]fs.FileInfo, error) {
	return LstatIn(f.FS, folder, names...)
}

func (f sharedFS) statPath(name string) (fs.FileInfo, error) {
	if s, ok := f.FS.(interface {
		statPath(path string) (fs.FileInfo, error)
	}); ok {
		return s.statPath(name)
	}
	return f.Lstat(name)
}

// sharedFile is a file whose syncs go through a syncShare.
type sharedFile struct {
	File
	share *syncShare
}

func (f sharedFile) Sync() error     { return f.share.sync(f.File.Sync) }
func (f sharedFile) Datasync() error { return f.share.sync(f.File.Datasync) }

func (f sharedFile) size() (int64, error) { return Size(f.File) }

func (f sharedFile) data(off, size int64) (from, to int64, err error) {
	if h, ok := f.File.(holeFinder); ok {
		return h.data(off, size)
	}
	return off, size, nil
}
