package blob

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/message"
)

// TestRealConversations takes every record of real histories to blobs and back, at several thresholds.
func TestRealConversations(t *testing.T) {
	dir := os.Getenv("CTXDIR_TEST_DATA")
	if dir == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder of real histories")
	}
	records, texts, binary, inline := 0, 0, 0, 0
	check := func(record []byte) {
		body, err := message.Compact(record)
		if err != nil {
			return
		}
		records++
		for _, threshold := range []int64{0, 1024, -1} {
			stored, refs, _ := roundTrip(t, string(body), threshold)
			if threshold != 1024 {
				continue
			}
			for _, r := range refs {
				if r.Encoding == "" {
					texts++
				} else if binary++; r.MediaType == "" {
					t.Errorf("binary data of %d bytes without a media type", r.Size)
				}
			}
			var longest func(v any)
			longest = func(v any) {
				switch v := v.(type) {
				case map[string]any:
					for _, e := range v {
						longest(e)
					}
				case []any:
					for _, e := range v {
						longest(e)
					}
				case string:
					if len(v) >= 1024 {
						inline++
					}
				}
			}
			var v any
			if json.Unmarshal([]byte(stored), &v) == nil {
				longest(v)
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".md") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if json.Valid(b) {
			check(b)
			return nil
		}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			check(lines.Bytes())
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records: %d texts and %d binary payloads moved, %d long strings left inline", records, texts, binary, inline)
	if records == 0 || texts == 0 || inline*100 > texts {
		t.Error("that is not what real histories give")
	}
}
