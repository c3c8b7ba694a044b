package storetest_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// counted is a store whose calls to the file system are seen.
type counted struct {
	disk  *crashfs.FS
	store *engine.Store
	mu    sync.Mutex
	calls []crashfs.Op
}

func newCounted(t *testing.T, opts ...engine.Option) *counted {
	t.Helper()
	k := &counted{disk: crashfs.New()}
	s, err := kit.Init("disk", append(opts, engine.WithFS(k.disk))...)
	if err != nil {
		t.Fatal(err)
	}
	k.store = s
	k.disk.Fail(func(o crashfs.Op) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.calls = append(k.calls, o)
		return nil
	})
	return k
}

// during returns the calls that f makes.
func (k *counted) during(f func()) []crashfs.Op {
	k.mu.Lock()
	k.calls = nil
	k.mu.Unlock()
	f()
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.calls)
}

func syncs(calls []crashfs.Op) (out []string) {
	for _, o := range calls {
		if k := string(o.Kind); strings.Contains(strings.ToLower(k), "sync") {
			out = append(out, k+" "+path.Base(o.Path))
		}
	}
	return out
}

// TestAppendCosts: one append is one fdatasync, of the log; it writes neither metadata.json nor index.json and opens no
// message file. A batch is one fdatasync too.
func TestAppendCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 1000)
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	kit.Fill(t, c.Active(), 1)
	for name, do := range map[string]func(){
		"append": func() { kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"a":1}`)}) },
		"batch":  func() { kit.Fill(t, c.Active(), 50) },
		"cold": func() {
			cold := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
			kit.Append(t, cold.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
			if err := cold.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		calls := k.during(do)
		if s := syncs(calls); len(s) != 1 || !strings.HasPrefix(s[0], "datasync log-") {
			t.Errorf("%s: syncs %q, wanted one fdatasync of the log", name, s)
		}
		for _, o := range calls {
			base := path.Base(o.Path)
			if o.Index > 0 && (base == "metadata.json" || base == "index.json") {
				t.Errorf("%s: %v", name, o)
			}
			if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "messages/branch-main/") && strings.HasSuffix(base, ".json") {
				t.Errorf("%s opens a message file: %v", name, o)
			}
		}
	}
}

// TestCreateCosts: a new context is three syncs, of its log, of the log's name and of its own name. Its first message is
// one more, and Close adds none.
func TestCreateCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t)
	var c *engine.Context
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"create", func() { c = kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{})) }, 3},
		{"append", func() { kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"a":1}`)}) }, 1},
		{"close", func() { kit.Check(t, c.Close()) }, 0},
	} {
		if s := syncs(k.during(step.do)); len(s) != step.want {
			t.Errorf("%s: syncs %q, wanted %d", step.name, s, step.want)
		}
	}
}

// TestOpenCosts: a context opens by reading metadata.json and the logs that are not sealed; its branches and sizes come
// from there. No segment is opened, and no file in messages/, before a message is asked for.
func TestOpenCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 300)
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	opened := func(calls []crashfs.Op) (files []string) {
		for _, o := range calls {
			if o.Kind == crashfs.KindOpen && path.Ext(o.Path) != "" { // folders have none
				files = append(files, path.Base(o.Path))
			}
			if strings.Contains(o.Path, "messages/") {
				t.Errorf("touches messages: %v", o)
			}
		}
		return files
	}
	var again *engine.Context
	opening := k.during(func() { again = kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID())) })
	if files := opened(opening); len(files) != 2 || !strings.HasPrefix(files[0], "log-") || files[1] != "metadata.json" {
		t.Errorf("opening opens %v", files)
	}
	if files := opened(k.during(func() { kit.Must[[]engine.BranchInfo](t)(again.Branches(ctx)) })); len(files) > 0 {
		t.Errorf("listing branches opens %v", files)
	}
	defer again.Close()

	// A range opens its own messages only, a second access nothing.
	read := func() []*engine.Message { return kit.Must[[]*engine.Message](t)(again.Active().Range(ctx, 100, 110)) }
	n := again.Loader.Reads()
	read()
	if d := again.Loader.Reads() - n; d != 10 {
		t.Errorf("a range of 10 reads %d messages", d)
	}
	ofMessages := func(o crashfs.Op) bool { return strings.Contains(o.Path, "messages/") }
	if calls := k.during(func() { read() }); slices.ContainsFunc(calls, ofMessages) {
		t.Errorf("a second access touches files: %v", calls)
	}
	if err := again.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for _, o := range k.during(func() { read() }) {
		if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "messages/") {
			t.Errorf("an untouched file is read again after a refresh: %v", o)
		}
	}
}

// TestConcurrentRequestsReadOnce: requests for one message that come together do one read.
func TestConcurrentRequestsReadOnce(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t)
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 1)
	hold, waiting := make(chan struct{}), make(chan struct{}, 100)
	k.disk.Fail(func(o crashfs.Op) error {
		if strings.Contains(o.Path, "messages/branch-main/") {
			waiting <- struct{}{}
			<-hold
		}
		return nil
	})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if ms, err := c.Active().Load(ctx); err != nil || len(ms) != 1 {
				t.Errorf("%d messages, %v", len(ms), err)
			}
		})
	}
	<-waiting
	close(hold)
	group.Wait()
	if n := c.Loader.Reads(); n != 1 {
		t.Errorf("%d reads", n)
	}
}

// TestPoolIsBounded: what the pool keeps stays below its bound, whatever is read.
func TestPoolIsBounded(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithPool(20_000))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 200)
	for i := range int64(200) { // one by one: several readers of one range end in any order
		kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, i, i+1))
	}
	if size := k.store.Pool.Size(); size == 0 || size > 20_000 {
		t.Errorf("the pool holds %d bytes", size)
	}
	n := c.Loader.Reads()
	kit.Must[[]*engine.Message](t)(c.Active().Last(ctx, 3))
	if d := c.Loader.Reads() - n; d != 0 {
		t.Errorf("the newest messages were read again: %d", d)
	}
	kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 0, 1))
	if d := c.Loader.Reads() - n; d != 1 {
		t.Errorf("the oldest message was kept: %d reads", d)
	}
}

// TestForkCosts: a fork replaces metadata.json once and reads no message.
func TestForkCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 100)
	calls := k.during(func() { kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 50)) })
	renames := 0
	for _, o := range calls {
		if o.Kind == crashfs.KindRename {
			renames++
		}
		if strings.Contains(o.Path, "messages/") {
			t.Errorf("touches messages: %v", o)
		}
	}
	if renames != 1 {
		t.Errorf("%d files were replaced", renames)
	}
}
