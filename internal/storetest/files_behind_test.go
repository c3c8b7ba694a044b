package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// behind opens a store on a disk, whose message files come when the option says.
func behind(t *testing.T, disk *crashfs.FS, when engine.MessageFiles, more ...engine.Option) *engine.Store {
	t.Helper()
	opts := append([]engine.Option{engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithFiles(when)}, more...)
	return kit.Must[*engine.Store](t)(kit.Init("disk", opts...))
}

// fileCount counts the message files of a context, temporary ones included.
func fileCount(t *testing.T, disk *crashfs.FS, c *engine.Context) (n int) {
	t.Helper()
	kit.Check(t, engine.WalkFiles(disk, c.ID().String()+"/"+ctxfolder.Messages, func(string) error {
		n++
		return nil
	}))
	return n
}

// TestQueueOfFiles: appends wait while 2,048 files or 16 MiB are to come, over all contexts of a store.
func TestQueueOfFiles(t *testing.T) {
	for name, size := range map[string]int{"files": 10, "bytes": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			disk := crashfs.New()
			s := behind(t, disk, engine.FilesHeld, engine.WithTextThreshold(-1))
			body := fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("a", size))
			a := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
			b := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
			appended, made := 0, 0
			for made == 0 && appended < 3000 {
				appended++
				kit.Append(t, []*engine.Context{a, b}[appended%2].Active(), engine.Draft{Body: body})
				made = fileCount(t, disk, a) + fileCount(t, disk, b)
			}
			if want := min(2049, 16<<20/size+1); appended != want && size == 10 || appended > want || made != appended {
				t.Errorf("%d files after %d appends", made, appended)
			}
			kit.Check(t, a.Close(), b.Close(), s.Close())
		})
	}
}

// TestWithoutFiles: a commit without its files is shown by every handle, and can be forked, replaced and stored again.
// Flush then makes the files that are missing.
func TestWithoutFiles(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for n := range 5 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)})
	}
	side := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "side", 2))
	kit.Append(t, side, engine.Draft{ID: kit.TestID(4), Body: []byte(`{"n":"another with this id"}`)})
	kit.Check(t, c.Active().Replace(ctx, kit.TestID(3), engine.Draft{Body: []byte(`{"n":"replaced"}`)}))
	if again := kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(2), Body: []byte(`{"n":2}`)}); !again.Existed {
		t.Errorf("stored again: %+v", again)
	}
	if n := fileCount(t, disk, c); n != 1 { // that of the replacement
		t.Errorf("%d files, wanted 1", n)
	}
	want := kit.Transcript{
		"main": {{kit.TestID(0), `{"n":0}`}, {kit.TestID(1), `{"n":1}`}, {kit.TestID(2), `{"n":2}`},
			{kit.TestID(3), `{"n":"replaced"}`}, {kit.TestID(4), `{"n":4}`}},
		"side": {{kit.TestID(0), `{"n":0}`}, {kit.TestID(1), `{"n":1}`}, {kit.TestID(4), `{"n":"another with this id"}`}},
	}
	for name, on := range map[string]*crashfs.FS{"beside": disk, "after a kill": disk.Clone()} {
		if got, err := kit.Read(on, c.ID()); err != nil || !kit.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, messages := range want {
		if m, err := c.Active().Message(ctx, messages[0].ID); err != nil || kit.BodyOf(m) != messages[0].Body {
			t.Errorf("%+v, %v", m, err)
		}
	}
	kit.Check(t, c.Flush(ctx))
	if n := fileCount(t, disk, c); n != 6 {
		t.Errorf("%d files after Flush, wanted 6", n)
	}
	kit.NothingFound(t, "after Flush", s, checking.Options{ReadData: true})
	kit.Check(t, c.Close(), s.Close())
}

// TestFilesAfterKill: what a killed process leaves unmade is no error, and the next writer, or a seal, makes it.
func TestFilesAfterKill(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 40)
	for name, next := range map[string]func(*engine.Context) error{
		"append": func(c *engine.Context) error {
			_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)})
			return err
		},
		"title": func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "T"; return nil })
		},
		"flush": func(c *engine.Context) error { return c.Flush(ctx) },
		"seal":  func(c *engine.Context) error { return c.Seal(ctx) },
	} {
		killed := disk.Clone()
		s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(killed), engine.WithSealBytes(-1), engine.WithoutPause()))
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			if err != nil || f.Severity == integrity.SeverityError {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
		}
		c := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		kit.Check(t, next(c))
		if n := fileCount(t, killed, c); n < 40 {
			t.Errorf("%s: %d files, wanted 40 or more", name, n)
		}
		kit.Check(t, c.Close())
		kit.NothingFound(t, name, s, checking.Options{ReadData: true})
		kit.Check(t, s.Close())
	}
}

