package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEscapedReference: a reference that was spelled with escapes by hand is resolved, also where the envelope does not
// count it, and after a repair has committed the edit.
func TestEscapedReference(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1000))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	folder := filepath.Join(dir, c.ID().String())
	body := []byte(`{"content":"` + strings.Repeat("a", 5000) + `"}`)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(0), Body: body})
	whole := func() {
		t.Helper()
		for _, m := range []*engine.Message{
			kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 0, 1))[0], kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(0))),
		} {
			if got, err := m.Body(ctx); err != nil || !bytes.Equal(got, body) {
				t.Errorf("the body is %.60s, %v", got, err)
			}
		}
	}
	whole()
	kit.Check(t, c.Seal(ctx), c.Close())
	path := filepath.Join(folder, "messages/branch-main", kit.TestID(0).String()+".json")
	b := kit.Must[[]byte](t)(os.ReadFile(path))
	edited := bytes.ReplaceAll(bytes.Replace(b, []byte(`"payloads":1,`), nil, 1), []byte(`{"$blob"`), []byte(`{"\u0024blob"`))
	if len(edited) != len(b)-len(`"payloads":1,`)+len(`\u0024`)-len(`$`) {
		t.Fatalf("the message file is %s", b)
	}
	kit.Check(t, os.WriteFile(path, edited, 0o600))
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	whole()
	kit.Check(t, c.Close())
	kit.Finish(t, checking.Repair(ctx, s, nil, checking.Options{}))
	clean(t, s)
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	whole()
	kit.Check(t, c.Close())
}
