package object

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestDecode: Decode gives every value that json.Unmarshal gives, and fails where that fails.
func TestDecode(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `-7`, `1.5`, `1e2`, `9223372036854775807`, `9223372036854775808`, `""`, `"text"`, `"a\nb \u00e9\ud800"`,
		"\"\xff\"", `"é"`, `[]`, `[1]`, `[null]`, `[{}, {"a": 1, "a": [2]}]`, `[{"a":1},2]`, `{}`, `{"b" : {"c":null}}`,
		`"01890a5d-ac96-774b-bcce-b302099a8057"`, `"01890A5D-AC96-774B-BCCE-B302099A8057"`,
		`"urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057"`, `"\u00301890a5d-ac96-774b-bcce-b302099a8057"`,
		`"2026-01-02T03:04:05.6Z"`, `"2026-01-02T03:04:05+02:00"`, `"2026-01-02"`,
	}
	for _, into := range []any{
		new(string), new(uuid.UUID), new(int64), new(time.Time), new(Object), new([]Object), new(json.RawMessage),
	} {
		for _, v := range values {
			want, got := reflect.New(reflect.TypeOf(into).Elem()), reflect.New(reflect.TypeOf(into).Elem())
			werr, err := json.Unmarshal([]byte(v), want.Interface()), Decode(json.RawMessage(v), got.Interface())
			if (werr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(want.Interface(), got.Interface()) {
				t.Errorf("%s into %T: %v, %v; wanted %v, %v", v, into, got.Elem(), err, want.Elem(), werr)
			}
		}
	}
}

// TestObjectRepeatsMembers: the last value of a repeated key counts, at the place of the first one, in small objects and
// in large ones.
func TestObjectRepeatsMembers(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 100} {
		var members, want []string
		for k := range 3 {
			for i := range n {
				members = append(members, fmt.Sprintf(`"key %d":%d`, i, k))
			}
		}
		want = members[2*n:]
		var o Object
		if err := o.UnmarshalJSON([]byte("{" + strings.Join(members, ", ") + "}")); err != nil {
			t.Fatal(err)
		}
		if got := string(o.Raw()); got != "{"+strings.Join(want, ",")+"}" {
			t.Errorf("%d members: %s", n, got)
		}
	}
}

// TestObjectKeepsNothingOfItsText: a caller may use the text of an object again, and append to a value.
func TestObjectKeepsNothingOfItsText(t *testing.T) {
	text := []byte(`{"a":[1,2],"b":{"c":3},"d":"e f"}`)
	want := string(text)
	var o Object
	if err := o.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	copy(text, slices.Repeat([]byte{'x'}, len(text)))
	for _, m := range o.Members() {
		_ = append(m.Value, "overwritten"...)
	}
	if got := string(o.Raw()); got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}

// TestCompact: white space between tokens goes, in strings it stays.
func TestCompact(t *testing.T) {
	for v, want := range map[string]string{
		`"a b"`: `"a b"`, ` "a b"`: `"a b"`, "\"a b\"\n": `"a b"`, `{ "a" : " b" }`: `{"a":" b"}`, `[1, "x y"]`: `[1,"x y"]`, ` 5 `: `5`,
	} {
		if got := string(Compact(json.RawMessage(v))); got != want {
			t.Errorf("%s: %s, wanted %s", v, got, want)
		}
	}
}
