package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

const Canary = "the-canary-sings"

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

func Erase(s *engine.Store, c, id uuid.UUID, o erase.Options) (done []erase.Removal, err error) {
	for x, xerr := range erase.Messages(context.Background(), s, c, []uuid.UUID{id}, o) {
		if err = xerr; err == nil {
			done = append(done, x)
		}
	}
	return done, err
}

// Secret is a body that holds the canary, of a size: small, with a payload that rides in the journal, with one that
// does not.
func Secret(size int) []byte {
	return fmt.Appendf(nil, `{"role":"user","content":"%s"}`, strings.Repeat(Canary+" ", size/len(Canary)+1))
}
