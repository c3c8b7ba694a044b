package index

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestTorn checks that what a crash leaves of a record counts as torn, even if it ends like a record, and that a damaged
// record does not.
func TestTorn(t *testing.T) {
	t.Parallel()
	// The body is so long that the record ends in the third sector, and has a closing brace before each sector's end.
	record := func(total int) []byte {
		body := `{"a":"` + strings.Repeat("}", total-headSize-len(`{"a":""}`)-tailSize) + `"}`
		b, h := appendRecord(nil, head{seq: 1, kind: KindAppend, len: int64(len(body)), sum: bodySum([]byte(body))}, []byte(body))
		if h.size() != int64(total) {
			t.Fatalf("a record of %d bytes", h.size())
		}
		return b
	}
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	blanked := func(b []byte, from, to int, with string) []byte {
		return append(append(bytes.Clone(b[:from]), strings.Repeat(with, to-from)...), b[to:]...)
	}
	laid := func(b []byte) []byte {
		return append(bytes.Clone(b), bytes.Repeat([]byte("\n"), page-len(b))...)
	}
	long := record(1200)
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
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, v.tail, 0o600); err != nil {
			t.Fatal(err)
		}
		fsys, err := vfs.OS(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.OpenFile("journal", os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{f: f, size: int64(len(v.tail))}
		if got, err := r.torn(0, r.size); got != v.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err := errors.Join(f.Close(), fsys.Close()); err != nil {
			t.Error(err)
		}
	}
}
