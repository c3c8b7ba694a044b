// Package floor does with bare system calls what an engine cannot do without: no goal can be below it. It takes no
// lock, keeps no index, checks nothing, and would not survive a crash in good order.
package floor

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/bench/machine"
	"golang.org/x/sys/unix"
)

// Appender writes records to a file whose space was laid out beforehand, as a log's is, so that fdatasync has
// no metadata to flush.
type Appender struct {
	log     *os.File
	folder  *os.File
	at, end int64
	files   bool
}

// NewAppender makes an appender in a new folder. With files, each record is also made a file, by a temporary
// name and a rename, not synced.
func NewAppender(dir string, files bool) (*Appender, error) {
	messages := filepath.Join(dir, "messages")
	if err := os.MkdirAll(messages, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(messages)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		folder.Close()
		return nil, err
	}
	return &Appender{log: log, folder: folder, files: files}, nil
}

// Lay lays out space for the records to come, in bytes, durably.
func (a *Appender) Lay(space int64) error {
	blank := make([]byte, 1<<20)
	for i := range blank {
		blank[i] = '\n'
	}
	for a.end < a.at+space {
		n, err := a.log.WriteAt(blank, a.end)
		a.end += int64(n)
		if err != nil {
			return err
		}
	}
	return a.log.Sync()
}

// Append is pwrite and fdatasync, and then open, write, close and rename.
func (a *Appender) Append(name string, record []byte) error {
	n, err := unix.Pwrite(int(a.log.Fd()), record, a.at)
	a.at += int64(n)
	if err == nil {
		err = machine.Datasync(a.log)
	}
	if err != nil || !a.files {
		return err
	}
	return a.Create(name, record)
}

// Create makes a file alone: open, write, close and rename.
func (a *Appender) Create(name string, data []byte) error {
	return create(int(a.folder.Fd()), name, data)
}

// Batch is pwrite of all records and one fdatasync, and then their files, by so many at once.
func (a *Appender) Batch(names []string, records [][]byte, atOnce int) error {
	var all []byte
	for _, r := range records {
		all = append(all, r...)
	}
	n, err := unix.Pwrite(int(a.log.Fd()), all, a.at)
	a.at += int64(n)
	if err == nil {
		err = machine.Datasync(a.log)
	}
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(records) {
					return
				}
				if err := a.Create(names[i], records[i]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close closes the files.
func (a *Appender) Close() error {
	a.folder.Close()
	return a.log.Close()
}

func create(folder int, name string, data []byte) error {
	tmp := "." + name + ".tmp"
	fd, err := unix.Openat(folder, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", tmp, err)
	}
	_, err = unix.Write(fd, data)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(folder, tmp, folder, name)
	}
	return err
}

// Read reads a file whole into buf, which it grows as needed: open, read until the end, close.
func Read(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buf = buf[:cap(buf)]
	for n := 0; ; {
		if n == len(buf) {
			buf = append(buf, make([]byte, max(len(buf), 64<<10))...)
		}
		k, err := unix.Pread(fd, buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if k == 0 {
			return buf[:n], nil
		}
		n += k
	}
}

// List reads the names in a folder: open, getdents until the end, close. A folder that does not exist has none.
func List(path string, buf []byte) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil && err != unix.EINTR {
			return &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 && err == nil {
			return nil
		}
	}
}
