package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
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
		if err != nil || d.Name() == listing.SummariesFile {
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

// FilesWith returns the files of a store that hold a text, decompressed too.
func FilesWith(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	fsys := Must[vfs.FS](t)(vfs.OS(dir))
	defer fsys.Close()
	return Must[[]string](t)(filesWith(fsys, text))
}

// FilesWithCanary reports the files on a disk that hold the canary, decompressed too.
func FilesWithCanary(disk *crashfs.FS) (paths []string, err error) { return filesWith(disk, Canary) }

func filesWith(fsys vfs.FS, text string) (paths []string, err error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	err = engine.WalkFiles(fsys, ".", func(path string) error {
		f, err := fsys.OpenFile(path, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		for part, err := range vfs.Data(f) { // a file may be huge, and sparse
			if err != nil {
				return err
			}
			b, err := io.ReadAll(part)
			if err != nil {
				return err
			}
			if bytes.Contains(b, []byte(text)) || bytes.Contains(decompressed(z, b), []byte(text)) {
				paths = append(paths, strings.TrimPrefix(path, "./"))
				break
			}
		}
		return nil
	})
	return paths, err
}

// decompressed returns the content of what looks like a frame of zstd, wherever it begins, as far as each goes.
func decompressed(z *zstd.Decoder, raw []byte) (all []byte) {
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(raw, magic); at >= 0; {
		if z.Reset(bytes.NewReader(raw[at:])) == nil {
			content, _ := io.ReadAll(io.LimitReader(z, 8<<20))
			all = append(append(all, '\n'), content...)
		}
		next := bytes.Index(raw[at+len(magic):], magic)
		if next < 0 {
			break
		}
		at += len(magic) + next
	}
	return all
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
