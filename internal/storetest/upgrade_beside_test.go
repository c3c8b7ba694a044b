package storetest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// oldWriter is a process of the older version with journal/2, in the middle of an append: its record is in the journal,
// and it released the lock. The sync and the message file are still to come. All bytes are as that version wrote them.
type oldWriter struct {
	*testing.T
	disk     *crashfs.FS
	id       uuid.UUID // of the context
	journal  vfs.File
	envelope []byte
	at       time.Time
}

const (
	oldMessage = "0a000000-0000-4000-8000-00000000000a"
	oldBody    = `{"role":"user","content":"of an older version"}`
)

// newOldWriter appends to branch main of the only context on a disk.
func newOldWriter(t *testing.T, disk *crashfs.FS) *oldWriter {
	t.Helper()
	w := &oldWriter{T: t, disk: disk, at: time.Now().UTC().Truncate(time.Microsecond)}
	s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk, engine.ReadOnly()))
	c := kit.Must[*engine.Context](t)(s.Context(t.Context(), kit.List(t, s)[0].ID))
	ms := kit.Load(t, c.Active())
	last := ms[len(ms)-1]
	w.id = c.ID()
	w.envelope = fmt.Appendf(nil, `{"ctxdir":"message/1","id":%q,"line":%q,"position":%d,"prev":%q,"stored_at":%q,`+
		`"branch":"main","role":"user","message":%s}`, oldMessage, c.Metadata().Lines[0].ID, len(ms), last.ID,
		w.at.Format("2006-01-02T15:04:05.000000Z"), oldBody)
	kit.Check(t, c.Close(), s.Close())

	lock := disk.Lock("locks/" + w.id.String())
	defer lock.Close()
	kit.Check(t, lock.Acquire(t.Context()))
	name := w.id.String() + "/journal-1.jsonl"
	text := kit.Must[[]byte](t)(vfs.ReadFile(disk, name, 1<<20))
	end := len(bytes.TrimRight(text, "\n")) + 1
	heads := regexp.MustCompile(`(?m)^\{"chain":"([0-9a-f]{16})","prev":"[0-9a-f]{16}","seq": *([0-9]+),`).FindAllSubmatch(text, -1)
	newest := heads[len(heads)-1]
	seq, err := strconv.Atoi(string(newest[2]))
	kit.Check(t, err)
	head := fmt.Sprintf(`","prev":"%s","seq":%15d,"mark":%15d,"kind":"%-9s,"len":%10d,"was":%10d,"sum":"%016x","body":`,
		newest[1], seq+1, seq, `append"`, len(w.envelope), 0, xxhash.Sum64(w.envelope))
	record := fmt.Appendf(nil, "{\"chain\":\"%016x%s%s}\n", xxhash.Sum64String(head), head, w.envelope)
	w.journal = kit.Must[vfs.File](t)(disk.OpenFile(name, os.O_RDWR))
	kit.Must[int](t)(w.journal.WriteAt(record, int64(end)))
	kit.Check(t, lock.Release())
	return w
}

// acknowledge makes the record durable.
func (w *oldWriter) acknowledge() { kit.Check(w.T, w.journal.Datasync()) }

// file makes the message file, unless its folder was removed: the journal has the message.
func (w *oldWriter) file() {
	folder := w.id.String() + "/messages/branch-main/"
	if _, err := w.disk.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return
	}
	kit.Check(w.T,
		vfs.CreateFile(w.disk, folder+".tmp", append(w.envelope, '\n'), w.at),
		w.disk.Rename(folder+".tmp", folder+oldMessage+".json"), w.journal.Close())
}

// isThere reports an error unless a disk shows the message of the old version.
func (w *oldWriter) isThere(disk *crashfs.FS) error {
	shown, err := shownOn(disk)
	main := shown[w.id.String()+" branch main"]
	if err == nil && !strings.Contains(main, oldMessage+" user edited false, unavailable <nil>: "+oldBody+"\n") {
		err = fmt.Errorf("main shows\n%s", shown[w.id.String()+" branch main"])
	}
	return err
}

const oldStore = "../../testdata/stores/v2/fresh.tar.zst"

// TestUpgradeBesideAppend: this version upgrades a context between the record of an older version's append and its
// sync. Its own write builds on the record, so no power cut may lose the message, even before that sync. The message
// file that comes last is no damage.
func TestUpgradeBesideAppend(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(firstWrites)) {
		t.Run(name, func(t *testing.T) {
			disk := kit.GoldenDisk(t, oldStore)
			w := newOldWriter(t, disk)
			kit.Check(t, writeAll(disk, firstWrites[name]))
			for _, when := range []string{"before the sync", "acknowledged", "with its file"} {
				switch when {
				case "acknowledged":
					w.acknowledge()
				case "with its file":
					w.file()
				}
				if when == "before the sync" && isUpgraded(disk) != nil {
					continue // a collection found nothing to write
				}
				for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill} {
					cut := disk.Crash(choice)
					if err := w.isThere(cut); err != nil {
						t.Fatalf("%s, disk %s: %v", when, choice, err)
					}
					if err := findsNoError(cut); err != nil {
						t.Fatalf("%s, disk %s: %v", when, choice, err)
					}
				}
			}
		})
	}
}

// TestUpgradeAfterAppend: this version upgrades a context after an append of an older version that is acknowledged and
// still lacks its file. A power cut at any operation of the upgrade leaves the message.
func TestUpgradeAfterAppend(t *testing.T) {
	golden := kit.GoldenDisk(t, oldStore)
	w := newOldWriter(t, golden)
	w.acknowledge()
	states := 0
	for _, name := range slices.Sorted(maps.Keys(firstWrites)) {
		for k := len(golden.Ops()) + 1; ; k++ {
			disk := golden.Clone()
			disk.CutAt(k)
			err := writeAll(disk, firstWrites[name])
			if !disk.PowerCut() {
				kit.Check(t, err)
				break
			}
			for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
				states++
				if err := w.isThere(disk.Crash(choice)); err != nil {
					t.Fatalf("%s cut at operation %d (%s), disk %s: %v", name, k, kit.LastOp(disk), choice, err)
				}
			}
		}
	}
	t.Logf("%d disk states", states)
}
