package storetest_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// read adds up what calls read: files opened, and bytes asked for.
func (k *counted) read(f func()) (opened []string, bytes int64) { return readIn(k.during(f)) }

func readIn(calls []crashfs.Op) (opened []string, bytes int64) {
	for _, o := range calls {
		switch o.Kind {
		case crashfs.KindOpen:
			if path.Ext(o.Path) != "" { // folders have none
				opened = append(opened, o.Path)
			}
		case crashfs.KindRead:
			bytes += o.Size
		}
	}
	return opened, bytes
}

// TestReadCosts: what opening, resuming, a range and a look-up by id read does not depend on the length of the branch, but
// for the pages of a table in which an id is looked up. Opening reads metadata.json and the log, which has room for 64 KiB;
// the others read frames of a segment, and its tables.
func TestReadCosts(t *testing.T) {
	ctx := context.Background()
	type cost struct {
		files int
		bytes int64
	}
	costs := map[string][]cost{}
	for _, n := range []int{5_000, 20_000} {
		k := newCounted(t, engine.WithSealBytes(-1))
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
		for range n / 1000 {
			kit.Fill(t, c.Active(), 1000)
		}
		if err := c.Seal(ctx); err != nil {
			t.Fatal(err)
		}
		kit.Fill(t, c.Active(), 60)
		if err := c.Seal(ctx); err != nil {
			t.Fatal(err)
		}
		id := kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 500, 501))[0].ID
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var open *engine.Context
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"open", func() {
				open = kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
				kit.Must[[]engine.BranchInfo](t)(open.Branches(ctx))
			}},
			{"resume", func() { kit.Must[[]*engine.Message](t)(open.Active().Last(ctx, 50)) }},
			{"range", func() { kit.Must[[]*engine.Message](t)(open.Active().Range(ctx, int64(n/2), int64(n/2)+50)) }},
			{"by id", func() { kit.Must[*engine.Message](t)(open.Active().Message(ctx, id)) }},
			{"fork", func() { kit.Must[*engine.Branch](t)(open.Active().Fork(ctx, "f", int64(n/2))) }},
		} {
			calls := k.during(step.do)
			files, bytes := readIn(calls)
			costs[step.name] = append(costs[step.name], cost{len(files), bytes})
			if step.name == "resume" {
				checkOneRead(t, n, calls)
			}
		}
		if err := open.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, most := range map[string]cost{
		"open": {2, 70_000}, "resume": {1, 60_000}, "range": {1, 300_000}, "by id": {2, 30_000}, "fork": {0, 2_000},
	} {
		few, many := costs[name][0], costs[name][1]
		pages := int64(0) // two more of 512 ids each, of four times as many
		if name == "by id" {
			pages = 2 * 2_600
		}
		if many.files > few.files || many.bytes > few.bytes+few.bytes/10+pages {
			t.Errorf("%s: %+v of 5,000 messages, %+v of 20,000", name, few, many)
		}
		if many.files > most.files || many.bytes > most.bytes {
			t.Errorf("%s: %+v, wanted no more than %+v", name, many, most)
		}
	}
}

// checkOneRead checks that the newest messages were read from a segment in one piece, and not from their files.
func checkOneRead(t *testing.T, n int, calls []crashfs.Op) {
	t.Helper()
	reads := 0
	for _, o := range calls {
		switch {
		case o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "messages/") && path.Ext(o.Path) != "":
			t.Errorf("%d messages: a resume reads %s", n, o.Path)
		case o.Kind == crashfs.KindRead && strings.Contains(o.Path, "segments/") && o.Size > 10_000:
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("%d messages: a resume reads %d times from a segment", n, reads)
	}
}

// TestBlobBytesCosts: what the blobs of a context take is told without a look at messages that have none.
func TestBlobBytesCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1), engine.WithTextThreshold(5000))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 100)
	fork := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "f", 50))
	kit.Append(t, fork, engine.Draft{Body: []byte(`{"text":"` + strings.Repeat("x", 5000) + `"}`)})
	kit.Fill(t, fork, 20)
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	looked := 0
	var size int64
	calls := k.during(func() { size = kit.Must[int64](t)(c.BlobBytes(ctx)) })
	for _, o := range calls {
		if strings.Contains(o.Path, "messages/") {
			looked++
		}
	}
	if size == 0 || looked > 3 {
		t.Errorf("%d bytes, %d calls about message files", size, looked)
	}
}

