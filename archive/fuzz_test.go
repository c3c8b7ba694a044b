package archive

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
)

// FuzzPack opens, reads, verifies and scans whatever bytes there are. Sums are mended first in half of the cases: else
// nothing but sums would be tried.
func FuzzPack(f *testing.F) {
	entries, payloads, file := small(f)
	f.Add(file, false, uint16(0), byte(0))
	f.Add(file[:len(file)/2], false, uint16(0), byte(0))
	f.Add(file, true, uint16(40), byte(7))
	f.Add([]byte{}, true, uint16(3), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, mend bool, at uint16, value byte) {
		if mend {
			b = bytes.Clone(file)
			size := int(footerOf(t, file).size - footerOf(t, file).tables)
			b[len(b)-1-int(at)%size] ^= value
			b = mended(t, b)
		}
		disk := put(t, b)
		for _, err := range Scan(disk, damagedName) {
			if err != nil {
				t.Fatal(err)
			}
		}
		p, err := Open(disk, damagedName)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		defer p.Close()
		for range p.Verify() {
		}
		for r, err := range p.Rows(uuid.Nil, 0, 1<<62) {
			if err == nil {
				_, _ = p.ReadMessage(r)
			}
		}
		if mend {
			readAll(t, p, entries, payloads)
		}
	})
}

// FuzzSalvage salvages whatever bytes there are, and a pack with pieces that were changed, moved or left out. What a
// scan finds in order is in the pack; what else there is, is read without harm.
func FuzzSalvage(f *testing.F) {
	entries, payloads, file := small(f)
	whole := footerOf(f, file)
	f.Add(file, false, uint16(0), uint16(0), uint16(0))
	f.Add(file[:whole.tables], false, uint16(0), uint16(0), uint16(0))
	f.Add([]byte{}, false, uint16(0), uint16(0), uint16(0))
	f.Add([]byte{1}, true, uint16(400), uint16(40), uint16(16))
	f.Add([]byte{}, true, uint16(16), uint16(300), uint16(900))
	f.Fuzz(func(t *testing.T, b []byte, splice bool, from, length, to uint16) {
		if splice { // bytes of the pack, b behind them, go to another place in it
			cut := func(n uint16) int { return int(n) % len(file) }
			piece := file[cut(from):min(cut(from)+cut(length), len(file))]
			b = slices.Concat(file[:cut(to)], piece, b, file[cut(to):])
		}
		disk := put(t, b)
		p, err := Salvage(disk, damagedName)
		if errors.Is(err, ErrVersion) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, p, entries, payloads)
		for range p.Verify() {
		}
		p.Close()
		var last *Row
		for f, err := range Scan(disk, damagedName) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Name != nil {
				continue
			}
			if last != nil && last.compare(f.Line, f.Position) >= 0 {
				return // it is left out
			}
			last = &f.Row
		}
		p, rows, _ := checkSalvaged(t, disk)
		p.Close()
		wholeRows(t, rows, entries)
	})
}

func footerOf(t tb, file []byte) footer {
	f, err := parseFooter(file[len(file)-footerSize:], int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// mended gives pages and footer of a pack whose layout is that of small the sums of what they hold.
func mended(t tb, b []byte) []byte {
	_, _, file := small(t)
	whole := footerOf(t, file)
	directory, ids, payloads := whole.layout()
	for _, table := range []*table{&directory, &ids, &payloads} {
		for n := range table.pages() {
			at, size, _ := table.page(n)
			sum := placedSum(b[at:at+size-sumSize], at)
			copy(b[at+size-sumSize:], appendLE(sum))
		}
	}
	foot := b[len(b)-footerSize : len(b)-sumSize]
	return append(b[:len(b)-footerSize], appendSum(bytes.Clone(foot), 0)...)
}

func appendLE(v uint64) (b []byte) {
	for range 8 {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}
