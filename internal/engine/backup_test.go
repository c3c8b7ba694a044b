package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestBackup: what the copy shows is what the context shows: on all lines, removed ones too, with payloads, edits and unknown
// members. A second backup takes the place of the first, which goes to trash.
func TestBackup(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(1<<10))
	m := Metadata{Title: "a title", Branches: []ctxfolder.Branch{{SystemPrompt: []byte(`"` + strings.Repeat("Be kind. ", 300) + `"`)}}}
	m.Extra.SetText("of-somebody-else", "kept")
	c := must[*Context](t)(s.Create(ctx, m))
	defer c.Close()
	var edited, lost, recorded uuid.UUID
	for i, body := range append(samples(), largeBody("b")) {
		at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(body)}))
		switch i {
		case 0:
			edited = at.ID
		case 1:
			lost = at.ID
		case 7:
			recorded = at.ID // the journal has it
		case 3:
			fork := must[*Branch](t)(c.Active().Fork(ctx, "alt", 2))
			fill(t, fork, 3)
			if err := fork.Rewind(ctx, 3); err != nil {
				t.Fatal(err)
			}
			fill(t, fork, 2)
			gone := must[*Branch](t)(fork.Fork(ctx, "gone", 4))
			fill(t, gone, 2)
			if err := c.Remove(ctx, "gone"); err != nil {
				t.Fatal(err)
			}
		case 5:
			if err := c.Fold(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := func(id uuid.UUID) string {
		return filepath.Join(dir, c.ID().String(), "messages", "branch-main", id.String()+".json")
	}
	raw := string(must[[]byte](t)(os.ReadFile(path(edited))))
	write(t, path(edited), []byte(strings.Replace(raw, "short", "longer than before", 1)))
	check(t, os.Remove(path(recorded)), c.Refresh(ctx))
	at := t.TempDir()
	to := must[*Store](t)(Init(filepath.Join(at, "new", "backups")))
	same := func(missing int) {
		t.Helper()
		done := must[BackedUp](t)(s.Backup(ctx, c.ID(), to))
		if int(done.Missing) != missing || (done.Problem != nil) != (missing > 0) {
			t.Errorf("%+v", done)
		}
		copied := must[*Context](t)(to.Context(ctx, c.ID()))
		defer copied.Close()
		a, b := must[[]byte](t)(c.Metadata().Encode()), must[[]byte](t)(copied.Metadata().Encode())
		if string(a) != string(b) {
			t.Errorf("metadata:\n%s\nwanted\n%s", b, a)
		}
		if p, err := copied.SystemPrompt(ctx, MainBranch); err != nil || len(p) < 1000 {
			t.Errorf("system prompt: %.40s, %v", p, err)
		}
		for _, line := range c.Metadata().Lines {
			counts, _, err := c.log.Counts(line.ID)
			if err != nil {
				t.Fatal(err)
			}
			for p := line.Base; p < counts.End(); p++ {
				x, y := messageAt(t, c, line, p), messageAt(t, copied, line, p)
				if x.ID != y.ID ||
					x.Unavailable == nil && (y.Unavailable != nil || y.Edited || bodyOf(x) != bodyOf(y)) ||
					x.Unavailable != nil && y.Unavailable == nil {
					t.Errorf("line %s, position %d: %v, %v, %.60s, wanted %.60s", line.ID, p, x.Unavailable, y.Unavailable, bodyOf(y), bodyOf(x))
				}
			}
		}
		if problems, err := copied.log.Problems(); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
	same(0)
	if got := len(blobFiles(t, to.Path())); got != len(blobFiles(t, dir)) {
		t.Errorf("%d blobs, wanted %d", got, len(blobFiles(t, dir)))
	}
	fill(t, c.Active(), 3)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	journals, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "journal-1.jsonl"))
	for _, j := range append(journals, path(lost)) {
		if err := os.Remove(j); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	same(1)
	if items, _ := filepath.Glob(filepath.Join(to.Path(), "trash", "*", c.ID().String(), "metadata.json")); len(items) != 1 {
		t.Errorf("in the trash: %v", items)
	}
	// The copy is a context to go on in.
	copied := must[*Context](t)(must[*Store](t)(Open(to.Path())).Context(ctx, c.ID()))
	defer copied.Close()
	n := must[int64](t)(copied.Active().Len(ctx))
	if more := must[Appended](t)(copied.Active().Append(ctx, Draft{Body: []byte(`{"more":1}`)})); more.Position != n {
		t.Errorf("went on at %d of %d", more.Position, n)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, link, filepath.Join(dir, "sub", "folder"), filepath.Join(link, c.ID().String())} {
		if _, err := s.Backup(ctx, c.ID(), must[*Store](t)(Init(dir))); !errors.Is(err, ErrInvalid) {
			t.Errorf("into %s: %v", dir, err)
		}
	}
	if _, err := s.Backup(ctx, uuid.New(), to); !errors.Is(err, ErrNotExist) {
		t.Errorf("an unknown context: %v", err)
	}
}

func messageAt(t *testing.T, c *Context, line ctxfolder.Line, position int64) *Message {
	t.Helper()
	entries, err := c.log.Entries(line.ID, position, position+1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	var at place
	at.span.Line, at.span.Folder = line.ID, line.Folder
	return must[*Message](t)(c.load.Load(context.Background(), at.span, &entries[0]))
}

// TestBackupBesideWriters: a backup taken while others append to two branches, fold and rename holds a prefix of each, with no
// hole and every message whole.
func TestBackupBesideWriters(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t, WithTextThreshold(1<<10), WithFoldBytes(20_000))
	must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"first":1}`)}))
	must[*Branch](t)(c.Active().Fork(ctx, "alt", 1))
	var group sync.WaitGroup
	for w := range 4 {
		own := must[*Context](t)(c.store.Context(ctx, c.ID()))
		b := must[*Branch](t)(own.Branch([]string{"main", "alt"}[w%2]))
		group.Add(1)
		go func() {
			defer group.Done()
			defer own.Close()
			for i := range 150 {
				body := fmt.Appendf(nil, `{"w":%d,"n":%d,"text":"%s"}`, w, i, strings.Repeat(fmt.Sprint("text ", w, i, " "), 20+i%3*100))
				if _, err := b.Append(ctx, Draft{Body: body}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	at := t.TempDir()
	var copies []*Store
	for i := range 5 {
		to := must[*Store](t)(Init(filepath.Join(at, fmt.Sprint(i))))
		if done := must[BackedUp](t)(c.store.Backup(ctx, c.ID(), to)); done.Missing > 0 {
			t.Errorf("%+v", done)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	group.Wait()
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for i, to := range copies {
		copied := must[*Context](t)(to.Context(ctx, c.ID()))
		for _, name := range []string{"main", "alt"} {
			want := must[[]*Message](t)(must[*Branch](t)(c.Branch(name)).Load(ctx))
			got := must[[]*Message](t)(must[*Branch](t)(copied.Branch(name)).Load(ctx))
			if len(got) > len(want) || len(got) == 0 {
				t.Fatalf("copy %d, %s: %d messages of %d", i, name, len(got), len(want))
			}
			for k, m := range got {
				if m.ID != want[k].ID || m.Unavailable != nil || bodyOf(m) != bodyOf(want[k]) {
					t.Fatalf("copy %d, %s, message %d: %v", i, name, k, m.Unavailable)
				}
			}
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupWhileABranchIsRenamed: a branch whose folder gets another name during the copy is in it under the old one.
func TestBackupWhileABranchIsRenamed(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t)
	for range 2 { // what is tried is in no journal any more
		fill(t, c.Active(), 5)
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	}
	to := must[*Store](t)(Init(t.TempDir()))
	own := must[*Context](t)(c.store.Context(ctx, c.ID()))
	defer own.Close()
	b := &backingUp{c: own, to: to}
	if err := b.snapshot(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Rename(ctx, MainBranch, "other"); err != nil {
		t.Fatal(err)
	}
	entries, err := own.log.Entries(b.m.Lines[0].ID, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if _, _, err := b.read(&b.m.Lines[0], &entries[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupCut cuts the power at every operation of a first and of a second backup: the other store has the old copy or the
// new one, whole.
func TestBackupCut(t *testing.T) {
	ctx := context.Background()
	source := crashfs.New()
	s, want := canaries(t, source)
	id := testID(60000)
	for round := range 2 {
		for k := 1; ; k += stride() {
			disk := crashfs.New()
			to := must[*Store](t)(Init("copy", withFS(disk)))
			if round == 1 {
				must[BackedUp](t)(s.Backup(ctx, id, to))
			}
			disk.CutAt(len(disk.Ops()) + k)
			_, err := s.Backup(ctx, id, to)
			over := err == nil && !disk.PowerCut()
			choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
			for seed := range *powercutSeeds {
				choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
			}
			for _, choice := range choices {
				left := disk.Crash(choice)
				err := showsBackup(left, want)
				if errors.Is(err, ErrNotExist) && round == 0 && !over {
					continue
				}
				if err != nil {
					t.Fatalf("round %d, power cut at operation %d (%s), disk %s: %v", round, k, lastOp(disk), choice, err)
				}
			}
			if over {
				break
			}
			if err == nil {
				t.Fatal("the backup did not tell that the power is gone")
			}
		}
	}
}

func showsBackup(disk *crashfs.FS, want said) error {
	s, err := openCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), testID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	if problems, err := c.log.Problems(); err != nil || len(problems) > 0 {
		return fmt.Errorf("%v, %w", problems, err)
	}
	return showsAllBut(disk, want, testID(2), false)
}
