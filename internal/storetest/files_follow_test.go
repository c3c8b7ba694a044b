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

// TestFoldFollows: a fold that is due waits until commits pause, up to four times its size.
func TestFoldFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause, size = 20 * time.Millisecond, 16 << 10
		disk := crashfs.New()
		s := behind(t, disk, engine.FilesBehind, engine.WithFoldBytes(size))
		c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
		body := fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("a", size/4))
		for range 12 {
			kit.Append(t, c.Active(), engine.Draft{Body: body})
			time.Sleep(pause / 4)
			synctest.Wait()
		}
		if !c.Log.FoldDue(2 * size) {
			t.Error("the journal was folded before a pause")
		}
		time.Sleep(pause)
		synctest.Wait()
		if c.AwaitFold(); c.Log.FoldDue(size / 2) {
			t.Error("the journal was not folded in a pause")
		}
		for range 17 {
			kit.Append(t, c.Active(), engine.Draft{Body: body})
		}
		if c.AwaitFold(); c.Log.FoldDue(2 * size) {
			t.Error("a long journal was not folded")
		}
		kit.Check(t, c.Close())
		kit.Check(t, s.Close())
	})
}
