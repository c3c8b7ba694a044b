//go:build unix

package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestWhatIsAcknowledgedCanBeRead: no valid input is stored in a form that cannot be read again.
func TestWhatIsAcknowledgedCanBeRead(t *testing.T) {
	ctx := context.Background()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	drafts := []engine.Draft{
		{Body: []byte(`{"timestamp":"9999-12-31T23:59:59-14:00"}`)},
		{Body: []byte(`{"timestamp":"0000-01-01T00:00:00Z"}`)},
		{Body: []byte(`{"created_at":253402300800000}`)},
		{Body: []byte(`{"created_at":-1e300,"create_time":1e13}`)},
		{Body: []byte(`{"a":1}`), CreatedAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Body: []byte(`{"a":1}`), CreatedAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Body: []byte(`{"a":1}`), CreatedAt: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200))},
		{Body: []byte(`{"a":` + deep(8999) + `}`)},
		{Body: []byte(`{"a":` + deep(9999) + `}`)},
		{Body: []byte(`{"a":1}`), Source: json.RawMessage(`{"a":` + deep(9999) + `}`)},
		{Body: []byte(`{"a":1}`), Source: json.RawMessage(`{"a":1}, "message":{}`)},
		{Body: []byte(`{"a":1}`), Role: "ro\"le\x00\u2028\xff", Type: "\\", OriginID: "../" + strings.Repeat("x", 3000)},
	}
	c, _ := kit.NewContext(t)
	var stored []string
	for _, d := range drafts {
		if _, err := c.Active().Append(ctx, d); err == nil {
			stored = append(stored, string(d.Body))
		} else if !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%.60s: %v", d.Body, err)
		}
	}
	if len(stored) < 6 {
		t.Errorf("only %d of %d were stored", len(stored), len(drafts))
	}
	look := func(stage string) {
		t.Helper()
		again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		defer again.Close()
		ms := kit.Load(t, again.Active())
		if len(ms) != len(stored) {
			t.Fatalf("%s: %d messages, wanted %d", stage, len(ms), len(stored))
		}
		for i, m := range ms {
			if m.Unavailable != nil || kit.BodyOf(m) != stored[i] {
				t.Errorf("%s: %.60s: %v", stage, stored[i], m.Unavailable)
			}
		}
	}
	look("at once")
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	look("sealed")
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	look("archived")
	kit.Must[archiving.Result](t)(archiving.Unarchive(ctx, c, nil))
	look("with files again")
}

// logOf returns the log of a context that has one.
func logOf(t *testing.T, dir string) string {
	t.Helper()
	found := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "log-*.jsonl")))
	if len(found) != 1 {
		t.Fatalf("logs: %v", found)
	}
	return found[0]
}

// flipIn changes a bit of a file, in the byte that is so far behind a text.
func flipIn(t *testing.T, path, text string, behind int) {
	t.Helper()
	raw := kit.Must[[]byte](t)(os.ReadFile(path))
	raw[bytes.Index(raw, []byte(text))+behind] ^= 1
	kit.Write(t, path, raw)
}

// TestDamagedRecord: a bit flipped in a record of one branch, with records of others behind it, costs nothing: the message
// has its file, from which a repair takes it. Commits go on meanwhile.
func TestDamagedRecord(t *testing.T) {
	ctx := context.Background()
	for which := range 2 { // the first and the last message of the fork's own line
		c, dir := kit.NewContext(t, engine.WithSealBytes(-1))
		kit.Fill(t, c.Active(), 1)
		fork := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "f", 1))
		kit.Fill(t, fork, 1)
		kit.Fill(t, fork, 1)
		kit.Fill(t, c.Active(), 1)
		want := kit.Load(t, fork)
		kit.Check(t, c.Close())
		flipIn(t, logOf(t, dir), `"id":"`+want[1+which].ID.String(), 8)
		c = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		fork = kit.Must[*engine.Branch](t)(c.Branch("f"))
		for _, m := range kit.Load(t, fork) {
			if m.Unavailable != nil || m.ID != want[m.Position].ID {
				t.Errorf("record %d, position %d: %v", which, m.Position, m.Unavailable)
			}
		}
		more := 3 // messages of main
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		if which == 0 {
			want = append(want, kit.Must[*engine.Message](t)(fork.Message(ctx, kit.Append(t, fork, engine.Draft{Body: []byte(`{}`)}).ID)))
		}
		kit.Finish(t, checking.Repair(ctx, c.Store, nil, checking.Options{}))
		kit.Check(t, c.Refresh(ctx), c.Seal(ctx))
		got := kit.Load(t, fork)
		for i, m := range got {
			if len(got) != len(want) || m.Unavailable != nil || m.ID != want[i].ID {
				t.Errorf("record %d, repaired: %d messages; position %d: %+v", which, len(got), i, m)
			}
		}
		if n := len(kit.Bodies(t, c.Active())); n != more {
			t.Errorf("record %d: %d messages of main", which, n)
		}
		clean(t, c.Store)
		kit.Check(t, c.Close())
	}
}

