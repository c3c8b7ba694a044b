package trash

import (
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestPurged: what was noted is found again, also behind a torn line, and behind one that is too long.
func TestPurged(t *testing.T) {
	disk := crashfs.New()
	s, err := engine.Init("memory", engine.WithFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []uuid.UUID
	for i, before := range []string{"", `{"context":"`, string(make([]byte, 3*maxPurgedLine))} {
		f, err := disk.OpenFile(engine.PurgedFile, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err == nil {
			_, err = f.WriteAt([]byte(before), info.Size())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, uuid.UUID{15: byte(i + 1)})
		if err := notePurged(s, ids[i]); err != nil {
			t.Fatal(err)
		}
		all, err := Purged(s)
		if err != nil || len(all) != len(ids) {
			t.Errorf("%v, %v, want %v", all, err, ids)
		}
	}
}