// TestFilesFail: files that cannot be made lose nothing, and no log is sealed before they are there. Flush, Seal and Close
// say so, and make them later.
func TestFilesFail(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 3)
	full := func(o crashfs.Op) error {
		if strings.Contains(o.String(), ctxfolder.Messages+"/branch") || strings.Contains(o.String(), ".json.") {
			return syscall.ENOSPC
		}
		return nil
	}
	disk.Fail(kit.Serialise(full))
	for name, do := range map[string]func(context.Context) error{"flush": c.Flush, "seal": c.Seal} {
		for range 2 {
			if err := do(ctx); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s on a full disk: %v", name, err)
			}
		}
	}
	if n := len(kit.Bodies(t, c.Active())); n != 3 {
		t.Errorf("%d messages", n)
	}
	other := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	kit.Fill(t, other.Active(), 1)
	if err := other.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close on a full disk: %v", err)
	}
	disk.Fail(nil)
	if kit.Check(t, c.Seal(ctx)); fileCount(t, disk, c) != 4 {
		t.Errorf("%d files after a seal with space", fileCount(t, disk, c))
	}
	kit.Check(t, c.Close())
	kit.NothingFound(t, "with space", s, checking.Options{ReadData: true})
	kit.Check(t, s.Close())
}

// TestFilesOfReplaced: a file that a stopped replacement left with the older version is replaced before its message is
// sealed. An edit by hand stays.
func TestFilesOfReplaced(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesOnReturn)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for n := range 2 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: []byte(`{"v":"older"}`)})
	}
	disk.Fail(kit.Serialise(func(o crashfs.Op) error {
		if strings.Contains(o.Path, ctxfolder.Messages) {
			return syscall.EIO
		}
		return nil
	}))
	for n := range 2 {
		kit.Check(t, c.Active().Replace(ctx, kit.TestID(n), engine.Draft{Body: []byte(`{"v":"newer"}`)}))
	}
	disk = disk.Clone() // the process is killed
	sub := kit.Must[vfs.FS](t)(disk.Sub(c.ID().String()))
	path := func(n int) string { return c.Dir.MessagePath("branch-main", kit.TestID(n)) }
	read := func(n int) string { return string(kit.Must[[]byte](t)(vfs.ReadFile(sub, path(n), 1<<20))) }
	older, stored := read(1), kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(1))).StoredAt
	edited := strings.Replace(older, "older", "edited", 1)
	edited = regexp.MustCompile(`"stored_at":"[^"]*"`).ReplaceAllString(edited, `"stored_at":"`+stored.Format(time.RFC3339Nano)+`"`)
	kit.Check(t, sub.Remove(path(1)), vfs.WriteNew(sub, path(1), []byte(edited)))

	s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithoutPause()))
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	kit.Check(t, c.Seal(ctx))
	if got := read(0); !strings.Contains(got, "newer") {
		t.Errorf("the file of the older version: %s", got)
	}
	if got := read(1); got != edited {
		t.Errorf("the file that was edited: %s", got)
	}
	kit.Check(t, c.Close(), s.Close())
}

// TestFilesAfterRefusedRecord: a process ends after the system refused its record. The next one makes the file of that
// message only when the record is durable: a file without a record is a message that nobody committed.
func TestFilesAfterRefusedRecord(t *testing.T) {
	ctx := t.Context()
	for name, next := range map[string]func(*engine.Context) error{
		"append": func(c *engine.Context) error {
			_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)})
			return err
		},
		"title": func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "T"; return nil })
		},
		"flush": func(c *engine.Context) error { return c.Flush(ctx) },
	} {
		disk := crashfs.New()
		s := behind(t, disk, engine.FilesHeld)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 3)
		kit.Check(t, c.Flush(ctx))
		refuse := func() {
			disk.Fail(kit.Serialise(func(o crashfs.Op) error {
				if (o.Kind == crashfs.KindDatasync || o.Kind == crashfs.KindSync) && strings.Contains(o.Path, "/log-") {
					return syscall.EIO
				}
				return nil
			}))
		}
		refuse()
		if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}); !errors.Is(err, engine.ErrDurability) {
			t.Errorf("%s: an append whose sync is refused: %v", name, err)
		}
		disk = disk.Clone() // the process is killed
		refuse()
		s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithoutPause()))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		if err := next(c); !errors.Is(err, engine.ErrDurability) {
			t.Errorf("%s: a sync is refused: %v", name, err)
		}
		if n := fileCount(t, disk, c); n != 3 {
			t.Errorf("%s: %d files, wanted those of the 3 messages that are durable", name, n)
		}
		disk.Fail(nil)
		if kit.Check(t, next(c)); fileCount(t, disk, c) < 4 {
			t.Errorf("%s: %d files once the disk works, wanted 4 or more", name, fileCount(t, disk, c))
		}
		kit.Check(t, c.Close(), s.Close())
	}
}

