package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/klauspost/compress/zstd"
)

// Tree lists every file with its content: nothing has changed when it is equal. It leaves out the cache of lists, which a
// reader writes too, once what it has read is old enough to be kept.
func Tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == engine.SummariesFile {
			return err
		}
		fmt.Fprintln(&b, path)
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			b.Write(bytes.TrimRight(raw, "\n"))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// BlobFiles returns the paths of the blobs in a store, without those that a writer has not finished.
func BlobFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a writer has finished
		}
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// FilesWith returns the files of a store that hold a text, blobs decompressed.
func FilesWith(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	z := Must[*zstd.Decoder](t)(zstd.NewReader(nil))
	defer z.Close()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && filepath.Ext(path) == ".zst" {
			b, err = z.DecodeAll(b, nil)
		}
		if bytes.Contains(b, []byte(text)) {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// FilesWithCanary reports the files on a disk that hold the canary, blobs decompressed.
func FilesWithCanary(disk *crashfs.FS) (paths []string, err error) {
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	err = engine.WalkFiles(disk, ".", func(path string) error {
		b, err := vfs.ReadFile(disk, path, 1<<30)
		if err == nil && strings.HasSuffix(path, ".zst") {
			b, err = z.DecodeAll(b, nil)
		}
		if bytes.Contains(b, []byte(Canary)) {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// Descriptors returns the number of open files of the process, and skips the test where the system does not tell.
func Descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc that lists descriptors")
	}
	return len(entries)
}
