package storetest

import (
	"bytes"
	"encoding/json"
)

// DecodeJSON is a JSON value by other means than those of package legacy, number literals as they are.
func DecodeJSON(t interface{ Fatal(...any) }, b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// SameJSON reports whether two files are equal as JSON, number literals verbatim.
func SameJSON(t interface{ Fatal(...any) }, a, b []byte) bool {
	x, _ := json.Marshal(DecodeJSON(t, a))
	y, _ := json.Marshal(DecodeJSON(t, b))
	return bytes.Equal(x, y)
}
