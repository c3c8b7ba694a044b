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

	"github.com/ctxdir/ctxdir/internal/engine"

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
	c, dir := kit.NewContext(t)
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
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	look("folded")
	for _, gone := range []string{"index.json", "index", "journal-1.jsonl", "journal-2.jsonl"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	look("rebuilt")
}

// TestDamagedRecordsOfOtherLines: a bit flipped in an unfolded record of one branch, with records of others behind it,
// costs nothing while its file is there.
func TestDamagedRecordsOfOtherLines(t *testing.T) {
	ctx := context.Background()
	for which := range 2 { // the first and the last message of the fork's own line
		c, dir := kit.NewContext(t, engine.WithFoldBytes(-1))
		kit.Fill(t, c.Active(), 1)
		fork := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "f", 1))
		kit.Fill(t, fork, 1)
		kit.Fill(t, fork, 1)
		kit.Fill(t, c.Active(), 1)
		want := kit.Load(t, fork)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		journal := filepath.Join(dir, "journal-1.jsonl")
		raw, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(raw, []byte(`"id":"`+want[1+which].ID.String()))
		raw[at+8] ^= 1
		if err := os.WriteFile(journal, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		b := kit.Must[*engine.Branch](t)(again.Branch("f"))
		for range 2 {
			got := kit.Load(t, b)
			if len(got) < 3 {
				t.Fatalf("record %d: %d messages", which, len(got))
			}
			for i, m := range want {
				if got[i].ID != m.ID || got[i].Position != int64(i) || got[i].Unavailable != nil {
					t.Errorf("record %d, position %d: %+v", which, i, got[i])
				}
			}
			if at := kit.Append(t, b, engine.Draft{Body: []byte(`{}`)}); at.Position != int64(len(got)) {
				t.Errorf("record %d: appended at %d", which, at.Position)
			}
			if err := again.Fold(ctx); err != nil {
				t.Error(err)
			}
		}
		_ = again.Close()
	}
}

// TestWrongKindOfFile: a folder, link or FIFO where a cache or journal should be costs nothing but a rebuild.
func TestWrongKindOfFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		for _, what := range []string{"index.json", "index", "rows", "journal-1.jsonl", "journal-2.jsonl", "journal-3.jsonl"} {
			c, dir := kit.NewContext(t, engine.WithFoldBytes(-1))
			for range 2 {
				kit.Fill(t, c.Active(), 4)
				if err := c.Fold(ctx); err != nil {
					t.Fatal(err)
				}
			}
			kit.Fill(t, c.Active(), 2)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, what)
			if what == "rows" {
				found, _ := filepath.Glob(filepath.Join(dir, "index", "*.rows"))
				path = found[0]
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Skipf("it cannot be made here: %v", err)
			}
			for round := range 2 {
				again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				ms, err := again.Active().Load(ctx)
				if err != nil || len(ms) != 10+round {
					t.Errorf("%s is a %s, round %d: %d messages, %v", what, kind, round, len(ms), err)
				}
				for _, m := range ms {
					if m.Unavailable != nil {
						t.Errorf("%s is a %s: %v", what, kind, m.Unavailable)
					}
				}
				if err := add1(again, `{"more":1}`); err != nil {
					t.Errorf("%s is a %s: an append: %v", what, kind, err)
				}
				if err := again.Fold(ctx); err != nil {
					t.Errorf("%s is a %s: a fold: %v", what, kind, err)
				}
				_ = again.Close()
			}
		}
	}
	if raw, _ := os.ReadFile(outside); string(raw) != "untouched" {
		t.Error("the file outside was written")
	}
}

// TestDamagedPayloadRecord: a payload whose record is damaged in the journal costs that payload, if nothing else has
// it, and none of those behind it; the journal is kept in trash.
func TestDamagedPayloadRecord(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1), engine.WithTextThreshold(1))
	for _, text := range []string{"first", "second", "third"} {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"the ` + text + ` payload"}`)})
	}
	if err := c.Log.Fold(ctx, false); err != nil { // folded, not settled
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(c.Store.Path(), "blobs")); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(dir, "journal-1.jsonl")
	raw := kit.Must[[]byte](t)(os.ReadFile(journal))
	raw[bytes.Index(raw, []byte("the second payload"))] ^= 1
	if err := os.WriteFile(journal, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	if err := again.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(journal); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the harmed journal is still there: %v", err)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "trash", "*", "journal-1.jsonl")); len(kept) != 1 {
		t.Errorf("%d copies of the harmed journal in trash", len(kept))
	}
	had := 0
	ms := kit.Load(t, again.Active())
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for i, m := range ms { // read after the context was closed
		if _, err := m.Body(ctx); err == nil {
			had++
		} else if i != 1 {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if len(ms) != 3 || had != 2 {
		t.Errorf("%d of %d messages have their payload", had, len(ms))
	}
}

// TestNewestJournalsMissing: an old journal that is left, with the index and the newer journals gone, does not hide
// what came after it.
func TestNewestJournalsMissing(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1), engine.WithRetain(8))
	for range 2 {
		kit.Fill(t, c.Active(), 3)
		if err := c.Log.Fold(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	kit.Fill(t, c.Active(), 3)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"index.json", "index", "journal-2.jsonl", "journal-3.jsonl"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer again.Close()
	ms := kit.Load(t, again.Active())
	for _, m := range ms {
		if m.Unavailable != nil {
			t.Errorf("position %d: %v", m.Position, m.Unavailable)
		}
	}
	if len(ms) != 9 {
		t.Errorf("%d messages, wanted 9", len(ms))
	}
}
