package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestLastCopyInAHarmedJournal: a journal whose beginning is harmed still has its records; the messages that they serve
// are written to their files before it goes to trash.
func TestLastCopyInAHarmedJournal(t *testing.T) {
	t.Parallel()
	for _, verb := range onDisk() {
		x := newLastCopy(t)
		kit.Check(t, os.Remove(x.file))
		journal := filepath.Join(x.dir, "journal-1.jsonl")
		raw := kit.Must[[]byte](t)(os.ReadFile(journal))
		raw[bytes.Index(raw, []byte("generation"))] ^= 1
		kit.Write(t, journal, raw)
		x.there("harmed")
		kit.Check(t, verbs[verb](context.Background(), x))
		x.there(verb)
		kit.Check(t, x.repair())
		x.there(verb + " and a repair")
	}
}

// TestLastCopyOfAPayload: a blob that is gone or damaged and whose payload a settled journal has is made again before
// the journal goes.
func TestLastCopyOfAPayload(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	payload := strings.Repeat("payload ", 100)
	for _, verb := range onDisk() {
		for _, damage := range []func(path string) error{
			os.Remove, func(path string) error { return os.WriteFile(path, []byte("damaged"), 0o600) },
		} {
			s, dir := kit.NewStore(t, engine.WithFoldBytes(-1), engine.WithRetain(-1), engine.WithoutPause(), engine.WithTextThreshold(500))
			x := &lastCopy{t: t, s: s, c: kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))}
			for _, text := range []string{"a", payload, "b", "c"} {
				kit.Check(t, x.append(`{"role":"user","content":"`+text+`"}`))
			}
			kit.Check(t, x.c.Fold(ctx), x.append(`{}`))
			blobs := kit.BlobFiles(t, dir)
			if len(blobs) != 1 {
				t.Fatalf("%d blobs", len(blobs))
			}
			kit.Check(t, damage(blobs[0]), verbs[verb](ctx, x))
			kit.Check(t, x.repair(), x.c.Close())
			c := kit.Must[*engine.Context](t)(s.Context(ctx, x.c.ID()))
			m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, x.ids[1]))
			if b, err := m.Body(ctx); err != nil || !bytes.Contains(b, []byte(payload)) {
				t.Errorf("%s: %v", verb, err)
			}
			kit.Check(t, c.Close())
		}
	}
}

// TestLastCopyOfAPayloadCannotBeWritten: the journal stays where a blob cannot be made again.
func TestLastCopyOfAPayloadCannotBeWritten(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
	defer s.Close()
	x := &lastCopy{t: t, s: s, c: kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))}
	defer x.c.Close()
	kit.Check(t, x.append(`{"content":"`+strings.Repeat("payload ", 200)+`"}`), x.append(`{}`), x.c.Fold(ctx))
	var blob string
	for _, o := range disk.Ops() {
		if strings.HasPrefix(o.To, "blobs/") {
			blob = o.To
		}
	}
	kit.Check(t, disk.Remove(blob))
	disk.Fail(func(o crashfs.Op) error {
		if o.Index > 0 && path.Dir(o.To) == path.Dir(blob) {
			return syscall.EPERM
		}
		return nil
	})
	if err := verbs["fold twice"](ctx, x); err == nil {
		t.Error("nobody was told")
	}
	if !x.journal(disk) {
		t.Error("the journal is gone")
	}
	disk.Fail(nil)
	kit.Check(t, verbs["fold twice"](ctx, x))
	if _, err := disk.Lstat(blob); err != nil || x.journal(disk) {
		t.Errorf("the journal is there: %v; the blob: %v", x.journal(disk), err)
	}
}

// TestLastCopyBesideAPack: the file of an archived message stays while the pack does not have the message as it was.
func TestLastCopyBesideAPack(t *testing.T) {
	ctx := context.Background()
	p := kit.NewArchivedPatient(t, "all")
	c := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	part := p.Part("messages", 1)
	m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, part.IDs[0]))
	entries := kit.Must[[]index.Entry](t)(c.Log.Entries(m.Line, m.Position, m.Position+1))
	raw, ok := c.Log.ReadRecord(&entries[0])
	file := p.Main[slices.IndexFunc(p.Main, func(name string) bool { return strings.Contains(name, m.ID.String()) })]
	kit.Check(t, c.Close(), os.MkdirAll(filepath.Dir(file), 0o700))
	kit.Write(t, file, append(raw, '\n'))
	kit.Check(t, os.Chtimes(file, entries[0].StoredAt(), entries[0].StoredAt()))
	p.Flip(part)
	// The sweep fails, since it cannot read the pack.
	_ = kit.IterationError(trash.Collect(ctx, p.Store, trash.CollectOptions{Grace: trash.DefaultGrace}))
	if _, err := os.Stat(file); err != nil || !ok {
		t.Errorf("the last copy: %v", err)
	}
}
