package blob

import (
	"errors"
	"strings"
	"testing"
)

// TestAttach: a pointer is to the message as it came, whatever is moved out of it or escaped in it.
func TestAttach(t *testing.T) {
	m := payloadsOf{}
	payload := []byte{0xff, 0, 1}
	sum, _ := m.put(payload)
	asked := 0
	ref := func() (Ref, error) {
		asked++
		return Ref{Sum: sum, Size: 3, Encoding: Base64, MediaType: "image/png"}, nil
	}
	for _, test := range []struct {
		body, want string
		at         []string
	}{
		{`{"a":"","b":[{"data":""},""]}`, `{"a":"","b":[{"data":"/wAB"},""]}`, []string{"/b/0/data"}},
		{`{"a":"","b":""}`, `{"a":"/wAB","b":"/wAB"}`, []string{"/b", "/a"}},
		{`{"a/b":{"~":""}}`, `{"a/b":{"~":"/wAB"}}`, []string{"/a~1b/~0"}},
		{`{"$blob":"","$$blob":""}`, `{"$blob":"","$$blob":"/wAB"}`, []string{"/$$blob"}},
		{`{"$blob":"","$$blob":""}`, `{"$blob":"/wAB","$$blob":""}`, []string{"/$blob"}},
		{`{"x":{"\u0024blob":""}}`, `{"x":{"\u0024blob":"/wAB"}}`, []string{"/x/$blob"}},
		{`{"long":"longer than the threshold","a":[1,""]}`, `{"long":"longer than the threshold","a":[1,"/wAB"]}`, []string{"/a/1"}},
		{`{"a":"x"}`, "", []string{"/a"}},
		{`{"a":{}}`, "", []string{"/a"}},
		{`{"a":""}`, "", []string{"/a", "/b"}},
		{`{"a":"","a":""}`, "", []string{"/a"}},
		{`{"a":""}`, "", []string{""}},
		{`{"$blob":"","$$blob":"x"}`, "", []string{"/$$blob"}},
	} {
		for _, threshold := range []int64{-1, 0, 10} {
			attached := map[string]func() (Ref, error){}
			for _, p := range test.at {
				attached[p] = ref
			}
			before := len(m)
			asked = 0
			stored, refs, err := Attach([]byte(test.body), Policy{threshold}, m.put, attached)
			if test.want == "" {
				if !errors.Is(err, ErrPlace) || asked > 0 || len(m) > before {
					t.Errorf("%s, %v: %s, %v, %d payloads stored", test.body, test.at, stored, err, len(m)-before+asked)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			listed, err := Refs(stored)
			if err != nil || len(listed) != len(refs) {
				t.Errorf("%s: %d references, %d told, %v", stored, len(listed), len(refs), err)
			}
			if body, err := Resolve(stored, m.get); err != nil || string(body) != test.want {
				t.Errorf("%s, %v: %s, %v", test.body, test.at, body, err)
			}
		}
	}
}

// TestReexternaliseKeeps: what stays a reference is not read, and stays what it was: attachments of any length, and
// texts that are long enough.
func TestReexternaliseKeeps(t *testing.T) {
	m := payloadsOf{}
	longText := strings.Repeat("text", 100)
	binary, _ := m.put([]byte{0xff})
	long, _ := m.put([]byte(longText))
	short, _ := m.put([]byte("short"))
	stored := `{"$$blob":1,"a":{"$blob":"` + binary.String() + `","size":1,"encoding":"base64","later":true},` +
		`"b":[{"$blob":"` + long.String() + `","size":400},{"$blob":"` + short.String() + `","size":5}],"c":"inline"}`
	asked := map[Sum]bool{}
	get := func(r Ref) ([]byte, error) {
		asked[r.Sum] = true
		return m.get(r)
	}
	for _, test := range []struct {
		threshold int64
		want      string
		refs      int
		asked     []Sum
	}{
		{300, `{"$$blob":1,"a":{"$blob":"` + binary.String() + `","size":1,"encoding":"base64","later":true},` +
			`"b":[{"$blob":"` + long.String() + `","size":400},"short"],"c":"inline"}`, 2, []Sum{short}},
		{-1, `{"$$blob":1,"a":{"$blob":"` + binary.String() + `","size":1,"encoding":"base64","later":true},` +
			`"b":["` + longText + `","short"],"c":"inline"}`, 1, []Sum{short, long}},
	} {
		clear(asked)
		got, refs, err := Reexternalise([]byte(stored), Policy{test.threshold}, get, m.put)
		if err != nil || string(got) != test.want || len(refs) != test.refs || len(asked) != len(test.asked) {
			t.Errorf("%d: %s, %v, %d references, %d payloads read", test.threshold, got, err, len(refs), len(asked))
		}
		for _, ref := range refs {
			if got[ref.Offset] != '{' || got[ref.end-1] != '}' {
				t.Errorf("%d: reference at %d to %d of %s", test.threshold, ref.Offset, ref.end, got)
			}
		}
		for _, sum := range test.asked {
			if !asked[sum] {
				t.Errorf("%d: %s was not read", test.threshold, sum)
			}
		}
	}
}
