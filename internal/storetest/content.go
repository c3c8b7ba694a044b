package storetest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// BlobFiles returns the paths of the blobs in a store.
func BlobFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return paths
}

func Picture(seed byte, size int) string {
	b := bytes.Repeat([]byte{0x89, 'P', 'N', 'G', seed, 0}, size/6)
	return base64.StdEncoding.EncodeToString(b)
}

// Samples are bodies of every sort.
func Samples() []string {
	long := strings.Repeat("a line of text, \\\"quoted\\\"\\n", 400)
	return []string{
		`{"role":"user","content":"short"}`,
		`{"role":"tool","content":"` + long + `"}`,
		`{"role":"tool","content":"` + strings.Repeat("\\u00fc\\ud83d\\ude00 ", 500) + `"}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + Picture(1, 3000) + `"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + Picture(2, 200_000) + `"}}]}`,
		`{"$blob":"` + strings.Repeat("0", 64) + `","size":1,"n":1.0e400}`,
		`{"a":{"$blob":1},"b":[{"$$blob":"x"}],"text":"` + long + `"}`,
		`{"text":"` + strings.Repeat("x", 300_000) + `"}`,
	}
}
