package storetest

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// PackGolden writes a folder as a golden store: an archive that [UnpackGolden] reads.
func PackGolden(t *testing.T, dir, file string) {
	t.Helper()
	f := Must[*os.File](t)(os.Create(file))
	z := Must[*zstd.Encoder](t)(zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedBestCompression)))
	w := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info := Must[fs.FileInfo](t)(d.Info())
		h := &tar.Header{
			Format:   tar.FormatPAX,
			Name:     filepath.ToSlash(Must[string](t)(filepath.Rel(dir, path))),
			Mode:     0o600,
			ModTime:  info.ModTime(),
			Typeflag: tar.TypeReg,
			Size:     info.Size(),
		}
		if d.IsDir() {
			h.Mode, h.Typeflag, h.Size, h.Name = 0o700, tar.TypeDir, 0, h.Name+"/"
			return w.WriteHeader(h)
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(Must[[]byte](t)(os.ReadFile(path)))
		return err
	})
	Check(t, errors.Join(err, w.Close(), z.Close(), f.Close()))
}

// eachGolden passes the folders and files of a golden store to f, a folder before its content.
func eachGolden(t *testing.T, file string, f func(h *tar.Header, content []byte) error) {
	t.Helper()
	in := Must[*os.File](t)(os.Open(file))
	defer in.Close()
	z := Must[*zstd.Decoder](t)(zstd.NewReader(in))
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		Check(t, f(h, Must[[]byte](t)(io.ReadAll(r))))
	}
}

// UnpackGolden unpacks a golden store into a folder, with the times of its files.
func UnpackGolden(t *testing.T, file, dir string) {
	t.Helper()
	times := map[string]*tar.Header{}
	eachGolden(t, file, func(h *tar.Header, content []byte) error {
		path := filepath.Join(dir, h.Name)
		times[path] = h
		if h.Typeflag == tar.TypeDir {
			return os.MkdirAll(path, 0o700)
		}
		return os.WriteFile(path, content, 0o600)
	})
	for path, h := range times {
		Check(t, os.Chtimes(path, h.ModTime, h.ModTime))
	}
}
