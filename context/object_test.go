package context

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestDecode: decode gives every value that json.Unmarshal gives, and fails where that fails.
func TestDecode(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `-7`, `1.5`, `1e2`, `9223372036854775807`, `9223372036854775808`, `""`, `"text"`, `"a\nb \u00e9\ud800"`,
		"\"\xff\"", `"é"`, `[]`, `[1]`, `[null]`, `[{}, {"a": 1, "a": [2]}]`, `[{"a":1},2]`, `{}`, `{"b" : {"c":null}}`,
		`"01890a5d-ac96-774b-bcce-b302099a8057"`, `"01890A5D-AC96-774B-BCCE-B302099A8057"`,
		`"urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057"`, `"\u00301890a5d-ac96-774b-bcce-b302099a8057"`,
		`"2026-01-02T03:04:05.6Z"`, `"2026-01-02T03:04:05+02:00"`, `"2026-01-02"`,
	}
	for _, into := range []any{
		new(string), new(uuid.UUID), new(int64), new(time.Time), new(Object), new([]Object), new(json.RawMessage), new([]Line),
	} {
		for _, v := range values {
			want, got := reflect.New(reflect.TypeOf(into).Elem()), reflect.New(reflect.TypeOf(into).Elem())
			werr, err := json.Unmarshal([]byte(v), want.Interface()), decode(json.RawMessage(v), got.Interface())
			if (werr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(want.Interface(), got.Interface()) {
				t.Errorf("%s into %T: %v, %v; wanted %v, %v", v, into, got.Elem(), err, want.Elem(), werr)
			}
		}
	}
}
