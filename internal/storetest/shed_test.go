package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// journalBytes is what a context's journals take, laid-out space included.
func journalBytes(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	journals, _ := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	for _, path := range journals {
		bytes += kit.Must[os.FileInfo](t)(os.Lstat(path)).Size()
	}
	return bytes
}

// TestImportLeavesNoJournals: after an import a journal is left that takes a block, however little or much was
// imported, and everything is there.
func TestImportLeavesNoJournals(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 30, 600} {
		s, dir := kit.NewStore(t)
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, "{\"role\":\"user\",\"content\":%q}\n", strings.Repeat(fmt.Sprint("message ", i, " "), 70))
		}
		file := filepath.Join(t.TempDir(), "history.jsonl")
		kit.Write(t, file, []byte(lines.String()))
		var id uuid.UUID
		for r, err := range importer.Import(ctx, s.Importer(), file, importer.Options{}) {
			kit.Check(t, err)
			id = r.Context
		}
		if size := journalBytes(t, filepath.Join(dir, id.String())); size > 4<<10 {
			t.Errorf("%d messages of %d bytes: journals take %d", n, lines.Len(), size)
		}
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		ms := kit.Load(t, c.Active())
		for i, m := range ms {
			var body struct{ Content string }
			if kit.Check(t, json.Unmarshal([]byte(kit.BodyOf(m)), &body)); !strings.HasPrefix(body.Content, fmt.Sprint("message ", i, " ")) {
				t.Errorf("%d of %d messages: %d is %.40q", len(ms), n, i, body.Content)
			}
		}
		if len(ms) != n {
			t.Errorf("%d of %d messages", len(ms), n)
		}
		kit.Fill(t, c.Active(), 1)
		kit.Check(t, c.Close())
	}
}

// TestCloseSheds: Close lets go of the journals once much was written since they were settled: seldom, if each process
// appends one message.
func TestCloseSheds(t *testing.T) {
	ctx := context.Background()
	const appends = 600
	k := newCounted(t)
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	kit.Check(t, c.Close())
	settles := 0
	for range appends {
		for _, o := range k.during(func() {
			c := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":[` + strings.Repeat("1,", 4<<10) + `1]}`)})
			kit.Check(t, c.Close())
		}) {
			if o.Kind == crashfs.KindSyncAll {
				settles++
			}
		}
	}
	if settles == 0 || settles > appends/100 {
		t.Errorf("%d appends, of a process each, settle %d times", appends, settles)
	}
	c = kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
	defer c.Close()
	if n := kit.Must[int64](t)(c.Active().Len(ctx)); n != appends {
		t.Errorf("%d messages", n)
	}
	// One batch: no fold in the background settles a part of it.
	drafts := make([]engine.Draft, 100)
	for i := range drafts {
		drafts[i].Body = []byte(`{"n":[` + strings.Repeat("1,", 12<<10) + `1]}`)
	}
	kit.Must[[]engine.BatchResult](t)(c.Active().AppendBatch(ctx, drafts))
	kit.Check(t, c.Close())
	var journals []string
	for e, err := range k.disk.ReadDir(c.ID().String()) {
		if kit.Check(t, err); strings.HasPrefix(e.Name(), "journal-") {
			journals = append(journals, e.Name())
		}
	}
	if len(journals) != 1 {
		t.Errorf("journals %v are left", journals)
	}
}

// TestCollectSheds: a collection lets go of journals that are large beside what their context holds, an hour after
// something was written, and of no others; a dry run of none.
func TestCollectSheds(t *testing.T) {
	ctx := context.Background()
	now := time.Now()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1), engine.WithClock(func() time.Time { return now }))
	kit.Fill(t, c.Active(), 200)
	kit.Check(t, c.Log.Fold(ctx, false))
	before := journalBytes(t, dir)
	for when, dryRun := range map[string]bool{"at once": false, "a dry run": true} {
		now = time.Now()
		if dryRun {
			now = now.Add(2 * time.Hour)
		}
		kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace, DryRun: dryRun})
		if size := journalBytes(t, dir); size != before {
			t.Errorf("%s: %d bytes of journals, %d before", when, size, before)
		}
	}
	now = time.Now().Add(2 * time.Hour)
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace})
	if size := journalBytes(t, dir); size > 4<<10 {
		t.Errorf("journals take %d bytes", size)
	}
	kit.Fill(t, c.Active(), 5)
	kit.Check(t, c.Fold(ctx))
	before = journalBytes(t, dir)
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace})
	if size := journalBytes(t, dir); size != before {
		t.Errorf("the second copy of the newest messages: %d bytes of journals, %d before", size, before)
	}
	if n := len(kit.Bodies(t, c.Active())); n != 205 {
		t.Errorf("%d messages", n)
	}
}