// TestFilesOfARemovedContext: a file that could not be made is no error of Close when the context was removed.
func TestFilesOfARemovedContext(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 3)
	disk.Fail(kit.Serialise(func(o crashfs.Op) error {
		if strings.Contains(o.String(), ctxfolder.Messages+"/branch") {
			return syscall.EIO
		}
		return nil
	}))
	if err := c.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Errorf("Flush on a failing disk: %v", err)
	}
	disk.Fail(nil)
	_, err := s.Delete(ctx, c.ID())
	kit.Check(t, err, c.Close(), s.Close())
}

// TestFilesOfRenamedBranch: a folder stays with its line when the branch is renamed, and the next branch of that name has
// another one.
func TestFilesOfRenamedBranch(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Rename(ctx, "main", "new"))
	kit.Fill(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "main")), 2)
	kit.Check(t, c.Flush(ctx))
	for folder, want := range map[string]int{"branch-main": 3, "branch-main~2": 2} {
		n := 0
		kit.Check(t, engine.WalkFiles(disk, c.ID().String()+"/messages/"+folder, func(string) error { n++; return nil }))
		if n != want {
			t.Errorf("%d files in %s, wanted %d", n, folder, want)
		}
	}
	kit.NothingFound(t, "renamed", s, checking.Options{ReadData: true})
	kit.Check(t, c.Close(), s.Close())
}

// TestFilesBehindRemoval: what removes message files, or their folder, waits for the files that another process
// is about to make. So none of them appears afterwards.
func TestFilesBehindRemoval(t *testing.T) {
	secret := kit.Secret(10)
	for name, removal := range map[string]func(ctx context.Context, s *engine.Store, c *engine.Context) error{
		"erase": func(_ context.Context, s *engine.Store, c *engine.Context) error {
			_, err := kit.Erase(s, c.ID(), kit.TestID(1), erase.Options{})
			return err
		},
		"collect": func(ctx context.Context, s *engine.Store, c *engine.Context) error {
			return errors.Join(c.Active().Rewind(ctx, 0), kit.CollectAll(s, 0), kit.CollectAll(s, 0))
		},
		"archive": func(ctx context.Context, _ *engine.Store, c *engine.Context) error {
			_, err := kit.Archive(ctx, c, archiving.Options{})
			return err
		},
		"delete": func(ctx context.Context, s *engine.Store, c *engine.Context) error {
			_, err := s.Delete(ctx, c.ID())
			return errors.Join(err, kit.CollectAll(s, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			disk := crashfs.New()
			writer := behind(t, disk, engine.FilesHeld)
			w := kit.Must[*engine.Context](t)(writer.Create(ctx, engine.Metadata{}))
			remover := behind(t, disk, engine.FilesBehind, engine.WithLockTimeout(10*time.Millisecond))
			r := kit.Must[*engine.Context](t)(remover.Context(ctx, w.ID()))
			kit.Append(t, w.Active(), engine.Draft{ID: kit.TestID(1), Body: secret})
			if err := removal(ctx, remover, r); !errors.Is(err, engine.ErrLocked) {
				t.Errorf("it did not wait for the file: %v", err)
			}
			_ = writer.Close() // it makes the files that are to come
			kit.Check(t, removal(ctx, remover, r))
			_, _ = r.Close(), w.Close()
			_ = engine.WalkFiles(disk, w.ID().String()+"/"+ctxfolder.Messages, func(path string) error {
				if b, err := vfs.ReadFile(disk, path, 1<<20); err != nil || strings.Contains(string(b), kit.Canary) {
					t.Errorf("%s is there: %v", path, err)
				}
				return nil
			})
			kit.Check(t, remover.Close())
		})
	}
}
