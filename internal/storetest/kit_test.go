package storetest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// clean reports what a check finds.
func clean(t *testing.T, s *engine.Store) {
	t.Helper()
	for _, f := range (&kit.Patient{T: t, Store: s}).Check(true) {
		t.Errorf("check: %+v", f)
	}
}

// copyTree copies a folder over another one, with the times of files.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			_ = os.Remove(target)
			err = os.WriteFile(target, raw, 0o600)
		}
		if err == nil {
			err = os.Chtimes(target, info.ModTime(), info.ModTime())
		}
		return err
	})
}
