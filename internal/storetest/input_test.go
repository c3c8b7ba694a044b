package storetest_test

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
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestBadInput: what cannot be stored gets an error that says why, and changes nothing.
func TestBadInput(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithMaxMessage(1<<20))
	kit.Fill(t, c.Active(), 3)
	if _, err := c.Active().Fork(ctx, "Straße", 1); err != nil {
		t.Fatal(err)
	}
	before := kit.Tree(t, filepath.Dir(dir))
	named := func(name string) func() error {
		return func() error { _, err := c.NewBranch(ctx, name); return err }
	}
	appended := func(at int64) func() error {
		return func() error {
			_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}, engine.AtPosition(at))
			return err
		}
	}
	large := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	empty := engine.Draft{Body: []byte(`{}`)}
	resolve := func(ref string) func() error {
		return func() error { _, err := listing.New(c.Store).Resolve(ref); return err }
	}
	badState := func(m *engine.Metadata) error { m.State = []byte("{"); return nil }
	for name, try := range map[string]struct {
		do   func() error
		want error
		says string
	}{
		"empty body":          {func() error { return add1(c, ``) }, engine.ErrInvalid, "empty"},
		"no object":           {func() error { return add1(c, `[1]`) }, engine.ErrInvalid, "array"},
		"two objects":         {func() error { return add1(c, `{}{}`) }, engine.ErrInvalid, "malformed"},
		"invalid UTF-8":       {func() error { return add1(c, "{\"a\":\"\xff\"}") }, engine.ErrInvalid, "UTF-8"},
		"too large":           {func() error { return add1(c, large) }, engine.ErrTooLarge, "limit of 1048576"},
		"name with ..":        {named("a/../../../b" + strings.Repeat("x", 250)), engine.ErrInvalid, "255"},
		"name with NUL":       {named("a\x00b"), engine.ErrInvalid, "NUL"},
		"empty name":          {named(""), engine.ErrInvalid, "empty"},
		"name no UTF-8":       {named("a\xff"), engine.ErrInvalid, "UTF-8"},
		"name too long":       {named(strings.Repeat("é", 125)), engine.ErrInvalid, "255"},
		"name equal by case":  {named("STRASSE"), engine.ErrExist, "Straße"},
		"name taken":          {named("main"), engine.ErrExist, "main"},
		"fork beyond":         {func() error { _, err := c.Active().Fork(ctx, "x", 4); return err }, engine.ErrPosition, "4 of a branch with 3"},
		"fork before":         {func() error { _, err := c.Active().Fork(ctx, "x", -1); return err }, engine.ErrPosition, ""},
		"rewind beyond":       {func() error { return c.Active().Rewind(ctx, 4) }, engine.ErrPosition, ""},
		"unknown branch":      {func() error { return c.Switch(ctx, "nope") }, engine.ErrNotExist, "nope"},
		"rename to taken":     {func() error { return c.Rename(ctx, "main", "straSSe") }, engine.ErrExist, ""},
		"range":               {func() error { _, err := c.Active().Range(ctx, 2, 1); return err }, engine.ErrPosition, "2:1"},
		"unknown message":     {func() error { _, err := c.Active().Message(ctx, uuid.New()); return err }, engine.ErrNotExist, ""},
		"replace unknown":     {func() error { return c.Active().Replace(ctx, uuid.New(), empty) }, engine.ErrNotExist, ""},
		"state no JSON":       {func() error { return c.Update(ctx, badState) }, engine.ErrInvalid, "state"},
		"context with ..":     {resolve("../" + c.ID().String()), engine.ErrNotExist, "../"},
		"context of other id": {func() error { _, err := c.Store.Context(ctx, uuid.New()); return err }, engine.ErrNotExist, ""},
		"absolute context":    {resolve("/etc"), engine.ErrNotExist, "/etc"},
		"context id taken":    {func() error { _, err := c.Store.Create(ctx, engine.Metadata{ID: c.ID()}); return err }, engine.ErrExist, ""},
		"cancelled": {func() error {
			done, stop := context.WithCancel(ctx)
			stop()
			_, err := c.Active().Append(done, engine.Draft{Body: []byte(`{}`)})
			return err
		}, context.Canceled, ""},
		"a negative position":  {appended(-1), engine.ErrPosition, "the next one is 3"},
		"position not as told": {appended(7), engine.ErrPosition, "the next one is 3"},
	} {
		err := try.do()
		if !errors.Is(err, try.want) || !strings.Contains(err.Error(), try.says) {
			t.Errorf("%s: %v, wanted %v with %q", name, err, try.want, try.says)
		}
		var where *engine.Error
		if !errors.As(err, &where) || where.Op == "" {
			t.Errorf("%s: %v does not say what was being done", name, err)
		}
	}
	if after := kit.Tree(t, filepath.Dir(dir)); after != before {
		t.Errorf("something was changed:\n%s\n---\n%s", before, after)
	}
}

