package context

import (
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// TestForgetFolders: a folder that is dropped while somebody is at work in it is closed when he is done, and not
// before.
func TestForgetFolders(t *testing.T) {
	store, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id := uuid.New()
	if err := store.Mkdir(id.String()); err != nil {
		t.Fatal(err)
	}
	d, err := Open(store, uuid.New(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	used := func() *Folder {
		t.Helper()
		sub, err := d.folder("branch-main", true)
		if err != nil {
			t.Fatal(err)
		}
		sub.Release()
		return sub
	}
	first := used()
	user, err := d.folder("branch-main", true)
	if err != nil {
		t.Fatal(err)
	}
	if used() != first {
		t.Error("the folder was opened twice")
	}
	d.ForgetFolders()
	if again := used(); again == first {
		t.Error("the folder that was dropped is in use")
	}
	if err := user.Create(uuid.New(), []byte("{}"), time.Now()); err != nil {
		t.Errorf("in a folder that was dropped meanwhile: %v", err)
	}
	user.Release()
	if f, err := first.OpenFile("x", os.O_WRONLY|os.O_CREATE); err == nil {
		_ = f.Close()
		t.Error("the folder that nobody uses is open")
	}
	if ids := 0; d.MessageIDs("branch-main", func(uuid.UUID) error { ids++; return nil }) != nil || ids != 1 {
		t.Errorf("%d message files", ids)
	}
}
