package ctxdir

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ctxdir/ctxdir/blob"
)

// TestScanReferences: what looks like a reference is found wherever it lies in a large file, and however it is spelled.
func TestScanReferences(t *testing.T) {
	sum := blob.SumOf([]byte("x"))
	for _, spelled := range []string{`{"$blob":"SUM","size":1}`, `{"\u0024blob" : "SUM"}`, "{\n  \"$blob\":\n\t\"SUM\"}"} {
		ref := []byte(strings.Replace(spelled, "SUM", sum.String(), 1))
		for _, before := range []int{0, 1, scanned - len(ref), scanned - len(ref)/2, scanned - 1, scanned, 2*scanned - 50, 2*scanned + 7} {
			file := append(bytes.Repeat([]byte{' '}, before), ref...)
			file = append(file, bytes.Repeat([]byte{'\n'}, 1000)...)
			found := map[blob.Sum]bool{}
			if err := scanReferences(iotest.HalfReader(bytes.NewReader(file)), func(s blob.Sum) { found[s] = true }); err != nil || !found[sum] {
				t.Errorf("%s behind %d bytes: %v, %v", spelled, before, found, err)
			}
		}
	}
}
