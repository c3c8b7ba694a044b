package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// legacyOnDisk puts a legacy context into a new store, durably: a file, or the folder of a split one.
func legacyOnDisk(t *testing.T, split bool) (disk *crashfs.FS, id uuid.UUID, text string) {
	t.Helper()
	disk = crashfs.New()
	s, err := kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithTextThreshold(1<<10))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	id = uuid.MustParse(legacytest.ID(500))
	text = strings.Replace(legacytest.Whole(id.String()), `"text":"t"`, `"text":"`+strings.Repeat("long ", 400)+`"`, 1)
	if !split {
		err = vfs.WriteSynced(disk, id.String()+".json", []byte(text))
	} else {
		err = legacy.WriteFolder(disk, id.String(), func(to legacy.Sink) error {
			return to.Member(legacy.Quote("id"), legacy.Quote(id.String()))
		})
		node := func(n int, parent string) string {
			message := `{"role":"User","content":[{"type":"text","text":"t"}],"metadata":null}`
			return fmt.Sprintf(`{"id":%q,"message":%s,"parent_id":%s}`, legacytest.ID(n), message, parent)
		}
		err = errors.Join(err, disk.Replace(id.String()+"/context.json", []byte(legacytest.Split(text))), disk.SyncDir(id.String()))
		for n, parent := range map[int]string{1: "null", 2: `"` + legacytest.ID(1) + `"`} {
			err = errors.Join(err, vfs.WriteSynced(disk, id.String()+"/messages_pool/"+legacytest.ID(n)+".json", []byte(node(n, parent))))
		}
		err = errors.Join(err, disk.SyncDir(id.String()+"/messages_pool"))
	}
	if err = errors.Join(err, disk.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	return disk, id, text
}

// TestMigrateCut cuts the power at every operation of a migration: there is the legacy context, unharmed, or the whole
// new one; and who asks for the context then gets it.
func TestMigrateCut(t *testing.T) {
	ctx := context.Background()
	for _, split := range []bool{false, true} {
		states := 0
		for k := 1; ; k++ {
			disk, id, _ := legacyOnDisk(t, split)
			s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
			disk.CutAt(len(disk.Ops()) + k)
			c, err := s.Context(ctx, id)
			if err == nil {
				c.Close()
			}
			done := !disk.PowerCut()
			if done && err != nil {
				t.Fatal(err)
			}
			choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
			for seed := range 12 { // so many that each order of two renames is met
				choices = append(choices, crashfs.Random(uint64(100*k+seed)))
			}
			for _, choice := range choices {
				states++
				if err := afterMigrateCut(disk.Crash(choice), id, split, done); err != nil {
					t.Fatalf("power cut at operation %d (%s), disk %s, split %v: %v\n%s",
						k, kit.LastOp(disk), choice, split, err, disk.Crash(choice).Dump())
				}
			}
			if done {
				break
			}
		}
		t.Logf("%d disk states", states)
	}
}

// TestGivingWayCut cuts the power at every operation of a migration that backs out, because another program wrote the
// legacy file, durably, in the last moment. What that wrote is there: it becomes the context, or stays beside it.
func TestGivingWayCut(t *testing.T) {
	ctx := context.Background()
	states := 0
	for k := 1; ; k++ {
		disk, id, text := legacyOnDisk(t, false)
		name, written := id.String()+".json", false
		s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(meddlingFS{disk, func(from, _ string) {
			if from != name || written {
				return
			}
			written = true
			kit.Check(t, disk.Replace(name, []byte(strings.Replace(text, "User", "Tool", 1))), disk.SyncDir("."))
			disk.CutAt(len(disk.Ops()) + k)
		}}), engine.WithSealBytes(-1)))
		_, err := s.Context(ctx, id)
		done := !disk.PowerCut()
		if !written || done && !errors.Is(err, legacy.ErrChanged) {
			t.Fatalf("written %v, %v", written, err)
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range 12 {
			choices = append(choices, crashfs.Random(uint64(100*k+seed)))
		}
		for _, choice := range choices {
			states++
			after := disk.Crash(choice)
			err := afterMigrateCut(after, id, false, false)
			if err == nil {
				err = showsTool(after, id)
			}
			if err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v\n%s", k, kit.LastOp(disk), choice, err, disk.Crash(choice).Dump())
			}
		}
		if done {
			t.Logf("%d disk states", states)
			return
		}
	}
}

