package index

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestSalvageOfAnotherHistory damages the begin record of a journal. Its records must count where they continue the
// known history. Where an older copy of the context was put over a newer one, they only fill gaps.
func TestSalvageOfAnotherHistory(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"the same history": false, "another one": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.must(b.add(3, true))
			copied := t.TempDir()
			b.must(os.CopyFS(copied, os.DirFS(b.root)))
			b.must(b.add(2, true))
			b.must(b.rotate())
			b.must(b.add(2, true))
			b.must(os.RemoveAll(filepath.Join(b.root, "messages")))
			b.close()
			if older {
				for _, name := range []string{"journal-1.jsonl", "index.json"} {
					raw, err := os.ReadFile(filepath.Join(copied, name))
					b.must(err)
					b.must(os.WriteFile(filepath.Join(b.root, name), raw, 0o600))
				}
				b.must(os.RemoveAll(filepath.Join(b.root, "index")))
			}
			raw, err := os.ReadFile(b.journal(2))
			b.must(err)
			raw[bytes.Index(raw, []byte(`"body":`))+20] ^= 1
			b.must(os.WriteFile(b.journal(2), raw, 0o600))
			b.open(b.dir.ID)
			want := 7
			if older {
				want = 3
				b.must(os.Remove(filepath.Join(b.root, "index.json"))) // so that it is made anew
				b.ids = b.ids[:3]
			}
			b.shows(want)
		})
	}
}
