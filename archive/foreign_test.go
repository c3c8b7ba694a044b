package archive

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// recompressed is what zstd makes of what it decompressed.
func recompressed(t tb, entries []entry, streamed, checked bool) []byte {
	t.Helper()
	var content []byte
	for _, e := range entries {
		content = append(append(content, e.envelope...), '\n')
	}
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderCRC(checked), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	if !streamed {
		return w.EncodeAll(content, nil)
	}
	for part := content; len(part) > 0; {
		n := min(len(part), 100_000)
		if _, err := w.Write(part[:n]); err != nil {
			t.Fatal(err)
		}
		part = part[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRecompressed: a pack that another program compressed anew has its messages, whatever kind of frame that makes.
func TestRecompressed(t *testing.T) {
	t.Parallel()
	large, _ := sample(t)
	few, _, _ := small(t)
	var long []entry
	for n := range 5 {
		long = append(long, entryOf(t, makeEnvelope(0, n, noise(3<<20, uint64(n)))))
	}
	for name, entries := range map[string][]entry{"few": few, "large": large, "long": long, "one": few[:1]} {
		for _, streamed := range []bool{false, true} {
			for _, checked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, streamed %v, checked %v", name, streamed, checked), func(t *testing.T) {
					p, rows, _ := checkSalvaged(t, put(t, recompressed(t, entries, streamed, checked)))
					if len(rows) != len(entries) {
						t.Errorf("%d messages of %d", len(rows), len(entries))
					}
					checkPack(t, p, entries, nil)
				})
			}
		}
	}
}

// TestRecompressedHuge: a message as long as can be, between others.
func TestRecompressedHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some hundred MiB")
	}
	t.Parallel()
	entries := []entry{
		entryOf(t, makeEnvelope(0, 0, "short")),
		entryOf(t, makeEnvelope(0, 1, strings.Repeat("long ", (MaxMessage-2000)/5))),
		entryOf(t, makeEnvelope(0, 2, "short")),
	}
	p := salvagePack(t, put(t, recompressed(t, entries, true, true)))
	for n, e := range entries {
		r, err := p.Lookup(lineID(0), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.ReadMessage(r)
		checkMessage(t, &e, b, err)
	}
}

// TestRecompressedDamaged: where the frame's checksum is wrong nothing in it counts, and what is no message is passed
// over.
func TestRecompressedDamaged(t *testing.T) {
	t.Parallel()
	entries, _, _ := small(t)
	file := recompressed(t, entries, true, true)
	for at := 0; at < len(file); at += stride(7) {
		b := bytes.Clone(file)
		b[at] ^= 1 << (at % 8)
		_, rows, _ := checkSalvaged(t, put(t, b))
		if n := wholeRows(t, rows, entries); n != 0 && n != len(entries) {
			t.Fatalf("byte %d: %d messages", at, n)
		}
	}
	for n := 0; n < len(file); n += stride(7) {
		if _, rows, _ := checkSalvaged(t, put(t, file[:n])); len(rows) != 0 {
			t.Fatalf("%d bytes: %d messages", n, len(rows))
		}
	}
	stranger := entry{envelope: []byte("no message")}
	with := append([]entry{stranger}, append(slices.Clone(entries), stranger)...)
	if _, rows, _ := checkSalvaged(t, put(t, recompressed(t, with, true, false))); wholeRows(t, rows, entries) != len(entries) {
		t.Errorf("%d messages", len(rows))
	}
	var bomb []entry
	for range 10 * maxStrangers {
		bomb = append(bomb, stranger)
	}
	if _, rows, _ := checkSalvaged(t, put(t, recompressed(t, append(bomb, entries...), true, false))); len(rows) != 0 {
		t.Errorf("%d messages behind %d lines", len(rows), len(bomb))
	}
}

// TestFront: what stands in front of a pack costs nothing.
func TestFront(t *testing.T) {
	entries, payloads, file := small(t)
	for name, front := range map[string][]byte{
		"byte": {0}, "mark": []byte("\ufeff"), "text": []byte("hello\n"), "zeros": make([]byte, 100_000),
		"frame": recompressed(t, entries[:1], false, true),
	} {
		p, rows, _ := checkSalvaged(t, put(t, append(bytes.Clone(front), file...)))
		if len(rows) != len(entries) {
			t.Errorf("%s: %d messages of %d", name, len(rows), len(entries))
		}
		checkPack(t, p, entries, payloads)
		if _, err := Open(put(t, append(bytes.Clone(front), file...)), damagedName); !isDamage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A pack behind another one is no part of that.
	other, _ := sample(t)
	both := slices.Concat(file, recompressed(t, other, false, true), file)
	if p := salvagePack(t, put(t, both)); p.Len() != int64(len(entries)) {
		t.Errorf("%d messages", p.Len())
	}
}