func add1(c *engine.Context, body string) error {
	_, err := c.Active().Append(context.Background(), engine.Draft{Body: []byte(body)})
	return err
}

// TestForeignFiles: a metadata.json of another version is refused and left as it is. One of no sense does no harm: the
// log has the metadata, a check reports the file, and the next writer replaces it and keeps it in the trash.
func TestForeignFiles(t *testing.T) {
	ctx := context.Background()
	first, second := kit.TestID(1).String(), kit.TestID(2).String()
	line := func(members string) string {
		return `{"ctxdir":"context/1","id":"ID","lines":[{"id":"` + first + `",` + members + `}]}`
	}
	for name, metadata := range map[string]string{
		"another version": `{"ctxdir":"context/9","id":"ID"}`,
		"no version":      `{"id":"ID"}`,
		"empty":           ``,
		"array":           `[]`,
		"another id":      `{"ctxdir":"context/1","id":"00000000-0000-4000-8000-000000000001"}`,
		"folder with ..":  line(`"base":0,"folder":"../../x"`),
		"no parent":       line(`"parent":"` + second + `","base":0,"folder":"branch-x"`),
		"cycle":           line(`"parent":"` + first + `","base":0,"folder":"branch-x"`),
	} {
		c, dir := kit.NewContext(t)
		path := filepath.Join(dir, "metadata.json")
		content := strings.ReplaceAll(metadata, "ID", c.ID().String())
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		// With the log's copy the context still opens; a newer version is refused.
		again, err := c.Store.Context(ctx, c.ID())
		if name == "another version" {
			if !errors.Is(err, engine.ErrFormat) || !strings.Contains(err.Error(), "metadata.json") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || again.Problem() != nil || again.Metadata().ActiveBranch != "main" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found := 0
		for f, err := range checking.Check(ctx, c.Store, nil, checking.Options{}) {
			if found++; err != nil || f.Severity != integrity.SeverityWarning || !strings.HasSuffix(f.Path, "metadata.json") {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d findings", name, found)
		}
		for sum, err := range listing.New(c.Store).List(ctx, listing.ListOptions{}) {
			if err != nil || sum.Problem != nil || sum.ID != c.ID() {
				t.Errorf("%s: the list shows %+v, %v", name, sum, err)
			}
		}
		if raw, _ := os.ReadFile(path); string(raw) != content {
			t.Errorf("%s: reading changed the file", name)
		}
		kit.Check(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Minute))) // nobody is writing it now
		if err := add1(again, `{}`); err != nil {
			t.Errorf("%s: an append gave %v", name, err)
		}
		kept := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "trash", "*", "metadata.json")))
		if len(kept) > 0 {
			content = strings.TrimPrefix(content, string(kit.Must[[]byte](t)(os.ReadFile(kept[0]))))
		}
		if content != "" {
			t.Errorf("%s: the trash has %v", name, kept)
		}
		_ = again.Close()
		for f, err := range checking.Check(ctx, c.Store, nil, checking.Options{}) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	s, dir := kit.NewStore(t)
	newer := `{"ctxdir":"store/1","id":"` + s.ID().String() + `","features":{"incompatible":["time-travel"]}}`
	kit.Write(t, filepath.Join(dir, "ctxdir.json"), []byte(newer))
	if _, err := kit.Open(dir); !errors.Is(err, engine.ErrFormat) || !strings.Contains(err.Error(), "time-travel") {
		t.Errorf("an incompatible feature: %v", err)
	}
	if _, err := kit.Open(t.TempDir()); !errors.Is(err, engine.ErrNoStore) {
		t.Errorf("no store: %v", err)
	}
}

