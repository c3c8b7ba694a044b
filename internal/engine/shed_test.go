package engine

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
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// journalBytes is what a context's journals take, laid-out space included.
func journalBytes(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	journals, _ := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	for _, path := range journals {
		bytes += must[os.FileInfo](t)(os.Lstat(path)).Size()
	}
	return bytes
}

// TestImportLeavesNoJournals: after an import a journal is left that takes a block, however little or much was
// imported, and everything is there.
func TestImportLeavesNoJournals(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 30, 600} {
		s, dir := newStore(t)
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, "{\"role\":\"user\",\"content\":%q}\n", strings.Repeat(fmt.Sprint("message ", i, " "), 70))
		}
		file := filepath.Join(t.TempDir(), "history.jsonl")
		write(t, file, []byte(lines.String()))
		var id uuid.UUID
		for r, err := range importer.Import(ctx, s.Importer(), file, importer.Options{}) {
			check(t, err)
			id = r.Context
		}
		if size := journalBytes(t, filepath.Join(dir, id.String())); size > 4<<10 {
			t.Errorf("%d messages of %d bytes: journals take %d", n, lines.Len(), size)
		}
		c := must[*Context](t)(s.Context(ctx, id))
		ms := must[[]*Message](t)(c.Active().Load(ctx))
		for i, m := range ms {
			var body struct{ Content string }
			if check(t, json.Unmarshal([]byte(bodyOf(m)), &body)); !strings.HasPrefix(body.Content, fmt.Sprint("message ", i, " ")) {
				t.Errorf("%d of %d messages: %d is %.40q", len(ms), n, i, body.Content)
			}
		}
		if len(ms) != n {
			t.Errorf("%d of %d messages", len(ms), n)
		}
		fill(t, c.Active(), 1)
		check(t, c.Close())
	}
}

// TestCloseSheds: Close lets go of the journals once much was written since they were settled: seldom, if each process appends one message.
func TestCloseSheds(t *testing.T) {
	ctx := context.Background()
	const appends = 600
	k := newCounted(t)
	c := must[*Context](t)(k.store.Create(ctx, Metadata{}))
	check(t, c.Close())
	settles := 0
	for range appends {
		for _, o := range k.during(func() {
			c := must[*Context](t)(k.store.Context(ctx, c.ID()))
			fill(t, c.Active(), 1)
			check(t, c.Close())
		}) {
			if o.Kind == crashfs.KindSyncAll {
				settles++
			}
		}
	}
	if settles == 0 || settles > appends/100 {
		t.Errorf("%d appends, of a process each, settle %d times", appends, settles)
	}
	c = must[*Context](t)(k.store.Context(ctx, c.ID()))
	defer c.Close()
	if n := must[int64](t)(c.Active().Len(ctx)); n != appends {
		t.Errorf("%d messages", n)
	}
	// One batch: no fold in the background settles a part of it.
	drafts := make([]Draft, 100)
	for i := range drafts {
		drafts[i].Body = []byte(`{"n":[` + strings.Repeat("1,", 12<<10) + `1]}`)
	}
	must[[]Result](t)(c.Active().AppendBatch(ctx, drafts))
	check(t, c.Close())
	var journals []string
	for e, err := range k.disk.ReadDir(c.ID().String()) {
		if check(t, err); strings.HasPrefix(e.Name(), "journal-") {
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
	c, dir := newContext(t, WithFoldBytes(-1), withClock(func() time.Time { return now }))
	fill(t, c.Active(), 200)
	check(t, c.log.Fold(ctx, false))
	before := journalBytes(t, dir)
	for when, o := range map[string]Collecting{"at once": {Grace: DefaultGrace}, "a dry run": {Grace: DefaultGrace, DryRun: true}} {
		now = time.Now()
		if o.DryRun {
			now = now.Add(2 * time.Hour)
		}
		collect(t, c.store, o)
		if size := journalBytes(t, dir); size != before {
			t.Errorf("%s: %d bytes of journals, %d before", when, size, before)
		}
	}
	now = time.Now().Add(2 * time.Hour)
	collect(t, c.store, Collecting{Grace: DefaultGrace})
	if size := journalBytes(t, dir); size > 4<<10 {
		t.Errorf("journals take %d bytes", size)
	}
	fill(t, c.Active(), 5)
	check(t, c.Fold(ctx))
	before = journalBytes(t, dir)
	collect(t, c.store, Collecting{Grace: DefaultGrace})
	if size := journalBytes(t, dir); size != before {
		t.Errorf("the second copy of the newest messages: %d bytes of journals, %d before", size, before)
	}
	if n := len(bodies(t, c.Active())); n != 205 {
		t.Errorf("%d messages", n)
	}
}
