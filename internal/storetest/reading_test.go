package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestDamagedFileByID: a look-up finds a message by its file, but serves the file only if its checksum is right.
func TestDamagedFileByID(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	kit.Fill(t, c.Active(), 3)
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	for i, m := range kit.Load(t, c.Active()) {
		want := kit.BodyOf(m)
		file := filepath.Join(dir, "messages", "branch-main", m.ID.String()+".json")
		raw := kit.Must[[]byte](t)(os.ReadFile(file))
		info := kit.Must[os.FileInfo](t)(os.Stat(file))
		at := bytes.LastIndexByte(raw, 'n')
		raw[at]++ // in the body: the envelope stays valid
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		other := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		got := kit.Must[*engine.Message](t)(other.Active().Message(ctx, m.ID))
		if got.Unavailable != nil || kit.BodyOf(got) != want {
			t.Errorf("message %d: %v, %s instead of %s", i, got.Unavailable, kit.BodyOf(got), want)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIterationLeavesThePool: an iteration takes messages from the pool, but puts none into it.
func TestIterationLeavesThePool(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t)
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 40)
	read := func() (n int64) {
		t.Helper()
		before := c.Loader.Reads()
		position := int64(0)
		for m, err := range c.Active().Messages(ctx) {
			if err != nil || m.Unavailable != nil || m.Position != position {
				t.Fatalf("message %d at position %d: %v, %v", m.Position, position, m.Unavailable, err)
			}
			position++
		}
		if position != 40 {
			t.Fatalf("%d messages", position)
		}
		return c.Loader.Reads() - before
	}
	if n := read(); n != 40 || k.store.Pool.Size() > 0 {
		t.Errorf("%d reads, and the pool holds %d bytes", n, k.store.Pool.Size())
	}
	kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 5, 30))
	if n := read(); n != 15 {
		t.Errorf("%d reads beside 25 messages in the pool", n)
	}
}

// TestIterationReadsLittleAhead: an iteration reads ahead, but only a few messages for a caller that may stop at the
// first.
func TestIterationReadsLittleAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		k := newCounted(t)
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 400)
		kit.Check(t, c.Flush(ctx))
		before := c.Loader.Reads()
		for m, err := range c.Active().Messages(ctx) {
			if err != nil || m.Unavailable != nil {
				t.Fatal(err, m.Unavailable)
			}
			// The caller has the first batch of eight, two are ready, and the reader waits with one more.
			if synctest.Wait(); c.Loader.Reads()-before != 4*8 {
				t.Errorf("%d messages read when the caller has the first", c.Loader.Reads()-before)
			}
			break
		}
		if n := c.Loader.Reads() - before; n != 4*8 {
			t.Errorf("%d messages read for one", n)
		}
		kit.Check(t, c.Close(), k.store.Close())
	})
}

// TestIterationHoldsOneLargeMessage: an iteration does not read a message of tens of MiB before the caller is done with
// the one before.
func TestIterationHoldsOneLargeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(crashfs.New()), engine.WithTextThreshold(-1), engine.WithPool(0)))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		body := []byte(`{"text":"` + strings.Repeat("a", 17<<20) + `"}`)
		for range 4 {
			kit.Append(t, c.Active(), engine.Draft{Body: body})
		}
		kit.Check(t, c.Flush(ctx))
		before, n := c.Loader.Reads(), int64(0)
		for m, err := range c.Active().Messages(ctx) {
			if err != nil || m.Unavailable != nil {
				t.Fatal(err, m.Unavailable)
			}
			n++
			if synctest.Wait(); c.Loader.Reads()-before != n {
				t.Errorf("%d messages read when the caller has %d", c.Loader.Reads()-before, n)
			}
		}
		if n != 4 {
			t.Errorf("%d messages", n)
		}
		kit.Check(t, c.Close(), s.Close())
	})
}
