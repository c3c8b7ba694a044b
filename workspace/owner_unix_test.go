//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOwnedBy(t *testing.T) {
	for _, test := range []struct {
		owner, user int
		sudo        string
		want        bool
	}{
		{1000, 1000, "", true}, {1001, 1000, "", false}, {0, 1000, "", false}, {1000, 0, "", false}, {1000, 0, "1000", true},
		{1001, 0, "1000", false}, {1001, 1000, "1001", false}, {1000, 0, "x", false}, {0, 0, "1000", true},
	} {
		if got := ownedBy(test.owner, test.user, test.sudo); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestForeign: a workspace of another user is not used, nor one behind another user's link.
func TestForeign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give folders away")
	}
	t.Setenv("SUDO_UID", "")
	dir := t.TempDir()
	path := filepath.Join(dir, Folder)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir); err != nil || got != path {
		t.Fatal(got, err)
	}
	if err := os.Chown(path, 65534, -1); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir); !errors.Is(err, ErrForeign) || got != "" {
		t.Error(got, err)
	}
	if _, err := Init(t.Context(), dir); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	if err := os.Rename(path, filepath.Join(dir, "own")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "own"), 0, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own", path); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(path, 65534, -1); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir); !errors.Is(err, ErrForeign) || got != "" {
		t.Error(got, err)
	}
}
