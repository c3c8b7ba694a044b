package index

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// The envelopes of a frame say other positions than its rows, which are damaged.
func TestUnsortedRows(t *testing.T) {
	disk := crashfs.New()
	must(t, disk.Mkdir("segments"))
	dir := folderOf(t, disk)
	line := uuid.MustParse("01950000-0000-7000-8000-000000000001")
	m := &ctxfolder.Metadata{
		ID: testContext, ActiveBranch: "main", CreatedAt: testTime, UpdatedAt: testTime,
		Lines: []ctxfolder.Line{{ID: line, Folder: "branch-main"}}, Branches: []ctxfolder.Branch{{Name: "main", Line: line}},
	}
	b, err := Build(dir, m)
	must(t, err)
	for i, says := range []int64{0, 3, 4, 1, 2} {
		position := int64(i)
		env := message.Envelope{ID: uuid.MustParse(fmt.Sprintf("01940000-0000-7000-8000-00000000000%d", i)), Line: line, Position: says,
			StoredAt: testTime.Add(time.Second), Branch: "main", Body: []byte(`{"a":1}`)}
		raw := env.AppendTo(nil)
		e := EntryOf(&env, raw)
		e.Position = position
		must(t, b.Add(e, raw))
	}
	must(t, b.Finish())
	for e, err := range disk.ReadDir("segments") {
		must(t, err)
		raw, err := vfs.ReadFile(disk, "segments/"+e.Name(), 1<<20)
		must(t, err)
		i := bytes.Index(raw, []byte("ctxrows1"))
		f, err := disk.OpenFile("segments/"+e.Name(), os.O_RDWR)
		must(t, err)
		_, err = f.WriteAt([]byte{raw[i+60] ^ 1}, int64(i+60))
		must(t, err)
		must(t, f.Close())
	}
	ix := Open(dir, Options{})
	defer ix.Close()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v", p)
		}
	}()
	for from := range int64(5) {
		for to := from + 1; to <= 5; to++ {
			all, err := ix.Entries(line, from, to)
			must(t, err)
			_ = all
		}
	}
	_ = archive.Here
}

// A log of some hundred bytes says that a line has 10^15 messages.
func TestHostileCount(t *testing.T) {
	disk := crashfs.New()
	must(t, disk.Mkdir("segments"))
	dir := folderOf(t, disk)
	line := uuid.MustParse("01950000-0000-7000-8000-000000000001")
	state := saved{Lines: []Counts{{Line: line, Count: journal.MaxSeq}}}
	raw, err := state.encode()
	must(t, err)
	must(t, journal.Start(disk, journal.NewName(1), dir.beginning(1, raw), nil))
	ix := Open(dir, Options{})
	defer ix.Close()
	problems, err := ix.Problems()
	must(t, err)
	n := 0
	for _, err := range ix.All(context.Background(), line, 0, 1<<62) {
		must(t, err)
		if n++; n == 3_000_000 {
			t.Errorf("3 million messages, and no end; problems: %v", problems)
			return
		}
	}
}
