package blob

import (
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestNewBlobIsNotOld: a blob bears no time before it was made, also where the file system's own stamps are a tick
// behind the clock. A sweep would take it for older than its beginning.
func TestNewBlobIsNotOld(t *testing.T) {
	disk := crashfs.New()
	disk.SetClock(func() time.Time { return time.Now().Add(-10 * time.Millisecond) })
	s := Open(disk)
	for text, put := range map[string]func([]byte) (Sum, bool, error){"synced": s.Put, "unsynced": s.PutUnsynced} {
		before := time.Now()
		sum, _, err := put([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		info, err := disk.Lstat(Path(sum))
		if err != nil {
			t.Fatal(err)
		}
		if at := info.ModTime(); at.Before(before) {
			t.Errorf("%s: the blob bears a time %v before it was made", text, before.Sub(at))
		}
	}
}
