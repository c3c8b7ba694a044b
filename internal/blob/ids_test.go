package blob

import (
	"strings"
	"testing"
)

// TestIDsStay: an id never moves, so a program that looks for messages by it need not resolve references. One that
// another program moved comes back with any change of the threshold.
func TestIDsStay(t *testing.T) {
	const id = "0195f0a0-0000-7000-8000-00000000000a"
	for _, test := range []struct {
		text  string
		stays bool
	}{
		{id, true},
		{strings.ToUpper(id), true},
		{`\u0030` + id[1:], true},
		{id + "0", false},
		{id[:35], false},
		{id[:35] + "g", false},
		{strings.ReplaceAll(id, "-", ""), false},
		{strings.ReplaceAll(id, "-", "+"), false},
	} {
		body := `{"from":["` + test.text + `"]}`
		m := payloadsOf{}
		for _, threshold := range []int64{0, 1, 35, 36} {
			stored, refs, err := Externalise([]byte(body), Policy{threshold}, m.put)
			if want := test.stays || threshold > int64(len(test.text)); err != nil || (len(refs) == 0) != want || (string(stored) == body) != want {
				t.Errorf("%s at %d: %s, %v", test.text, threshold, stored, err)
			}
		}
	}
	m := payloadsOf{}
	sum, err := m.put([]byte(id))
	if err != nil {
		t.Fatal(err)
	}
	moved := `{"from":[{"$blob":"` + sum.String() + `","size":36}]}`
	for _, threshold := range []int64{-1, 0, 1, 1 << 20} {
		got, refs, err := Reexternalise([]byte(moved), Policy{threshold}, m.get, m.put)
		if want := `{"from":["` + id + `"]}`; err != nil || len(refs) > 0 || string(got) != want {
			t.Errorf("at %d: %s, %v", threshold, got, err)
		}
	}
}
