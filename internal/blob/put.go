package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Put stores a payload and returns its name, and whether it was new. The blob is durable on return.
//
// Put reads and compares an existing blob, touches it, and syncs it too: its writer may not have synced it yet. It
// replaces a damaged one.
func (s *Store) Put(payload []byte) (sum Sum, created bool, err error) {
	sum = SumOf(payload)
	if there, err := s.Share(sum, true); there || err != nil {
		return sum, false, err
	}
	return sum, true, s.write(sum, payload)
}

// Rewrite is Put that trusts no existing file and always writes a new one. Use it after a failed sync: the kernel may
// have dropped unwritten data that reads still show.
func (s *Store) Rewrite(payload []byte) (Sum, error) {
	sum := SumOf(payload)
	return sum, s.write(sum, payload)
}

// PutUnsynced is Put without any sync, for callers that have the payload in a log and sync the whole store later. A
// crash may leave the blob damaged or missing; the caller must then put it again. PutUnsynced never replaces an intact
// blob, which other messages may already rely on.
func (s *Store) PutUnsynced(payload []byte) (sum Sum, created bool, err error) {
	sum = SumOf(payload)
	for range 3 {
		if there, err := s.Share(sum, false); there || err != nil {
			return sum, false, err
		}
		if _, err = s.fs.Lstat(Path(sum)); err == nil {
			// The blob is damaged. Only a rename can replace it, and by then another writer may have put a durable blob
			// there. So the replacement must be durable as well.
			return sum, true, s.write(sum, payload)
		}
		if err = s.writeUnsynced(sum, payload); !errors.Is(err, fs.ErrExist) {
			return sum, err == nil, err
		}
		// Another writer was faster.
	}
	return sum, false, err
}

// Share reports whether a blob exists intact, by reading it, and touches it. In doubt it returns false, and the caller
// writes a new file. With durable it syncs the blob and the names that lead to it.
func (s *Store) Share(sum Sum, durable bool) (bool, error) {
	f, _, err := s.open(sum, os.O_RDWR)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	// Touch first, so that a sweep learns as early as possible that the blob is wanted.
	if err := f.SetModTime(time.Now()); err != nil {
		return false, nil
	}
	// A crash can leave a file of the right size with a hole in it, so size alone proves nothing.
	if err := verify(f, sum); err != nil {
		return false, nil
	}
	if !durable {
		return true, nil
	}
	// Never retry a failed sync on this file: the caller writes a new one.
	if err := f.Sync(); err != nil {
		return false, nil
	}
	if err := s.makeDurableFolders(sum); err != nil {
		return false, err
	}
	return true, s.fs.SyncDir(leaf(sum))
}

// write puts a durable file in the place of a blob, whatever exists there.
func (s *Store) write(sum Sum, payload []byte) error {
	if err := s.makeDurableFolders(sum); err != nil {
		return err
	}
	tmp := temporary(leaf(sum))
	if err := s.writeFile(tmp, payload, true); err != nil {
		return err
	}
	return s.settle(tmp, sum)
}

// settle gives a synced temporary file its name, durably. After an error it leaves nothing.
func (s *Store) settle(tmp string, sum Sum) error {
	err := s.install(tmp, sum)
	if err != nil {
		_ = s.fs.Remove(tmp)
	}
	return err
}

// install moves a synced file to the place of a blob, durably.
//
// Crash order: the content is durable before it gets its name, so a surviving name never stands for less than the
// payload. If two writers meet, either file may stay: both are durable.
func (s *Store) install(path string, sum Sum) error {
	if err := s.makeWay(Path(sum)); err != nil {
		return err
	}
	if err := s.fs.Rename(path, Path(sum)); err != nil {
		return err
	}
	return s.fs.SyncDir(leaf(sum))
}

// Adopt moves the file of a blob from elsewhere in the store to its place, durably. A file that is not that blob,
// intact, stays where it is, and the error wraps [ErrDamaged].
//
// Crash order: the content is durable before the rename.
func (s *Store) Adopt(path string, sum Sum) error {
	f, err := s.fs.OpenFile(path, os.O_RDWR)
	if err != nil {
		return err
	}
	if err = verify(f, sum); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.makeDurableFolders(sum); err != nil {
		return err
	}
	return s.install(path, sum)
}

