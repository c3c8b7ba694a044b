package corpus

import (
	"testing"

	"github.com/google/uuid"
)

// TestStream checks what comparisons rest on: the same messages every time, ids that differ and grow.
func TestStream(t *testing.T) {
	c, err := Load("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	a, b, other := c.Stream(7), c.Stream(7), c.Stream(8)
	var last uuid.UUID
	for i := range int64(1000) {
		if a.ID(i) != b.ID(i) || string(a.Body(i)) != string(b.Body(i)) {
			t.Fatalf("message %d differs", i)
		}
		if a.ID(i) == other.ID(i) {
			t.Fatalf("message %d has the id of another stream's", i)
		}
		if id := a.ID(i); id.Version() != 7 || id.Variant() != uuid.RFC4122 || id.String() <= last.String() {
			t.Fatalf("id %d is %v after %v", i, id, last)
		}
		last = a.ID(i)
		if _, err := Decode(a.Body(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDecode(t *testing.T) {
	turn, err := Decode([]byte(`{"type":"user","message":{"role":"user","content":[1, 2]},"type":"again"}`))
	if err != nil || turn.Message.Role != "user" || turn.Type != "again" {
		t.Fatalf("%+v, %v", turn, err)
	}
	if _, err := Decode([]byte(`{"type":7}`)); err != nil {
		t.Fatalf("another shape: %v", err)
	}
	if _, err := Decode([]byte(`{"type":`)); err == nil {
		t.Fatal("torn JSON decoded")
	}
}
