package blob

import (
	"errors"
	"testing"
)

func TestPlace(t *testing.T) {
	payload := []byte{0xff, 0, 1}
	ref := Ref{Sum: SumOf(payload), Size: 3, Encoding: Base64, MediaType: "image/png"}
	get := func(r Ref) ([]byte, error) {
		if r.Sum != ref.Sum || r.MediaType != "image/png" {
			t.Errorf("%+v", r)
		}
		return payload, nil
	}
	for _, test := range []struct {
		body, want string
		at         []string
	}{
		{`{"a":"","b":[{"data":""},""]}`, `{"a":"","b":[{"data":"/wAB"},""]}`, []string{"/b/0/data"}},
		{`{"a":"","b":""}`, `{"a":"/wAB","b":"/wAB"}`, []string{"/a", "/b"}},
		{`{"a/b":{"~":""}}`, `{"a/b":{"~":"/wAB"}}`, []string{"/a~1b/~0"}},
		{`{"a":"x"}`, "", []string{"/a"}},
		{`{"a":{}}`, "", []string{"/a"}},
		{`{"a":""}`, "", []string{"/a", "/b"}},
	} {
		refs := map[string]Ref{}
		for _, p := range test.at {
			refs[p] = ref
		}
		stored, err := Place([]byte(test.body), refs)
		if test.want == "" {
			if !errors.Is(err, ErrReference) {
				t.Errorf("%s, %v: %s, %v", test.body, test.at, stored, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if body, err := Resolve(stored, get); err != nil || string(body) != test.want {
			t.Errorf("%s, %v: %s, %v", test.body, test.at, body, err)
		}
	}
}
