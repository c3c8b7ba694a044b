package context

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// TestFiles: the files of a branch folder are found as when each is read alone, whether the folder is there or missing,
// or its rename is not complete.
func TestFiles(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, d *Dir, path string, other uuid.UUID){
		"a folder": func(*testing.T, *Dir, string, uuid.UUID) {},
		"no folder": func(t *testing.T, _ *Dir, path string, _ uuid.UUID) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		},
		"another folder of the name": func(t *testing.T, d *Dir, path string, other uuid.UUID) {
			d.Files("branch-main").Release() // it is open now
			if err := os.Rename(path, path+"-before"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, MessageFile(other)), []byte("{2}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := vfs.OS(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			id := uuid.New()
			path := filepath.Join(dir, id.String(), Messages, "branch-main")
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			d, err := Open(store, uuid.New(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ids := make([]uuid.UUID, 12)
			for i := range ids {
				ids[i] = uuid.New()
				if i < 9 {
					err = d.CreateMessage("branch-main", ids[i], make([]byte, 10*i), time.Now())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(path, MessageFile(ids[9])), 0o700); err != nil {
				t.Fatal(err)
			}
			prepare(t, d, path, ids[10])
			compareFiles(t, d, ids)
		})
	}
}

// compareFiles reads files together and alone. They should have 20 bytes.
func compareFiles(t *testing.T, d *Dir, ids []uuid.UUID) {
	t.Helper()
	const size = 20
	files := d.Files("branch-main")
	defer files.Release()
	loaded := make([][]byte, len(ids))
	files.Load(len(ids), func(i int) (uuid.UUID, int64) { return ids[i], size }, func(i int, b []byte) { loaded[i] = b })
	infos, err := files.Stat(ids)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		want, err := d.LoadMessage("branch-main", id, size)
		if (loaded[i] != nil) != (err == nil && want != nil) || string(loaded[i]) != string(want) {
			t.Errorf("file %d: %q, wanted %q, %v", i, loaded[i], want, err)
		}
		info, err := d.StatMessage("branch-main", id)
		if (infos[i] == nil) != errors.Is(err, fs.ErrNotExist) || err == nil && !vfs.SameFile(infos[i], info) {
			t.Errorf("stat of file %d: %v, wanted %v, %v", i, infos[i], info, err)
		}
	}
}
