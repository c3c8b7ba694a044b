package archive

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// scanned counts what a scan finds whole. All of it has to be what went in.
func scanned(t *testing.T, fsys vfs.FS, entries []entry) (messages, blobs int) {
	t.Helper()
	for f, err := range Scan(fsys, damagedName) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Name != nil && f.Err == nil:
			blobs++
			if SumOf(f.Payload) != *f.Name {
				t.Fatalf("payload %s is %q", f.Name, f.Payload)
			}
		case f.Err != nil:
			if !errors.Is(f.Err, ErrDamaged) {
				t.Fatal(f.Err)
			}
		case !known(entries, &f.Message):
			t.Fatalf("message from nowhere: %+v", f)
		default:
			messages++
		}
	}
	return messages, blobs
}

// TestRebuilt makes a new pack from a scan of one without tables.
func TestRebuilt(t *testing.T) {
	entries, payloads, file := small(t)
	whole := open(t, put(t, file), damagedName)
	disk := put(t, file[:whole.foot.tables])
	w, err := Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range Scan(disk, damagedName) {
		switch {
		case err != nil:
		case f.Name != nil:
			_, err = w.AddPayload(f.Payload)
		default:
			err = w.Add(f.Envelope)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	checkPack(t, open(t, disk, FileName(w.ID())), entries, payloads)
}

// TestMessagesInPayloads damages groups whose payloads look like parts of a pack: nothing in them may be taken for a
// message of this one.
func TestMessagesInPayloads(t *testing.T) {
	_, _, inner := small(t)
	// Behind random bytes, a pack is not compressed again.
	raw := make([]byte, 1<<16)
	for i, r := 0, rand.New(rand.NewPCG(1, 1)); i < len(raw); i++ {
		raw[i] = byte(r.Uint32())
	}
	raw = append(raw, inner...)
	for name, c := range map[string]struct {
		payload []byte
		harm    []int // bytes behind the beginning of the group
	}{
		"a message, the head":        {append(makeEnvelope(1, 1, "inner"), '\n'), []int{8}},
		"a pack, the head":           {raw, []int{8}},
		"a pack, the head and frame": {raw, []int{8, skipHead + 4 + groupEntry}},
	} {
		disk := crashfs.New()
		file, err := vfs.ReadFile(disk, build(t, disk, []entry{entryOf(t, makeEnvelope(3, 1, "outer"))}, c.payload), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.payload) > len(inner) && !bytes.Contains(file, inner) {
			t.Fatal("the payload is compressed")
		}
		group := bytes.Index(file, []byte(kindPayloads)) - 8
		for _, at := range c.harm {
			file[group+at] ^= 0xff
		}
		found := 0
		for f, err := range Scan(put(t, file), damagedName) {
			if err != nil || f.Name == nil && f.Line != lineID(3) {
				t.Fatalf("%s: %+v, %v", name, f, err)
			}
			if f.Name == nil {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d messages", name, found)
		}
	}
}
