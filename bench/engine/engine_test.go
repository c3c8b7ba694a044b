package engine

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

// TestEngines checks that every peer does what a row asks of it: one that returned less would look fast.
func TestEngines(t *testing.T) {
	_, missing := All()
	for _, m := range missing {
		t.Log(m)
	}
	for _, e := range Reading() {
		for _, d := range []Durability{Full, Relaxed} {
			t.Run(fmt.Sprintf("%s/%d", e.Name, d), func(t *testing.T) { testEngine(t, e, d) })
		}
	}
}

func testEngine(t *testing.T, e *Engine, d Durability) {
	dir := filepath.Join(t.TempDir(), "store")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	message := func(i int64) Message {
		var id uuid.UUID
		id[0], id[6], id[8], id[15] = 1, 0x70, 0x80, byte(i)
		return Message{ID: id, Body: fmt.Appendf(nil, `{"type":"user","n":%d,"text":"hello"}`, i)}
	}
	check := func(got []Stored, err error, from, to int64) {
		t.Helper()
		must(err)
		if int64(len(got)) != to-from {
			t.Fatalf("%d messages, want [%d, %d)", len(got), from, to)
		}
		for i, m := range got {
			want := message(from + int64(i))
			if m.ID != want.ID || m.Position != from+int64(i) || !bytes.Equal(m.Body, want.Body) {
				t.Fatalf("message %d is %v %d %s", from+int64(i), m.ID, m.Position, m.Body)
			}
		}
	}
	s, err := e.Open(dir, d)
	must(err)
	id, err := s.Create("title")
	must(err)
	c, err := s.Context(id, Main)
	must(err)
	must(Build(c, 30, message))
	must(c.Append(message(30)))
	must(c.AppendBatch([]Message{message(31), message(32)}))
	must(c.Settle())
	for range 2 { // as written, and opened anew
		got, err := c.Last(5)
		check(got, err, 28, 33)
		got, err = c.Range(10, 20)
		check(got, err, 10, 20)
		got = nil
		err = c.All(keep(&got))
		check(got, err, 0, 33)
		m, err := c.ByID(message(17).ID)
		must(err)
		if !bytes.Equal(m.Body, message(17).Body) {
			t.Fatalf("by id: %s", m.Body)
		}
		infos, err := c.Branches()
		must(err)
		if len(infos) != 1 || infos[0].Messages != 33 || infos[0].Bytes == 0 {
			t.Fatalf("branches: %v", infos)
		}
		list, err := s.List()
		must(err)
		if len(list) != 1 || list[0].ID != id || list[0].Messages != 33 {
			t.Fatalf("list: %v", list)
		}
		must(c.Close())
		must(s.Close())
		s, err = e.Open(dir, d)
		must(err)
		c, err = s.Context(id, Main)
		must(err)
	}
	must(c.Fork("alt", 10))
	alt, err := s.Context(id, "alt")
	must(err)
	got, err := alt.Last(4)
	check(got, err, 6, 10)
	must(alt.Append(Message{ID: uuid.New(), Body: []byte(`{}`)}))
	got, err = alt.Range(8, 20)
	must(err)
	if len(got) != 3 {
		t.Fatalf("forked: %d messages", len(got))
	}
	must(alt.Close())
	must(c.Close())
	must(s.Close())
}
