package storetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// A handle appends while another one erases a message with a payload: after the erase rotated, before it sealed. Later it
// appends the payload again.
func TestPayloadBesideErase(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	body := []byte(`{"role":"user","content":"` + strings.Repeat("the same text. ", 300) + `"}`)
	first := kit.Append(t, c.Active(), engine.Draft{Body: body})

	other := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
	defer other.Close()
	done := false
	disk.Fail(func(op crashfs.Op) error {
		if !done && op.Kind == crashfs.KindRename && strings.HasSuffix(op.To, ".zst") && strings.Contains(op.To, "/segments/") {
			done = true
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user","content":"meanwhile"}`)})
		}
		return nil
	})
	if _, err := kit.Erase(other, c.ID(), first.ID, erase.Options{}); err != nil || !done {
		t.Fatal(err, done)
	}
	disk.Fail(nil)
	second := kit.Append(t, c.Active(), engine.Draft{Body: body}) // acknowledged
	kit.Check(t, c.Close())

	fresh := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer fresh.Close()
	for _, m := range kit.Load(t, fresh.Active()) {
		if m.ID == second.ID {
			if b, err := m.Body(ctx); err != nil || string(b) != string(body) {
				t.Errorf("the acknowledged message: %v", err)
			}
		}
	}
}
