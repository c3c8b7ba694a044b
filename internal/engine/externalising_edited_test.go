package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExternaliseEdited: a message that is edited by hand after it was read stays as it was edited.
func TestExternaliseEdited(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(-1))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	for n, size := range []int{5000, 100 << 10} { // the second one's payload does not ride in the journal
		body := []byte(`{"content":"` + strings.Repeat("a", size) + `"}`)
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(n), Body: body}))
	}
	check(t, c.Fold(ctx), c.Close())
	edited := filepath.Join(dir, c.ID().String(), "messages/branch-main", testID(0).String()+".json")
	done := false
	beside := &hooked{FS: s.fs, remove: func(string) {}, open: func(name string) {
		if !done && strings.HasPrefix(name, "blobs/") {
			done = true
			b := must[[]byte](t)(os.ReadFile(edited))
			check(t, os.WriteFile(edited, bytes.Replace(b, []byte("aaaa"), []byte("EDIT"), 1), 0o600))
		}
	}}
	other := must[*Store](t)(Open(dir, withFS(beside), WithTextThreshold(-1)))
	c = must[*Context](t)(other.Context(ctx, c.ID()))
	defer c.Close()
	moved := must[Externalised](t)(c.Externalise(ctx, 1000, false))
	if !done || moved.Messages != 1 {
		t.Errorf("edited meanwhile: %v; %d messages externalised, want 1", done, moved.Messages)
	}
	check(t, c.Refresh(ctx))
	m := must[*Message](t)(c.Active().Message(ctx, testID(0)))
	if body := must[json.RawMessage](t)(m.Body(ctx)); !bytes.Contains(body, []byte("EDIT")) {
		t.Error("the edit is gone")
	}
}