// TestListCosts: a list that knows its contexts opens none of their files, and reads no folder.
func TestListCosts(t *testing.T) {
	k := newCounted(t)
	for range 3 {
		c := kit.Must[*engine.Context](t)(k.store.Create(context.Background(), engine.Metadata{}))
		kit.Fill(t, c.Active(), 3)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The disk's clock stands in the past: what changed there is old enough.
	l := listing.New(k.store)
	want := kit.ListBy(t, l)
	kit.ListBy(t, l) // notes that the store's folder has these contexts and no others
	var got []listing.Summary
	files, _ := k.read(func() { got = kit.ListBy(t, l) })
	if len(files) != 0 || len(got) != len(want) {
		t.Errorf("the third list of %d contexts opens %v", len(got), files)
	}
	again := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(k.disk)))
	files, _ = k.read(func() { got = kit.List(t, again) })
	if len(files) != 1 || path.Base(files[0]) != listing.SummariesFile || len(got) != len(want) {
		t.Errorf("the first list of %d contexts opens %v", len(got), files)
	}
	for _, step := range []struct {
		name   string
		change func()
		reads  bool
	}{
		{"nothing", func() {}, false},
		{"a new context", func() {
			c := kit.Must[*engine.Context](t)(k.store.Create(context.Background(), engine.Metadata{}))
			kit.Check(t, c.Close())
			want = append(want, listing.Summary{ID: c.ID()})
		}, true},
		{"the next list", func() {}, true}, // the last one replaced the file
		{"nothing more", func() {}, false},
		{"a deleted context", func() {
			kit.Must[engine.TrashItem](t)(k.store.Delete(context.Background(), want[0].ID))
			want = want[1:]
		}, true},
	} {
		step.change()
		s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(k.disk)))
		calls := k.during(func() { got = kit.List(t, s) })
		reads := slices.ContainsFunc(calls, func(o crashfs.Op) bool { return o.Kind == crashfs.KindReadDir })
		if reads != step.reads || len(got) != len(want) || got[0].ID != want[0].ID {
			t.Errorf("%s: the list has %d contexts, want %d; it read the folder: %v", step.name, len(got), len(want), reads)
		}
	}
}

// TestListCostsOfFewChanges: a list does not replace the cache for one context, but after some processes read that
// context again, it does.
func TestListCostsOfFewChanges(t *testing.T) {
	k := newCounted(t)
	var c *engine.Context
	for range 3 * listing.RowsPerRead {
		c = kit.Must[*engine.Context](t)(k.store.Create(context.Background(), engine.Metadata{}))
		kit.Check(t, c.Close())
	}
	kit.List(t, k.store)
	c = kit.Must[*engine.Context](t)(k.store.Context(context.Background(), c.ID()))
	kit.Fill(t, c.Active(), 1)
	kit.Check(t, c.Close())
	var replaced []bool
	for range 6 {
		s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(k.disk)))
		calls := k.during(func() {
			l := listing.New(s)
			if all := kit.ListBy(t, l); all[len(all)-1].Messages != 1 {
				t.Errorf("the list has %d messages of the context that changed", all[len(all)-1].Messages)
			}
			l.Close()
			kit.Check(t, s.Close())
		})
		renames := func(o crashfs.Op) bool { return o.Kind == crashfs.KindRename }
		replaced = append(replaced, slices.ContainsFunc(calls, renames))
	}
	if want := []bool{false, false, false, true, false, false}; !slices.Equal(replaced, want) {
		t.Errorf("lists that replaced the cache: %v, want %v", replaced, want)
	}
}

// TestListCostsWithConditions: a list examines no context that did not meet its conditions before. After a full check,
// that holds for other processes, too.
func TestListCostsWithConditions(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t)
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	kit.Check(t, c.Close())
	kit.List(t, k.store)
	kit.ForgetListCheck(t, k.disk)
	list := func() (examined bool) {
		s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(k.disk)))
		calls := k.during(func() {
			for sum, err := range listing.New(s).List(ctx, listing.ListOptions{Labels: map[string]string{"user": "ada"}}) {
				t.Fatal(sum, err)
			}
		})
		for _, o := range calls {
			examined = examined || strings.Contains(o.Path, c.ID().String())
		}
		return examined
	}
	if !list() {
		t.Error("the list did not make the full check that was due")
	}
	if list() {
		t.Error("a list examined the context right after a full check")
	}
}

// TestMetadataSyncs: each change of the metadata is one fdatasync of the log, and nothing else is synced. It covers the
// messages of other handles, too.
func TestMetadataSyncs(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	other := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
	defer other.Close()
	kit.Fill(t, c.Active(), 10)
	for _, change := range []struct {
		name string
		do   func(c *engine.Context) error
	}{
		{"fork", func(c *engine.Context) error { _, err := c.Active().Fork(ctx, "alt", 5); return err }},
		{"rewind", func(c *engine.Context) error { return kit.Must[*engine.Branch](t)(c.Branch("alt")).Rewind(ctx, 3) }},
		{"rename", func(c *engine.Context) error { return c.Rename(ctx, "alt", "beta") }},
		{"title", func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "t"; return nil })
		}},
		{"append with state", func(c *engine.Context) error {
			_, err := c.Commit(ctx, func(tx *engine.Tx) error {
				_ = tx.Append("beta", []engine.Draft{{Body: []byte(`{"role":"user"}`)}})
				return tx.Update(func(m *engine.Metadata) error { m.State = []byte(`{"n":1}`); return nil })
			})
			return err
		}},
		{"switch", func(c *engine.Context) error { return c.Switch(ctx, "beta") }},
		{"another handle's fork", func(*engine.Context) error { _, err := other.Active().Fork(ctx, "alt 2", 2); return err }},
		{"remove", func(*engine.Context) error { return other.Remove(ctx, "alt 2") }},
	} {
		calls := k.during(func() { kit.Check(t, change.do(c)) })
		if s := syncs(calls); len(s) != 1 || !strings.HasPrefix(s[0], "datasync log-") {
			t.Errorf("%s: syncs %q", change.name, s)
		}
	}
}
