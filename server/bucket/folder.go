package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
)

// folder is a bucket in a folder. An object is a file.
type folder struct {
	root *os.Root

	mu   sync.Mutex
	made map[string]bool // folders whose names are durable
}

func openFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder for objects: %w", err)
	}
	return &folder{root: root, made: map[string]bool{".": true}}, nil
}

// Put implements [Bucket].
//
// Crash order: the content is on disk before the file has its name, and the name before Put returns. A crash before leaves
// a temporary file, which a later List removes.
func (f *folder) Put(_ context.Context, name string, data []byte) error {
	dir := path.Dir(name)
	if err := f.mkdir(dir); err != nil {
		return err
	}
	const perm = 0o600
	if err := renameio.WriteFile(name, data, perm, renameio.WithRoot(f.root), renameio.WithStaticPermissions(perm)); err != nil {
		return err
	}
	return f.sync(dir)
}

// mkdir makes a folder, whose name is durable when it returns: also if another process has just made it.
func (f *folder) mkdir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made[dir] {
		return nil
	}
	if err := f.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for at := dir; at != "."; at = path.Dir(at) {
		if err := f.sync(path.Dir(at)); err != nil {
			return err
		}
	}
	f.made[dir] = true
	return nil
}

func (f *folder) sync(dir string) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements [Bucket].
func (f *folder) Get(_ context.Context, name string, most int) ([]byte, error) {
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, most)
}

// readAll reads up to so many bytes.
func readAll(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(b) > most {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Remove implements [Bucket].
func (f *folder) Remove(_ context.Context, name string) error {
	if err := f.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// abandoned is the age from which nobody writes a temporary file any more.
const abandoned = 24 * time.Hour

// List implements [Bucket].
func (f *folder) List(ctx context.Context, folder string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		err := fs.WalkDir(f.root.FS(), folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return ignoreMissing(err)
			}
			info, err := e.Info()
			switch {
			case err != nil:
				return ignoreMissing(err)
			case ctx.Err() != nil:
				return ctx.Err()
			case strings.HasPrefix(e.Name(), "."):
				if time.Since(info.ModTime()) > abandoned {
					return f.Remove(ctx, name)
				}
				return nil
			case !yield(Object{name, info.ModTime()}, nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Object{}, err)
		}
	}
}

// ignoreMissing is for files that go meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
