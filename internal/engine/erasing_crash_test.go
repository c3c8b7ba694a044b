package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// singing reports the files on a disk that hold the canary, blobs decompressed.
func singing(disk *crashfs.FS) (paths []string, err error) {
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	err = walkFiles(disk, ".", func(path string) error {
		b, err := vfs.ReadFile(disk, path, 1<<30)
		if err == nil && strings.HasSuffix(path, ".zst") {
			b, err = z.DecodeAll(b, nil)
		}
		if bytes.Contains(b, []byte(canary)) {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// erasable messages on a disk: one that is replaced and shared by a fork, with payloads, among others; one in the live journal.
func canaries(t *testing.T, disk *crashfs.FS) (s *Store, want said) {
	t.Helper()
	ctx := context.Background()
	s, err := Init("disk", withFS(disk), WithFoldBytes(-1), withRetain(2), WithTextThreshold(1<<10))
	if err != nil {
		t.Fatal(err)
	}
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	add := func(b *Branch, n int, body string) {
		must[Appended](t)(b.Append(ctx, Draft{ID: testID(n), Body: []byte(body)}))
	}
	kept := `{"kept":"` + strings.Repeat("kept ", 400) + `"}`
	add(c.Active(), 1, kept)
	add(c.Active(), 2, string(secret(3000)))
	if err := c.Active().Replace(ctx, testID(2), Draft{Body: secret(70_000)}); err != nil {
		t.Fatal(err)
	}
	if err := c.log.Fold(ctx, false); err != nil {
		t.Fatal(err)
	}
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 2))
	add(alt, 3, kept)
	add(c.Active(), 4, `{"n":4}`)
	if err := c.Active().Replace(ctx, testID(2), Draft{Body: secret(10)}, Shared()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.blobs.Put(secret(4000)); err != nil { // an edit by hand left it
		t.Fatal(err)
	}
	return s, said{
		"main": {{testID(1), kept}, {testID(2), ""}, {testID(4), `{"n":4}`}},
		"alt":  {{testID(1), kept}, {testID(2), ""}, {testID(3), kept}},
	}
}

// TestEraseCut cuts the power at every operation of an erase. Whatever the disk holds then, the other messages are there; the
// message is what it was or erased; and to erase again leaves nothing of it, also after another cut.
func TestEraseCut(t *testing.T) {
	t.Parallel()
	states := 0
	for k := 1; ; k += stride() {
		disk := crashfs.New()
		s, want := canaries(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		_, err := erase(s, testID(60000), testID(2), EraseOptions{Shared: true})
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *powercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			if err := verifyErase(disk.Crash(choice), want, over); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, lastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

func verifyErase(disk *crashfs.FS, want said, over bool) error {
	if err := showsAllBut(disk, want, testID(2), over); err != nil {
		return err
	}
	s, err := openCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if over {
		if found, err := singing(disk); err != nil || len(found) > 0 {
			return fmt.Errorf("after the erase: the canary is in %v, %w", found, err)
		}
	}
	if _, err := erase(s, testID(60000), testID(2), EraseOptions{Shared: true}); err != nil {
		return fmt.Errorf("erasing again: %w", err)
	}
	for _, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if found, err := singing(d); err != nil || len(found) > 0 {
			return fmt.Errorf("after erasing again: the canary is in %v, %w", found, err)
		}
		if err := showsAllBut(d, want, testID(2), true); err != nil {
			return fmt.Errorf("after erasing again: %w", err)
		}
	}
	if err := settles(context.Background(), s); err != nil {
		return fmt.Errorf("after erasing again: %w", err)
	}
	return showsAllBut(disk, want, testID(2), true)
}

// showsAllBut reports an error unless the context shows what is wanted, but for one message that is erased, or may be.
func showsAllBut(disk *crashfs.FS, want said, but uuid.UUID, erased bool) error {
	s, err := openCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	c, err := s.Context(ctx, testID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	for name, messages := range want {
		b, err := c.Branch(name)
		if err != nil {
			return err
		}
		got, err := b.Load(ctx)
		if err != nil || len(got) != len(messages) {
			return fmt.Errorf("%s: %d messages, wanted %d, %w", name, len(got), len(messages), err)
		}
		for i, m := range got {
			switch {
			case m.ID != messages[i].id:
				return fmt.Errorf("%s: position %d has %s", name, i, m.ID)
			case m.ID != but && (m.Unavailable != nil || bodyOf(m) != messages[i].body):
				return fmt.Errorf("%s: message %d: %w", name, i, m.Unavailable)
			case m.ID == but && (erased || m.Unavailable != nil) && !errors.Is(m.Unavailable, ErrErased):
				return fmt.Errorf("%s: the message is neither there nor erased: %w", name, m.Unavailable)
			case m.ID == but && m.Unavailable == nil && bodyOf(m) != string(secret(10)):
				return fmt.Errorf("%s: the message is %.40q", name, bodyOf(m))
			}
		}
	}
	return nil
}
