package engine

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
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestLastCopyInAHarmedJournal: a journal whose beginning is harmed still has its records; the messages that they serve
// are written to their files before it goes to trash.
func TestLastCopyInAHarmedJournal(t *testing.T) {
	for _, verb := range onDisk() {
		x := newLastCopy(t)
		check(t, os.Remove(x.file))
		journal := filepath.Join(x.dir, "journal-1.jsonl")
		raw := must[[]byte](t)(os.ReadFile(journal))
		raw[bytes.Index(raw, []byte("generation"))] ^= 1
		write(t, journal, raw)
		x.there("harmed")
		check(t, verbs[verb](context.Background(), x))
		x.there(verb)
		check(t, x.repair())
		x.there(verb + " and a repair")
	}
}

// TestLastCopyOfAPayload: a blob that is gone or damaged and whose payload a settled journal has is made again before the journal goes.
func TestLastCopyOfAPayload(t *testing.T) {
	ctx := context.Background()
	payload := strings.Repeat("payload ", 100)
	for _, verb := range onDisk() {
		for _, damage := range []func(path string) error{
			os.Remove, func(path string) error { return os.WriteFile(path, []byte("damaged"), 0o600) },
		} {
			s, dir := newStore(t, WithFoldBytes(-1), withRetain(1), withoutPause(), WithTextThreshold(500))
			x := &lastCopy{t: t, s: s, c: must[*Context](t)(s.Create(ctx, Metadata{}))}
			for _, text := range []string{"a", payload, "b", "c"} {
				check(t, x.append(`{"role":"user","content":"`+text+`"}`))
			}
			check(t, x.c.Fold(ctx), x.append(`{}`))
			blobs := blobFiles(t, dir)
			if len(blobs) != 1 {
				t.Fatalf("%d blobs", len(blobs))
			}
			check(t, damage(blobs[0]), verbs[verb](ctx, x))
			check(t, x.repair(), x.c.Close())
			c := must[*Context](t)(s.Context(ctx, x.c.ID()))
			m := must[*Message](t)(c.Active().Message(ctx, x.ids[1]))
			if b, err := m.Body(ctx); err != nil || !bytes.Contains(b, []byte(payload)) {
				t.Errorf("%s: %v", verb, err)
			}
			check(t, c.Close())
		}
	}
}

// TestLastCopyOfAPayloadCannotBeWritten: the journal stays where a blob cannot be made again.
func TestLastCopyOfAPayloadCannotBeWritten(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := must[*Store](t)(Init("disk", onCrashFS(disk, inOrder())...))
	defer s.Close()
	x := &lastCopy{t: t, s: s, c: must[*Context](t)(s.Create(ctx, Metadata{}))}
	defer x.c.Close()
	check(t, x.append(`{"content":"`+strings.Repeat("payload ", 200)+`"}`), x.append(`{}`), x.c.Fold(ctx))
	var blob string
	for _, o := range disk.Ops() {
		if strings.HasPrefix(o.To, "blobs/") {
			blob = o.To
		}
	}
	check(t, disk.Remove(blob))
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
	check(t, verbs["fold twice"](ctx, x))
	if _, err := disk.Lstat(blob); err != nil || x.journal(disk) {
		t.Errorf("the journal is there: %v; the blob: %v", x.journal(disk), err)
	}
}

// TestLastCopyBesideAPack: the file of an archived message stays while the pack does not have the message as it was.
func TestLastCopyBesideAPack(t *testing.T) {
	ctx := context.Background()
	p := newArchived(t, "all")
	c := must[*Context](t)(p.store.Context(ctx, p.id))
	part := p.part("messages", 1)
	m := must[*Message](t)(c.Active().Message(ctx, part.ids[0]))
	entries := must[[]index.Entry](t)(c.log.Entries(m.Line, m.Position, m.Position+1))
	raw, ok := c.log.ReadRecord(&entries[0])
	file := p.main[slices.IndexFunc(p.main, func(name string) bool { return strings.Contains(name, m.ID.String()) })]
	check(t, c.Close(), os.MkdirAll(filepath.Dir(file), 0o700))
	write(t, file, append(raw, '\n'))
	check(t, os.Chtimes(file, entries[0].StoredAt(), entries[0].StoredAt()))
	p.flip(part)
	_ = ended(p.store.Collect(ctx, Collecting{Grace: DefaultGrace})) // the sweep says that it cannot read the pack
	if _, err := os.Stat(file); err != nil || !ok {
		t.Errorf("the last copy: %v", err)
	}
}
