package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// openBytes opens a file with the given bytes.
func openBytes(t testing.TB, content []byte) vfs.File {
	f, err := crashfs.New().OpenFile(testLog, os.O_RDWR|os.O_CREATE)
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTorn checks that what a crash leaves of a record counts as torn, even if it ends like a record, and that a damaged
// record does not.
func TestTorn(t *testing.T) {
	t.Parallel()
	// The body is so long that the record ends in the third sector, and has a closing brace before each sector's end.
	body := `{"a":"` + strings.Repeat("}", 1200-headSize-len(`{"a":""}`)-tailSize) + `"}`
	long := appendRecord(nil, &Head{Seq: 1, Kind: Add, Len: int64(len(body)), Sum: message.Sum([]byte(body))}, []byte(body))
	if len(long) != 1200 {
		t.Fatalf("a record of %d bytes", len(long))
	}
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	blanked := func(b []byte, from, to int, with string) []byte {
		return append(append(bytes.Clone(b[:from]), strings.Repeat(with, to-from)...), b[to:]...)
	}
	laid := func(b []byte) []byte { return append(bytes.Clone(b), blankSpace(page-len(b))...) }
	for name, v := range map[string]struct {
		tail []byte
		want bool
	}{
		"blank":                           {laid(nil), true},
		"one sector of three":             {laid(long[:sector]), true},
		"two sectors of three":            {laid(long[:2*sector]), true},
		"the first sector is missing":     {laid(blanked(long, 0, sector, "\n")), true},
		"the second sector is missing":    {laid(blanked(long, sector, 2*sector, "\x00")), true},
		"a flipped bit in the body":       {laid(flip(long, 700)), false},
		"a flipped bit in the head":       {laid(flip(long, 20)), false},
		"zero bytes within a sector":      {laid(blanked(long, 600, 1000, "\x00")), false},
		"newlines within a sector":        {laid(blanked(long, 600, 1000, "\n")), false},
		"the write stopped in a sector":   {laid(append(bytes.Clone(long[:699]), 'x')), true},
		"the file is cut in a sector":     {long[:700], false},
		"the file is cut behind a sector": {long[:2*sector], true},
		"the file is cut before it":       {nil, true},
		"one byte of it":                  {long[:1], true},
	} {
		r := &reader{f: openBytes(t, v.tail), size: int64(len(v.tail))}
		if got, err := r.torn(0, r.size); got != v.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// sample is a log with records of several sizes and kinds, one commit of three records, and their ends.
func sample(t testing.TB) (content []byte, records []Record, first int64) {
	dir, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := BeginAt(dir, testLog, beginning(`{"n":7}`), Position{41, 0xfeed})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var items []Item
	for i, size := range []int{2, 300, 900, 40, 60, 80, 5000, 10, 20} {
		kind := Add
		if i%3 == 2 {
			kind = Metadata
		}
		items = append(items, Item{Kind: kind, Body: fmt.Appendf(nil, `{"n":"%d%s"}`, i, strings.Repeat("x", size)), Was: int64(i)})
	}
	for _, commit := range [][]Item{items[:1], items[1:3], items[3:6], items[6:]} {
		written, end, err := l.Write(commit, len(commit) == 3, true)
		if err == nil {
			err = l.SyncTo(end)
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, written...)
	}
	content = make([]byte, l.allocated)
	if _, err := l.f.ReadAt(content, 0); err != nil {
		t.Fatal(err)
	}
	return content, records, l.first
}

// readBytes reads a log from a file with the given bytes.
func readBytes(t testing.TB, content []byte) (records []Record, lost uint64, tail Tail, err error) {
	f := openBytes(t, content)
	l := &Log{name: testLog, f: f, sync: &syncer{}, suspect: &suspectMark{}}
	if l.info, err = f.Stat(); err != nil {
		t.Fatal(err)
	}
	if err = l.readBeginning(); err != nil {
		return nil, 0, Damaged, err
	}
	tail, err = l.Read(func(r Record) error {
		r.Body = bytes.Clone(r.Body)
		records = append(records, r)
		return nil
	}, func(n uint64) { lost += n })
	return records, lost, tail, err
}

// TestDamage changes each byte of a log. What is shown was written, in its order. All that was lost is counted, but for
// records at the end after the last mark that proves one.
// TestDamage changes each byte of a log. What is shown was written, and all that was lost is counted.
func TestDamage(t *testing.T) {
	t.Parallel()
	content, written, first := sample(t)
	same := func(r Record) bool {
		return slices.ContainsFunc(written, func(w Record) bool { return w.Head == r.Head && bytes.Equal(w.Body, r.Body) && w.Off == r.Off })
	}
	end := written[len(written)-1].Off + written[len(written)-1].Size()
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for at := 0; at < int(end)+3; at += stride {
		for _, with := range []byte{content[at] ^ 1, 0, '\n'} {
			if with == content[at] {
				continue
			}
			bad := bytes.Clone(content)
			bad[at] = with
			records, lost, tail, err := readBytes(t, bad)
			if err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
			for _, r := range records {
				if !same(r) {
					t.Fatalf("byte %d: record %d was never written", at, r.Seq)
				}
			}
			if int64(at) >= end-tailSize && int64(at) < end {
				continue // it looks like a write that stopped there
			}
			hit := int64(at) >= first && int64(at) < end
			wanted := len(written)
			if hit {
				wanted--
			}
			if len(records) != wanted {
				t.Fatalf("byte %d: %d of %d records", at, len(records), wanted)
			}
			last := int64(at) >= written[len(written)-1].Off
			if damaged := lost > 0 || tail == Damaged; hit && (damaged != true || lost == 0 != last) {
				t.Fatalf("byte %d: %d records are lost, its tail is %d", at, lost, tail)
			}
		}
	}
}

// TestDamagedSectors takes sectors away, as a failed disk does.
func TestDamagedSectors(t *testing.T) {
	t.Parallel()
	content, written, first := sample(t)
	for at := 0; at+sector <= len(content); at += sector {
		bad := bytes.Clone(content)
		clear(bad[at : at+sector])
		records, lost, _, err := readBytes(t, bad)
		if err != nil {
			t.Fatalf("sector at %d: %v", at, err)
		}
		// The last commit, of three records without a later mark, is indistinguishable from a torn one.
		proven := written[:6]
		var hit, after int
		for _, r := range proven {
			if r.Off < int64(at+sector) && int64(at) < r.Off+r.Size() {
				hit++
			} else {
				after++
			}
		}
		if len(records) < after || at < int(first) && hit == 0 && len(records) != len(written) {
			t.Errorf("sector at %d: %d records, %d lost; %d of the first %d are whole", at, len(records), lost, after, len(proven))
		}
	}
}

// TestBeginningLost reads a log whose begin record is damaged: the first record says where it goes on.
func TestBeginningLost(t *testing.T) {
	t.Parallel()
	content, written, first := sample(t)
	content[first-10] ^= 1
	f := openBytes(t, content)
	l := &Log{name: testLog, f: f, sync: &syncer{}, suspect: &suspectMark{}}
	var err error
	if l.info, err = f.Stat(); err != nil {
		t.Fatal(err)
	}
	if err := l.readBeginning(); err != nil {
		t.Fatal(err)
	}
	if l.State() != nil || l.From() != (Position{41, written[0].Prev}) {
		t.Errorf("it goes on from %v with state %s", l.From(), l.State())
	}
}

// TestBlank opens logs of which a crash left nothing, or a part of the begin record.
func TestBlank(t *testing.T) {
	t.Parallel()
	content, _, first := sample(t)
	for name, c := range map[string][]byte{
		"preallocated":      blankSpace(page),
		"no byte":           nil,
		"zeros":             make([]byte, page),
		"begun in a sector": append(bytes.Clone(content[:200]), blankSpace(page-200)...),
	} {
		if _, _, _, err := readBytes(t, c); !errors.Is(err, ErrBlank) {
			t.Errorf("%s: %v", name, err)
		}
	}
	flipped := append(bytes.Clone(content[:first]), blankSpace(page)...)
	flipped[50] ^= 1
	if _, _, _, err := readBytes(t, flipped); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged begin record alone: %v", err)
	}
}

// FuzzRead reads anything as a log.
func FuzzRead(f *testing.F) {
	content, _, first := sample(f)
	f.Add(content)
	f.Add(content[:first])
	f.Add(append(content[:first:first], content[first+3:]...))
	f.Fuzz(func(t *testing.T, content []byte) {
		records, _, _, err := readBytes(t, content)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrBlank) && !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
		for i, r := range records {
			if i > 0 && r.Seq <= records[i-1].Seq {
				t.Fatalf("record %d follows %d", r.Seq, records[i-1].Seq)
			}
		}
	})
}