func showsTool(disk *crashfs.FS, id uuid.UUID) error {
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), id)
	if err != nil {
		return err
	}
	defer c.Close()
	ms, err := c.Active().Load(context.Background())
	if err != nil || strings.Contains(kit.BodyOf(ms[0])+kit.BodyOf(ms[1]), "Tool") {
		return err
	}
	// The new context was there, durably, when the other program wrote, and the power went before that was noticed.
	for _, name := range []string{id.String() + ".json", id.String() + ".json.old"} {
		if b, err := vfs.ReadFile(disk, name, 1<<20); err == nil && bytes.Contains(b, []byte("Tool")) {
			return nil
		}
	}
	return errors.New("what was written last is not there")
}

func afterMigrateCut(disk *crashfs.FS, id uuid.UUID, split, done bool) error {
	ctx := context.Background()
	name := id.String() + ".json"
	if split {
		name = id.String()
	}
	found := ""
	for _, at := range []string{name, name + ".old"} {
		f, err := legacy.Open(disk, at, legacy.Options{})
		if err != nil {
			continue
		}
		if f.Len() != 2 || len(f.Branches) != 1 {
			return fmt.Errorf("%s is another one", at)
		}
		f.Close()
		found += at + " "
	}
	if strings.Count(found, " ") != 1 || done && !strings.Contains(found, ".old") {
		return fmt.Errorf("of the old one there is %q", found)
	}
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	for range 2 {
		c, err := s.Context(ctx, id)
		if err != nil {
			return err
		}
		if c.Legacy() != "" {
			return fmt.Errorf("it is a view")
		}
		n := 0
		for m, err := range c.Active().Messages(ctx) {
			if err != nil {
				return err
			}
			if body, err := m.Body(ctx); err != nil || m.ID.String() != legacytest.ID(n+1) || len(body) < 50 {
				return fmt.Errorf("message %d: %s, %s, %w", n, m.ID, body, err)
			}
			n++
		}
		if n != 2 {
			return fmt.Errorf("%d messages", n)
		}
		if err := errors.Join(c.Close()); err != nil {
			return err
		}
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if f.Severity == "error" || err != nil {
			return fmt.Errorf("check: %+v, %w", f, err)
		}
	}
	return nil
}

// TestMigrateTogether: many who ask for a legacy context at once get one migrated context.
func TestMigrateTogether(t *testing.T) {
	ctx := context.Background()
	_, dir := kit.NewStore(t)
	id := uuid.MustParse(legacytest.ID(500))
	if err := os.WriteFile(dir+"/"+id.String()+".json", []byte(legacytest.Whole(id.String())), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make(chan uuid.UUID)
	failed := make(chan error)
	const many = 8
	for range many {
		go func() {
			s, err := kit.Open(dir, engine.WithLockTimeout(time.Minute))
			if err != nil {
				failed <- err
				return
			}
			defer s.Close()
			c, err := s.Context(ctx, id)
			if err != nil {
				failed <- err
				return
			}
			defer c.Close()
			lines <- c.Metadata().Lines[0].ID
		}()
	}
	first := uuid.Nil
	for range many {
		select {
		case err := <-failed:
			t.Error(err)
		case l := <-lines:
			if first == uuid.Nil {
				first = l
			}
			if l != first {
				t.Errorf("two contexts: %s and %s", first, l)
			}
		}
	}
	if entries := kit.Must[[]os.DirEntry](t)(os.ReadDir(dir + "/staging")); len(entries) > 0 {
		t.Errorf("left in staging: %v", entries)
	}
}

// alteringFS is a file system in which segments come to hold something else than what is written.
type alteringFS struct{ vfs.FS }

type alteringFile struct{ vfs.File }

func (a alteringFS) Sub(name string) (vfs.FS, error) {
	sub, err := a.FS.Sub(name)
	return alteringFS{sub}, err
}

func (a alteringFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := a.FS.OpenFile(name, flag)
	if err != nil || flag&os.O_CREATE == 0 || !strings.Contains(name, ctxfolder.Segments) {
		return f, err
	}
	return alteringFile{f}, nil
}

func (f alteringFile) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return f.File.Write(b)
}

// TestMigrateInvalid: where the new context is not what was read, there is none, and the legacy one stays.
func TestMigrateInvalid(t *testing.T) {
	ctx := context.Background()
	disk, id, text := legacyOnDisk(t, false)
	s := kit.Must[*engine.Store](t)(kit.Open("disk", kit.Manual(1<<10, engine.WithFS(alteringFS{disk}))...))
	defer s.Close()
	if c, err := s.Context(ctx, id); err == nil {
		t.Errorf("migrated: %v", c.Metadata())
	}
	if b, err := vfs.ReadFile(disk, id.String()+".json", 1<<20); err != nil || string(b) != text {
		t.Errorf("the legacy context: %.50s, %v", b, err)
	}
	for e, err := range disk.ReadDir("staging") {
		t.Error("left in staging:", e, err)
	}
	if _, err := disk.Lstat(id.String()); err == nil {
		t.Error("half a context")
	}
}
