package ctxdir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// TestBodyInOtherJSON: a body keeps every byte in other JSON, if the encoder does not escape for HTML.
func TestBodyInOtherJSON(t *testing.T) {
	ctx := context.Background()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const body = "{\"b\":\"<a href=\\\"x\\\">&\u2028\\u003c\",\"n\":1.0,\"b\":2e+05}"
	id := uuid.NewSHA1(c.ID(), []byte("first"))
	if _, err := c.Active().Append(ctx, ctxdir.Draft{ID: id, Body: json.RawMessage(body)}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Active().Message(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Body(ctx)
	if err != nil || string(got) != body {
		t.Fatalf("%s, %v", got, err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]json.RawMessage{"message": got}); err != nil || !strings.Contains(b.String(), body) {
		t.Errorf("%s, %v", &b, err)
	}
	same, other := uuid.NewSHA1(c.ID(), []byte("first")), uuid.NewSHA1(c.ID(), []byte("second"))
	if id != same || id == other || id.Version() != 5 || id.Variant() != uuid.RFC4122 {
		t.Errorf("derived ids %s, %s and %s", id, same, other)
	}
}
