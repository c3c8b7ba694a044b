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

// TestLooksDamaged checks that what a crash leaves of a record does not look damaged, even if it ends like a record,
// and that a damaged record does.
func TestLooksDamaged(t *testing.T) {
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
	laid := func(b []byte) []byte {
		return append(bytes.Clone(b), bytes.Repeat([]byte("\n"), page-len(b))...)
	}
	long, even := record(1200), record(2*sector+1)
	for name, v := range map[string]struct {
		tail []byte
		want bool
	}{
		"blank":                           {laid(nil), false},
		"one sector of three":             {laid(long[:sector]), false},
		"two sectors of three":            {laid(long[:2*sector]), false},
		"the first sector is missing":     {laid(append(bytes.Repeat([]byte("\n"), sector), long[sector:]...)), false},
		"the second sector is missing":    {laid(append(append(bytes.Clone(long[:sector]), make([]byte, sector)...), long[2*sector:]...)), false},
		"a flipped bit in the body":       {laid(flip(long, 700)), true},
		"a flipped bit in the head":       {laid(flip(long, 20)), true},
		"to a sector's end, flipped":      {laid(flip(even, 700)), true},
		"the file is cut in a sector":     {long[:700], true},
		"the file is cut behind a sector": {long[:2*sector], false},
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
		if got := (&journal{gen: 1, f: f}).looksDamaged(0); got != v.want {
			t.Errorf("%s: %v", name, got)
		}
		if err := errors.Join(f.Close(), fsys.Close()); err != nil {
			t.Error(err)
		}
	}
}