func (s *Store) writeUnsynced(sum Sum, payload []byte) error {
	if err := s.makeFolders(sum); err != nil {
		return err
	}
	tmp := temporary(leaf(sum))
	if err := s.writeFile(tmp, payload, false); err != nil {
		return err
	}
	// An existing blob may be durable: do not replace it.
	err := s.fs.RenameNew(tmp, Path(sum))
	if err != nil {
		_ = s.fs.Remove(tmp)
	}
	return err
}

// writeFile makes a blob's file under a name. After an error it leaves nothing.
func (s *Store) writeFile(name string, payload []byte, sync bool) error {
	return s.create(name, sync, func(f vfs.File) error {
		head := header(int64(len(payload)))
		if len(payload) <= blockSize {
			_, err := f.Write(appendFrame(head, payload))
			return err
		}
		if _, err := f.Write(head); err != nil {
			return err
		}
		return writeFrame(f, bytes.NewReader(payload))
	})
}

func (s *Store) create(name string, sync bool, fill func(vfs.File) error) error {
	f, err := s.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		// The system's stamp may be a tick behind: the file would look older than the beginning of a sweep.
		err = f.SetModTime(time.Now())
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = s.fs.Remove(name)
	}
	return err
}

// temporary returns a unique name. A left-over begins with a dot; Walk reports it.
func temporary(dir string) string {
	return fmt.Sprintf("%s/.%016x", dir, rand.Uint64())
}

// PutReader is [Store.Put] for a payload of any length, in about two MiB of memory. It also returns the payload's size.
// If r fails, PutReader stores nothing and wraps the error.
func (s *Store) PutReader(r io.Reader) (sum Sum, size int64, created bool, err error) {
	head := make([]byte, blockSize)
	n, err := fill(r, head)
	if err != nil {
		return Sum{}, 0, false, fmt.Errorf("payload: %w", err)
	}
	if n < len(head) {
		sum, created, err = s.Put(head[:n])
		return sum, int64(n), created, err
	}
	return s.putStream(head, r)
}

// putStream stores a payload of more than a block. Its name is known only at the end. So the temporary file is in the
// folder of blobs, and the rename moves it into its fan-out folder.
func (s *Store) putStream(head []byte, rest io.Reader) (sum Sum, size int64, created bool, err error) {
	if err := s.mkdir(Folder); err != nil {
		return sum, 0, false, err
	}
	in := &hashReader{r: rest, sum: sha256.New(), size: int64(len(head))}
	in.sum.Write(head)
	tmp := temporary(Folder)
	err = s.create(tmp, true, func(f vfs.File) error {
		if _, err := f.Write(header(0)); err != nil {
			return err
		}
		if err := writeFrame(f, io.MultiReader(bytes.NewReader(head), in)); err != nil {
			return err
		}
		// The size is known now. Nothing reads it before the rename.
		_, err := f.WriteAt(header(in.size), 0)
		return err
	})
	if err != nil {
		return sum, 0, false, err
	}
	in.sum.Sum(sum[:0])
	there, err := s.Share(sum, true)
	if there || err != nil {
		_ = s.fs.Remove(tmp)
		return sum, in.size, false, err
	}
	if err := s.makeDurableFolders(sum); err != nil {
		_ = s.fs.Remove(tmp)
		return sum, in.size, false, err
	}
	return sum, in.size, true, s.settle(tmp, sum)
}

// hashReader counts and hashes the bytes read through it.
type hashReader struct {
	r    io.Reader
	sum  hash.Hash
	size int64
}

func (h *hashReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	h.size += int64(n)
	if err != nil && !isEnd(err) {
		err = fmt.Errorf("payload: %w", err)
	}
	return n, err
}

// fill reads until block is full or the payload ends. It does not use io.ReadFull, which cannot distinguish the end
// from a reader that fails with io.ErrUnexpectedEOF, as a cut connection does.
func fill(r io.Reader, block []byte) (n int, err error) {
	for n < len(block) {
		m, err := r.Read(block[n:])
		n += m
		switch {
		case isEnd(err):
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}