// TestLargeMessageAndEmojiName: a message of 100 MB, and a branch named with what people type.
func TestLargeMessageAndEmojiName(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithDurability(engine.Relaxed))
	name := "🧪 próba / 日本"
	if _, err := c.NewBranch(ctx, name); err != nil {
		t.Fatal(err)
	}
	b, err := c.Branch(name)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"text":"` + strings.Repeat("0123456789", 10<<20) + `"}`
	at, err := b.Append(ctx, engine.Draft{Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer again.Close()
	b = kit.Must[*engine.Branch](t)(again.Branch(name))
	if m := kit.Must[*engine.Message](t)(b.Message(ctx, at.ID)); kit.BodyOf(m) != body {
		t.Error("the large message came back different")
	}
}

// TestHandEdit: an edited file is served and flagged. A touched, a damaged and a missing one are not: what was committed is
// served.
func TestHandEdit(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	kit.Fill(t, c.Active(), 4)
	ms := kit.Load(t, c.Active())
	file := func(i int) string { return filepath.Join(dir, "messages", "branch-main", ms[i].ID.String()+".json") }
	edit := func(i int, f func([]byte) []byte) {
		t.Helper()
		raw, err := os.ReadFile(file(i))
		if err == nil {
			err = os.WriteFile(file(i), f(raw), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(0, func(b []byte) []byte { return bytes.Replace(b, []byte(`"n":0`), []byte(`"n":"by hand"`), 1) })
	if err := os.Chtimes(file(1), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	edit(2, func([]byte) []byte { return nil })
	if err := os.Remove(file(3)); err != nil {
		t.Fatal(err)
	}
	look := func(stage string, c *engine.Context) {
		t.Helper()
		got := kit.Load(t, c.Active())
		for i, m := range got {
			if m.Unavailable != nil || m.Edited != (i == 0) {
				t.Errorf("%s: message %d: unavailable %v, edited %v", stage, i, m.Unavailable, m.Edited)
			}
		}
		if !strings.Contains(kit.BodyOf(got[0]), "by hand") || kit.BodyOf(got[2]) != kit.BodyOf(ms[2]) {
			t.Errorf("%s: bodies %s, %s", stage, kit.BodyOf(got[0]), kit.BodyOf(got[2]))
		}
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	look("after a refresh", c)
	look("from another handle", kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID())))
	kit.Check(t, c.Seal(ctx))
	edit(2, func([]byte) []byte { return []byte("\x00\x00") })
	look("after a seal", kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID())))
}

// TestRetries: a lost acknowledgement, a retry, no duplicate - also when the retry comes on a fork.
func TestRetries(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t)
	b := c.Active()
	id := uuid.New()
	first := kit.Must[engine.AppendResult](t)(b.Append(ctx, engine.Draft{ID: id, Body: []byte(`{"a": 1}`)}, engine.AtPosition(0)))
	kit.Fill(t, b, 3)
	fork := kit.Must[*engine.Branch](t)(b.Fork(ctx, "alt", 2))
	for _, br := range []*engine.Branch{b, fork} {
		again := kit.Must[engine.AppendResult](t)(br.Append(ctx, engine.Draft{ID: id, Body: []byte(`{"a":1}`)}, engine.AtPosition(0)))
		if again.Position != first.Position || !again.Existed {
			t.Errorf("a retry on %s: %+v", br.Name(), again)
		}
		if _, err := br.Append(ctx, engine.Draft{ID: id, Body: []byte(`{"a":2}`)}); !errors.Is(err, engine.ErrConflict) {
			t.Errorf("other content on %s: %v", br.Name(), err)
		}
	}
	results, err := b.AppendBatch(ctx, []engine.Draft{
		{ID: id, Body: []byte(`{"a":1}`)}, {ID: id, Body: []byte(`{"a":9}`)}, {Body: []byte(`{"new":1}`)},
	})
	if err != nil || !results[0].Existed || !errors.Is(results[1].Err, engine.ErrConflict) ||
		results[2].Err != nil || results[2].Position != 4 {
		t.Errorf("a batch with both: %+v, %v", results, err)
	}
	// After a rewind the id is free again; the old line keeps its own message of it.
	if err := b.Rewind(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if at := kit.Append(t, b, engine.Draft{ID: id, Body: []byte(`{"a":3}`)}); at.Existed || at.Position != 0 {
		t.Errorf("after a rewind: %+v", at)
	}
	for br, want := range map[*engine.Branch]string{b: `{"a":3}`, fork: `{"a":1}`} {
		if m := kit.Must[*engine.Message](t)(br.Message(ctx, id)); kit.BodyOf(m) != want {
			t.Errorf("%s shows %s, wanted %s", br.Name(), kit.BodyOf(m), want)
		}
	}
}

// TestReplacedVersionIsKept: the version that a replacement takes the place of lies in the context's trash, whole.
func TestReplacedVersionIsKept(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"draft":1.0}`)})
	if err := c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"final":true}`)}); err != nil {
		t.Fatal(err)
	}
	items, err := filepath.Glob(filepath.Join(dir, "trash", "*.json"))
	if err != nil || len(items) != 1 {
		t.Fatalf("trash holds %v, %v", items, err)
	}
	raw, err := os.ReadFile(items[0])
	if err != nil || !bytes.Contains(raw, []byte(`"message":{"draft":1.0}`)) || !bytes.Contains(raw, []byte(at.ID.String())) {
		t.Errorf("the item is %s, %v", raw, err)
	}
	if m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID)); kit.BodyOf(m) != `{"final":true}` || m.Edited {
		t.Errorf("the message is %s", kit.BodyOf(m))
	}
}

// TestGoroutines: appends, forks, replaces, seals and reads of many goroutines and two handles.
func TestGoroutines(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithSealBytes(20_000))
	other := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer other.Close()
	const each = 60
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			h := c
			if w%2 == 1 {
				h = other
			}
			for i := range each {
				at, err := h.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"w":%d,"i":%d,"t":%q}`, w, i, strings.Repeat("q", 300))})
				if err != nil {
					t.Error(err)
					return
				}
				if i%10 == 5 {
					with := engine.Draft{Body: fmt.Appendf(nil, `{"w":%d,"i":%d,"replaced":true}`, w, i)}
					if err := h.Active().Replace(ctx, at.ID, with, engine.Shared()); err != nil {
						t.Error(err)
					}
				}
				if i%20 == 7 {
					if _, err := h.Active().Fork(ctx, fmt.Sprintf("f%d-%d", w, i), at.Position); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Go(func() {
		var before []uuid.UUID
		for len(before) < 4*each && !t.Failed() {
			if err := other.Refresh(ctx); err != nil {
				t.Error(err)
				return
			}
			before = readIDs(t, other, before)
		}
	})
	group.Wait()
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, m := range kit.Load(t, c.Active()) {
		if bytes.Contains([]byte(kit.BodyOf(m)), []byte("replaced")) {
			replaced++
		}
	}
	if replaced != 4*each/10 {
		t.Errorf("%d replaced messages, wanted %d", replaced, 4*each/10)
	}
}
