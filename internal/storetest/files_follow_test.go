package storetest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFilesFollow: message files follow their commits when commits pause, after a while, or when enough files wait.
func TestFilesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause, longest, enough = 20 * time.Millisecond, 250 * time.Millisecond, 1024
		disk := crashfs.New()
		s := behind(t, disk, engine.FilesBehind)
		c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
		want := 0
		append := func() {
			t.Helper()
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
			want++
		}
		append()
		time.Sleep(pause - time.Nanosecond)
		append()
		time.Sleep(pause - time.Nanosecond)
		if synctest.Wait(); fileCount(t, disk, c) != 0 {
			t.Error("files were made before a pause")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); fileCount(t, disk, c) != want {
			t.Errorf("%d files after a pause, wanted %d", fileCount(t, disk, c), want)
		}
		before := want
		for waited := time.Duration(0); waited < longest; waited += pause / 2 {
			if synctest.Wait(); fileCount(t, disk, c) != before {
				t.Fatalf("files were made %v after the first of them", waited)
			}
			append()
			time.Sleep(pause / 2)
		}
		if synctest.Wait(); fileCount(t, disk, c) != want {
			t.Errorf("%d files while commits do not pause, wanted %d", fileCount(t, disk, c), want)
		}
		kit.Fill(t, c.Active(), enough)
		want += enough
		if synctest.Wait(); fileCount(t, disk, c) != want {
			t.Errorf("%d files when enough waited, wanted %d", fileCount(t, disk, c), want)
		}
		append()
		if kit.Check(t, c.Close()); fileCount(t, disk, c) != want {
			t.Errorf("%d files after Close, wanted %d", fileCount(t, disk, c), want)
		}
		kit.Check(t, s.Close())
	})
}

// TestSealFollows: a seal that is due waits until commits pause, and a log that is full is sealed all the same.
func TestSealFollows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const pause = 20 * time.Millisecond
		disk := crashfs.New()
		s := behind(t, disk, engine.FilesBehind, engine.WithSealBytes(1<<20))
		c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
		unsealed := func() int64 {
			c.AwaitSeal()
			n, _, err := c.Index.UnsealedBytes()
			kit.Check(t, err)
			return n
		}
		body := fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("a", 12<<10))
		for range 12 {
			kit.Append(t, c.Active(), engine.Draft{Body: body})
			time.Sleep(pause / 4)
			synctest.Wait()
		}
		if n := unsealed(); n < 12*12<<10 {
			t.Errorf("%d bytes are not sealed before a pause", n)
		}
		time.Sleep(pause)
		synctest.Wait()
		if n := unsealed(); n > 0 {
			t.Errorf("%d bytes are not sealed in a pause", n)
		}
		for range 200 {
			kit.Append(t, c.Active(), engine.Draft{Body: body})
			time.Sleep(pause / 4)
			synctest.Wait()
		}
		if n := unsealed(); n > 1500<<10 {
			t.Errorf("%d bytes are not sealed, more than a full log has", n)
		}
		kit.Check(t, c.Close())
		kit.Check(t, s.Close())
	})
}
