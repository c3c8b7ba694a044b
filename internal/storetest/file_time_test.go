package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFileTime: the file of a message with a time of its own has that time, to the millisecond, whoever writes it. The
// time says that the file is untouched; an edit by hand has a later time.
func TestFileTime(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	begin := time.Date(2020, 2, 3, 4, 5, 6, 7_654_321, time.UTC)
	var times []time.Time
	for i := range 5 {
		times = append(times, begin.Add(time.Duration(i)*time.Millisecond))
	}
	times[3] = time.Now().Add(time.Hour)                              // of a wrong clock
	times[4] = time.Date(1960, 1, 1, 0, 0, 0, 0, times[0].Location()) // not every file system can store it
	for _, at := range times {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user","content":"I said it then."}`), CreatedAt: at})
	}
	kit.Check(t, c.Flush(ctx))
	ms := kit.Load(t, c.Active())
	file := func(i int) string { return filepath.Join(dir, "messages", "branch-main", ms[i].ID.String()+".json") }
	stat := func(i int) fs.FileInfo { return kit.Must[fs.FileInfo](t)(os.Stat(file(i))) }
	look := func(stage string) {
		t.Helper()
		for i, m := range ms {
			want := times[i].Truncate(time.Millisecond)
			if i > 2 {
				want = m.StoredAt.Truncate(time.Millisecond)
			}
			if got := stat(i).ModTime(); got.Sub(want) < 0 || got.Sub(want) >= 2*time.Millisecond {
				t.Errorf("%s: the file of message %d is of %v, wanted %v", stage, i, got, want)
			}
			if size := stat(i).Size() - 1; !ctxfolder.Untouched(stat(i), size, m.StoredAt) || ctxfolder.Untouched(stat(i), size+1, m.StoredAt) {
				t.Errorf("%s: message %d: untouched with a wrong size, or touched with the right one", stage, i)
			}
		}
	}
	look("appended")
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	if _, err := os.Stat(file(0)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("archived: %v", err)
	}
	kit.Must[archiving.Result](t)(archiving.Unarchive(ctx, c, nil))
	look("unarchived")
	to := kit.Must[*engine.Store](t)(kit.Init(t.TempDir()))
	kit.Must[backup.Result](t)(backup.Copy(ctx, c.Store, c.ID(), to))
	copied := filepath.Join(to.Path(), c.ID().String(), "messages", "branch-main", filepath.Base(file(2)))
	if at := kit.Must[fs.FileInfo](t)(os.Stat(copied)).ModTime(); !at.Equal(stat(2).ModTime()) {
		t.Errorf("the copy of a file is of %v, wanted %v", at, stat(2).ModTime())
	}

	rewrite := func(i int, f func([]byte) []byte) {
		t.Helper()
		kit.Check(t, os.WriteFile(file(i), f(kit.Must[[]byte](t)(os.ReadFile(file(i)))), 0o600))
	}
	kit.Check(t, c.Seal(ctx))
	at := stat(1).ModTime()
	flip := func(b []byte) []byte { return bytes.Replace(b, []byte("then"), []byte("thin"), 1) }
	rewrite(0, flip) // an edit of the same size
	rewrite(1, flip) // damage: it leaves the time as it is, and what was committed is shown
	kit.Check(t, os.Chtimes(file(1), at, at))
	kit.Check(t, os.Chtimes(file(2), at, ms[2].StoredAt.Add(-time.Hour-time.Microsecond))) // as a copy that lost the time
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer again.Close()
	got := kit.Load(t, again.Active())
	for i, m := range got {
		if m.Unavailable != nil || m.Edited != (i == 0) || bytes.Contains(m.Stored, []byte("thin")) != (i == 0) {
			t.Errorf("message %d: %s, edited %v, %v", i, m.Stored, m.Edited, m.Unavailable)
		}
	}
}

// TestHasFileTime: a time counts as that of a commit if it is earlier by whole milliseconds. No later time does.
func TestHasFileTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	kit.Check(t, os.WriteFile(path, nil, 0o600))
	stored := time.Date(2026, 1, 2, 3, 4, 5, 123_456_000, time.UTC)
	for later, want := range map[time.Duration]bool{
		0: true, -time.Millisecond: true, -50 * 365 * 24 * time.Hour: true,
		time.Microsecond: false, time.Millisecond: false, time.Hour: false,
		-time.Microsecond: false, -time.Hour + time.Microsecond: false, -456 * time.Microsecond: false,
	} {
		kit.Check(t, os.Chtimes(path, stored, stored.Add(later)))
		if got := ctxfolder.HasFileTime(kit.Must[fs.FileInfo](t)(os.Stat(path)), stored); got != want {
			t.Errorf("%v after the commit: %v", later, got)
		}
	}
	for _, raw := range []string{"", "{}", `{"created_at":"2020-01-01T00:00:00Z"}`} {
		if got := ctxfolder.FileTime([]byte(raw), stored); !got.Equal(stored) {
			t.Errorf("%q: %v", raw, got)
		}
	}
	for _, created := range []time.Time{{}, stored, stored.Add(time.Second), time.Unix(0, 0), time.Unix(-1, 0)} {
		e := message.Envelope{StoredAt: stored, CreatedAt: created, Body: []byte("{}")}
		if got := ctxfolder.FileTime(e.AppendTo(nil), stored); !got.Equal(stored) {
			t.Errorf("of a message of %v: %v", created, got)
		}
	}
}
