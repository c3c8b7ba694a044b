//go:build !race

package blob

import (
	"strings"
	"testing"
)

// TestNothingToDoCostsNothing: most messages hold nothing to move. (Under the race detector pools drop things at
// random.)
func TestNothingToDoCostsNothing(t *testing.T) {
	body := []byte(`{"role":"assistant","content":[{"type":"text","text":"` + strings.Repeat(`line\n`, 100) + `"},{"n":[1,2.5e3,true,null]}]}`)
	m := payloadsOf{}
	put, get := m.put, m.get
	if n := testing.AllocsPerRun(100, func() {
		if out, refs, err := Externalise(body, Policy{1024}, put); err != nil || refs != nil || &out[0] != &body[0] {
			t.Fatal(err)
		}
		if out, err := Resolve(body, get); err != nil || &out[0] != &body[0] {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
