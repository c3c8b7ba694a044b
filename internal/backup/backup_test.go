package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestBackup: what the copy shows is what the context shows: on all lines, removed ones too, with payloads, edits and
// unknown members. A second backup takes the place of the first, which goes to trash.
func TestBackup(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	m := engine.Metadata{Title: "a title", Branches: []ctxfolder.Branch{{SystemPrompt: []byte(`"` + strings.Repeat("Be kind. ", 300) + `"`)}}}
	m.Extra.SetText("of-somebody-else", "kept")
	c := kit.Must[*engine.Context](t)(s.Create(ctx, m))
	defer c.Close()
	var edited, lost, recorded uuid.UUID
	for i, body := range append(kit.Samples(), kit.LargeBody("b")) {
		at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
		switch i {
		case 0:
			edited = at.ID
		case 1:
			lost = at.ID
		case 7:
			recorded = at.ID // the log has it
		case 3:
			fork := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2))
			kit.Fill(t, fork, 3)
			if err := fork.Rewind(ctx, 3); err != nil {
				t.Fatal(err)
			}
			kit.Fill(t, fork, 2)
			gone := kit.Must[*engine.Branch](t)(fork.Fork(ctx, "gone", 4))
			kit.Fill(t, gone, 2)
			if err := c.Remove(ctx, "gone"); err != nil {
				t.Fatal(err)
			}
		case 5:
			if err := c.Seal(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := func(id uuid.UUID) string {
		return filepath.Join(dir, c.ID().String(), "messages", "branch-main", id.String()+".json")
	}
	raw := string(kit.Must[[]byte](t)(os.ReadFile(path(edited))))
	kit.Write(t, path(edited), []byte(strings.Replace(raw, "short", "longer than before", 1)))
	kit.Check(t, os.Remove(path(recorded)), c.Refresh(ctx))
	at := t.TempDir()
	to := kit.Must[*engine.Store](t)(kit.Init(filepath.Join(at, "new", "backups")))
	same := func(missing int) {
		t.Helper()
		done := kit.Must[backup.Result](t)(backup.Copy(ctx, s, c.ID(), to))
		if int(done.Missing) != missing || (done.Problem != nil) != (missing > 0) {
			t.Errorf("%+v", done)
		}
		c := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		defer c.Close()
		copied := kit.Must[*engine.Context](t)(to.Context(ctx, c.ID()))
		defer copied.Close()
		a, b := kit.Must[[]byte](t)(c.Metadata().Encode()), kit.Must[[]byte](t)(copied.Metadata().Encode())
		if string(a) != string(b) {
			t.Errorf("metadata:\n%s\nwanted\n%s", b, a)
		}
		if p, err := copied.SystemPrompt(ctx, engine.MainBranch); err != nil || len(p) < 1000 {
			t.Errorf("system prompt: %.40s, %v", p, err)
		}
		for _, line := range c.Metadata().Lines {
			counts, _, err := c.Index.Counts(line.ID)
			if err != nil {
				t.Fatal(err)
			}
			for p := line.Base; p < counts.End(); p++ {
				x, y := messageAt(t, c, line, p), messageAt(t, copied, line, p)
				if x.ID != y.ID ||
					x.Unavailable == nil && (y.Unavailable != nil || y.Edited != x.Edited || kit.BodyOf(x) != kit.BodyOf(y)) ||
					x.Unavailable != nil && y.Unavailable == nil {
					t.Errorf("line %s, position %d: %v, %v, %.60s, wanted %.60s", line.ID, p, x.Unavailable, y.Unavailable, kit.BodyOf(y), kit.BodyOf(x))
				}
			}
		}
		if problems, err := copied.Index.Problems(); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
	same(0)
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Seal(ctx), os.Remove(path(lost)))
	damaged := 0
	for _, file := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, c.ID().String(), "segments", "*.zst"))) {
		b := kit.Must[[]byte](t)(os.ReadFile(file))
		if i := bytes.Index(b, []byte(lost.String())); i >= 0 {
			b[i] ^= 1
			kit.Check(t, os.WriteFile(file, b, 0o600))
			damaged++
		}
	}
	kit.Check(t, c.Refresh(ctx))
	if damaged != 1 {
		t.Fatalf("%d segments have the message", damaged)
	}
	same(1)
	if items, _ := filepath.Glob(filepath.Join(to.Path(), "trash", "*", c.ID().String(), "metadata.json")); len(items) != 1 {
		t.Errorf("in the trash: %v", items)
	}
	// The copy is a context to go on in.
	copied := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(to.Path())).Context(ctx, c.ID()))
	defer copied.Close()
	n := kit.Must[int64](t)(copied.Active().Len(ctx))
	if more := kit.Append(t, copied.Active(), engine.Draft{Body: []byte(`{"more":1}`)}); more.Position != n {
		t.Errorf("went on at %d of %d", more.Position, n)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, link, filepath.Join(dir, "sub", "folder"), filepath.Join(link, c.ID().String())} {
		if _, err := backup.Copy(ctx, s, c.ID(), kit.Must[*engine.Store](t)(kit.Init(dir))); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("into %s: %v", dir, err)
		}
	}
	if _, err := backup.Copy(ctx, s, uuid.New(), to); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("an unknown context: %v", err)
	}
}

