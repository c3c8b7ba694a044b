package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/jackc/pgx/v5"
)

// TestDump restores a dump into an empty database: with the same key everything is there, and without it nothing can be read.
func TestDump(t *testing.T) {
	from, to := newDatabase(t), newDatabase(t)
	other := to.master
	k := newKit(t, from, server.Options{})
	id := k.create(k.tokens["ada"], "title", "text")
	want := k.everything("ada")
	must(t, pgtest.Dump(t.Context(), from.url, to.url, filepath.Join(t.TempDir(), "dump")))

	d, err := server.NewDatabase(t.Context(), to.url, server.DatabaseOptions{Master: other})
	must(t, err)
	defer d.Close()
	if err := d.Prepare(t.Context()); !errors.Is(err, pgfs.ErrKey) {
		t.Errorf("with another key: %v", err)
	}
	to.master = from.master
	r := joinKit(t, to, server.Options{})
	r.tokens = k.tokens
	if got := r.everything("ada"); got != want {
		t.Errorf("restored:\n%s\nwant\n%s", got, want)
	}
	if a := r.do(k.tokens["ada"], "DELETE", "/v1/contexts/"+id, ""); a.status >= 300 {
		t.Errorf("removing from the restored one: %d", a.status)
	}
	if got := k.everything("ada"); got != want {
		t.Errorf("the first one has changed:\n%s", got)
	}
}

// TestDumpWithObjects restores a dump and a copy of the bucket that was made after it. The copies go on beside the first ones.
func TestDumpWithObjects(t *testing.T) {
	from, to := newDatabase(t), newDatabase(t)
	dir, copied := t.TempDir(), t.TempDir()
	from.bucket = inFolder(t, dir)
	k := newKit(t, from, server.Options{})
	k.create(k.tokens["ada"], "title", dense())
	want := k.everything("ada")
	must(t, pgtest.Dump(t.Context(), from.url, to.url, filepath.Join(t.TempDir(), "dump")))
	k.create(k.tokens["ada"], "after the dump", dense()[1:])
	must(t, os.CopyFS(copied, os.DirFS(dir)))

	to.master, to.bucket = from.master, inFolder(t, copied)
	r := joinKit(t, to, server.Options{})
	r.tokens = k.tokens
	if got := r.everything("ada"); got != want || len(want) < len(dense()) {
		t.Errorf("restored: %d bytes, want %d", len(got), len(want))
	}
	id := r.create(k.tokens["ada"], "later", dense()[2:])
	if a := r.do(k.tokens["ada"], "GET", messages(id), ""); !strings.Contains(a.body, dense()[2:]) {
		t.Errorf("writing to the copy: %d", a.status)
	}
}

// TestPointInTime goes back to before a user was erased, with a backup and the archive of the log.
func TestPointInTime(t *testing.T) {
	archive := t.TempDir()
	must(t, os.Chmod(archive, 0o777))
	for dir := archive; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if i, err := os.Stat(dir); err == nil && i.Mode().Perm()&1 == 0 {
			must(t, os.Chmod(dir, i.Mode().Perm()|0o011)) // the database runs as another user
		}
	}
	s, err := pgtest.Start("", "archive_mode = on", fmt.Sprintf("archive_command = 'cp %%p %s/%%f'", archive))
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	must(t, err)
	defer s.Stop()
	pool, name, err := s.Database(t.Context(), 1)
	must(t, err)
	pool.Close()
	at := newDatabase(t)
	at.url = s.URL(name)
	k := newKit(t, at, server.Options{})
	k.create(k.tokens["ada"], "before the backup", "first")
	b, err := s.Backup()
	must(t, err)
	k.create(k.tokens["ada"], "after the backup", "second")
	want := k.everything("ada")

	c, err := pgx.Connect(t.Context(), s.URL("postgres"))
	must(t, err)
	defer c.Close(t.Context())
	var moment string
	must(t, c.QueryRow(t.Context(), "SELECT clock_timestamp()::text").Scan(&moment))
	_, err = k.users.Remove(t.Context(), "ada")
	must(t, err)
	_, err = k.users.Erase(t.Context(), "ada")
	must(t, err)
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts", ""); a.status != http.StatusUnauthorized {
		t.Fatalf("erased: %d", a.status)
	}
	var segment string
	must(t, c.QueryRow(t.Context(), "SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment))
	eventually(t, "the log is in the archive", func() bool {
		_, err := os.Stat(filepath.Join(archive, segment))
		return err == nil
	})

	must(t, b.Configure(fmt.Sprintf("restore_command = 'cp %s/%%f %%p'", archive), "recovery_target_time = '"+moment+"'",
		"recovery_target_action = promote", "archive_mode = off"))
	must(t, os.WriteFile(filepath.Join(b.Data(), "recovery.signal"), nil, 0o600))
	must(t, b.Run())
	defer b.Stop()
	at.url = b.URL(name) + " target_session_attrs=read-write"
	var r *kit
	eventually(t, "the restored database takes writes", func() bool {
		c, err := pgx.Connect(t.Context(), at.url)
		if err == nil {
			_ = c.Close(t.Context())
		}
		return err == nil
	})
	r = joinKit(t, at, server.Options{})
	r.tokens = k.tokens
	if got := r.everything("ada"); got != want {
		t.Errorf("restored:\n%s\nwant\n%s", got, want)
	}
}
