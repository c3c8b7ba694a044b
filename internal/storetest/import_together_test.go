package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/importer"

	"github.com/ctxdir/ctxdir/internal/importing"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestImportsAtOnce: imports of one file at the same time all succeed, and together store each record once.
func TestImportsAtOnce(t *testing.T) {
	const records, writers = 5000, 4
	var b strings.Builder
	for i := range records {
		fmt.Fprintf(&b, `{"timestamp":"2026-03-02T08:00:00Z","type":"response_item","payload":{"type":"message","role":"user","n":%d}}`+"\n", i)
	}
	path := filepath.Join(t.TempDir(), "rollout-0196aaaa-0000-7000-8000-000000000001.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, err := kit.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	results := make([]importer.Result, writers)
	var wait sync.WaitGroup
	for i := range writers {
		s, err := kit.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		wait.Go(func() {
			for r, err := range importer.Import(context.Background(), importing.New(s), path, importer.Options{}) {
				if err != nil {
					t.Errorf("import %d: %v", i, err)
				}
				results[i] = r
			}
		})
	}
	wait.Wait()
	added := int64(0)
	for i, r := range results {
		added += r.Added
		if r.Messages != records || r.Added+r.Skipped != records {
			t.Errorf("import %d: %+v", i, r)
		}
	}
	if added != records {
		t.Errorf("together they added %d of %d records", added, records)
	}
	c, err := first.Context(context.Background(), results[0].Context)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Active().Len(context.Background()); err != nil || n != records || len(c.Metadata().Branches) != 1 {
		t.Errorf("%d messages on %d branches (%v)", n, len(c.Metadata().Branches), err)
	}
}

// TestImportOfPartOfBatch: an import that began while another one was storing a batch sees the first messages of it. When
// it appends the next ones, it finds the rest of that batch, stores nothing, and begins again.
func TestImportOfPartOfBatch(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	info := importer.Info{ID: kit.TestID(61000), Format: importer.Codex}
	conv := kit.Must[importer.Conversation](t)(importing.New(s).Open(ctx, info))
	records := make([]importer.Record, 8)
	for i := range records {
		records[i] = importer.Record{ID: kit.TestID(61001 + i), Body: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	if err := conv.Append(ctx, importer.Main, 0, records[:5]); err != nil {
		t.Fatal(err)
	}
	if err := conv.Append(ctx, importer.Main, 3, records[3:]); !errors.Is(err, importer.ErrChanged) {
		t.Errorf("an append where there are messages: %v", err)
	}
	list := kit.Must[[]importer.Branch](t)(conv.Branches(ctx))
	if n := list[0].Len(); n != 5 {
		t.Errorf("%d messages, wanted the 5 of the first append", n)
	}
	if err := conv.Close(); err != nil {
		t.Error(err)
	}
}
