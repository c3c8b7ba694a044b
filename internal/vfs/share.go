package vfs

import (
	"io/fs"
	"path"
	"sync"
	"time"
)

// ShareSyncs returns fsys for several goroutines that each make other files durable. Calls of [File.Sync],
// [File.Datasync], [FS.SyncDir] and [FS.SyncAll] that wait at the same time share one SyncAll. The caller that asks
// while no sync runs begins one at once; those that ask meanwhile share the next one. A call that waits alone makes its
// own sync. Each call returns only when what it asked for is durable, so no caller has to know of the others.
//
// SyncAll reports a failed write to one caller only, whichever file it is about, and however long ago it was; the sync
// of a file reports what failed since it was opened. So with the first failure of a SyncAll, or where there is none, the
// sharing ends: those that waited for it and all later callers make their own syncs, which tell each what it has to
// know. None of these is a second sync of its file. Use only files that were opened through the returned FS. Closing it
// closes fsys.
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
	next    *sharedSync // the sync that starts when the running one has ended; nil if no caller waits for it
	over    bool        // each caller syncs by itself, from now on
}

// sharedSync is one sync and those who wait for it.
type sharedSync struct {
	callers int
	ended   bool
	covers  bool // what all callers asked for is durable
}

// sync returns when a sync that began after the call has ended. own syncs only what the caller needs.
func (s *syncShare) sync(own func() error) error {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return own()
	}
	if r := s.next; r != nil {
		for r.callers++; !r.ended; {
			s.ended.Wait()
		}
		s.mu.Unlock()
		if r.covers {
			return nil
		}
		return own()
	}
	return s.lead(own)
}

// lead makes the next sync, for its caller and those who join it meanwhile. The caller holds s.mu; lead releases it.
func (s *syncShare) lead(own func() error) error {
	r := &sharedSync{callers: 1}
	s.next = r
	for s.running {
		s.ended.Wait()
	}
	s.running, s.next = true, nil
	share := r.callers > 1 && !s.over
	s.mu.Unlock()
	var err error
	if share {
		r.covers = s.all.SyncAll() == nil && s.all.SyncFailures() == s.failures
	} else {
		err = own()
	}
	s.mu.Lock()
	s.running, r.ended = false, true
	s.over = s.over || share && !r.covers
	s.ended.Broadcast()
	s.mu.Unlock()
	if share && !r.covers {
		err = own()
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

func (f sharedFS) HasViews() bool { return HasViews(f.FS) }

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

func (f sharedFS) lstatIn(folder string, names []string) ([]fs.FileInfo, error) {
	return LstatIn(f.FS, folder, names...)
}

func (f sharedFS) statNumber(path string) (fs.FileInfo, error) { return statNumber(f.FS, path) }

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