func messageAt(t *testing.T, c *engine.Context, line ctxfolder.Line, position int64) *engine.Message {
	t.Helper()
	entries, err := c.Index.Entries(line.ID, position, position+1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	var at engine.Place
	at.Span.Line, at.Span.Folder = line.ID, line.Folder
	return kit.Must[*engine.Message](t)(c.Loader.Load(context.Background(), at.Span, &entries[0]))
}

// TestBackupBesideWriters: a backup taken while others append to two branches and seal holds a prefix of each, with no hole
// and every message whole; also one that takes no lock.
func TestBackupBesideWriters(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(20_000))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"first":1}`)})
	kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 1))
	var group sync.WaitGroup
	for w := range 4 {
		own := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		b := kit.Must[*engine.Branch](t)(own.Branch([]string{"main", "alt"}[w%2]))
		group.Add(1)
		go func() {
			defer group.Done()
			defer own.Close()
			for i := range 150 {
				body := fmt.Appendf(nil, `{"w":%d,"n":%d,"text":"%s"}`, w, i, strings.Repeat(fmt.Sprint("text ", w, i, " "), 20+i%3*100))
				if _, err := b.Append(ctx, engine.Draft{Body: body}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	at := t.TempDir()
	var copies []*engine.Store
	reading := kit.Must[*engine.Store](t)(kit.Open(c.Store.Path(), engine.ReadOnly()))
	defer reading.Close()
	for i := range 6 {
		from := c.Store
		if i%2 == 1 {
			from = reading
		}
		to := kit.Must[*engine.Store](t)(kit.Init(filepath.Join(at, fmt.Sprint(i))))
		if done := kit.Must[backup.Result](t)(backup.Copy(ctx, from, c.ID(), to)); done.Missing > 0 {
			t.Errorf("%+v", done)
		}
		if err := c.Seal(ctx); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	group.Wait()
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for i, to := range copies {
		copied := kit.Must[*engine.Context](t)(to.Context(ctx, c.ID()))
		for _, name := range []string{"main", "alt"} {
			want := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(name)))
			got := kit.Load(t, kit.Must[*engine.Branch](t)(copied.Branch(name)))
			if len(got) > len(want) || len(got) == 0 {
				t.Fatalf("copy %d, %s: %d messages of %d", i, name, len(got), len(want))
			}
			for k, m := range got {
				if m.ID != want[k].ID || m.Unavailable != nil || kit.BodyOf(m) != kit.BodyOf(want[k]) {
					t.Fatalf("copy %d, %s, message %d: %v", i, name, k, m.Unavailable)
				}
			}
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupCut cuts the power at every operation of a first and of a second backup: the other store has the old copy
// or the new one, whole.
func TestBackupCut(t *testing.T) {
	ctx := context.Background()
	source := crashfs.New()
	s, want := kit.NewCanaryStore(t, source)
	id := kit.TestID(60000)
	for round := range 2 {
		for k := range kit.Cuts(1) {
			disk := crashfs.New()
			to := kit.Must[*engine.Store](t)(kit.Init("copy", engine.WithFS(disk)))
			if round == 1 {
				kit.Must[backup.Result](t)(backup.Copy(ctx, s, id, to))
			}
			disk.CutAt(len(disk.Ops()) + k)
			_, err := backup.Copy(ctx, s, id, to)
			done, over := err == nil, !disk.PowerCut() // what follows the backup, such as a cache, may be cut without an error
			choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
			for seed := range *kit.PowercutSeeds {
				choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
			}
			for _, choice := range choices {
				left := disk.Crash(choice)
				err := showsBackup(left, want)
				if errors.Is(err, engine.ErrNotExist) && round == 0 && !done {
					continue
				}
				if err != nil {
					t.Fatalf("round %d, power cut at operation %d (%s), disk %s: %v", round, k, kit.LastOp(disk), choice, err)
				}
			}
			if over {
				if !done {
					t.Fatal(err)
				}
				break
			}
		}
	}
}

func showsBackup(disk *crashfs.FS, want kit.Transcript) error {
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), kit.TestID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	if problems, err := c.Index.Problems(); err != nil || len(problems) > 0 {
		return fmt.Errorf("%v, %w", problems, err)
	}
	return kit.VerifyAllBut(disk, want, kit.TestID(2), false)
}