// TestWrongKindOfFile: a folder, link or FIFO in the place of a file costs what that file has, until a repair takes it
// from the files of messages. The history goes on meanwhile, and nothing outside is touched.
func TestWrongKindOfFile(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	kit.Write(t, outside, []byte("untouched"))
	kinds := map[string]func(path string) error{
		"folder": func(p string) error {
			if err := os.Mkdir(p, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(p, "x"), nil, 0o600)
		},
		"link out":     func(p string) error { return os.Symlink(outside, p) },
		"link to self": func(p string) error { return os.Symlink(filepath.Base(p), p) },
		"FIFO":         func(p string) error { return syscall.Mkfifo(p, 0o600) },
	}
	for kind, put := range kinds {
		// Whether the context can be opened.
		for what, opens := range map[string]bool{"index.json": true, "log-*.jsonl": true, "segments/*.zst": true, "segments": false} {
			t.Run(what+" is a "+kind, func(t *testing.T) {
				if what != "segments" || kind != "folder" {
					wrongKindOfFile(t, what, opens, put)
				}
			})
		}
	}
	if raw, _ := os.ReadFile(outside); string(raw) != "untouched" {
		t.Error("the file outside was written")
	}
}

func wrongKindOfFile(t *testing.T, what string, opens bool, put func(path string) error) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithSealBytes(-1))
	for range 2 {
		kit.Fill(t, c.Active(), 4)
		kit.Check(t, c.Seal(ctx))
	}
	kit.Fill(t, c.Active(), 2)
	kit.Check(t, c.Close())
	path := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, what)))[0]
	kit.Check(t, os.RemoveAll(path))
	if err := put(path); err != nil {
		t.Skipf("it cannot be made here: %v", err)
	}
	want := 10
	for round := range 2 {
		again, err := c.Store.Context(ctx, c.ID())
		if !opens {
			if err == nil {
				t.Error("it can be opened")
			}
			break
		}
		kit.Check(t, err)
		there := 0
		for _, m := range kit.Load(t, again.Active()) {
			if m.Unavailable == nil {
				there++
			}
		}
		if there != want { // those that no record has any more have files
			t.Errorf("round %d: %d messages, wanted %d", round, there, want)
		}
		kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"more":1}`)})
		want++
		kit.Check(t, again.Close())
	}
	// With Adopt, messages whose positions others have by now get a branch.
	kit.Finish(t, checking.Repair(ctx, c.Store, nil, checking.Options{Adopt: true}))
	clean(t, c.Store)
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer again.Close()
	there := map[uuid.UUID]bool{}
	for _, info := range kit.Must[[]engine.BranchInfo](t)(again.Branches(ctx)) {
		for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(again.Branch(info.Name))) {
			there[m.ID] = m.Unavailable == nil
		}
	}
	if len(there) != want {
		t.Errorf("repaired: %d messages, wanted %d", len(there), want)
	}
	kit.Check(t, again.Seal(ctx))
}

// TestDamagedPayloadRecord: a payload whose record is damaged in the log costs that payload, if nothing else has it, and
// none of those behind it, before a repair and after it.
func TestDamagedPayloadRecord(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithSealBytes(-1), engine.WithTextThreshold(1))
	for _, text := range []string{"first", "second", "third"} {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"the ` + text + ` payload"}`)})
	}
	kit.Check(t, c.Close(), os.RemoveAll(filepath.Join(c.Store.Path(), "blobs")))
	flipIn(t, logOf(t, dir), "the second payload", 0)
	for _, stage := range []string{"damaged", "repaired"} {
		again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		ms := kit.Load(t, again.Active())
		for i, m := range ms {
			if _, err := m.Body(ctx); (err == nil) != (i != 1) {
				t.Errorf("%s: message %d: %v", stage, i, err)
			}
		}
		kit.Check(t, again.Close())
		if len(ms) != 3 {
			t.Errorf("%s: %d messages", stage, len(ms))
		}
		kit.Finish(t, checking.Repair(ctx, c.Store, nil, checking.Options{}))
	}
}
