package erase_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseTornVersion: of two old versions of a message in the trash, a crash tore one so that only its payload is left.
// It goes too, whether it comes before or after the one that tells whose payload it is.
func TestEraseTornVersion(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"00000000", "ffffffff"} {
		s, dir := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("old"))})
		kit.Check(t, c.Flush(ctx))
		kit.Check(t, c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"new":1}`)}))
		kit.Check(t, c.Flush(ctx))
		trash := filepath.Join(dir, c.ID().String(), "trash")
		items := kit.Must[[]os.DirEntry](t)(os.ReadDir(trash))
		if len(items) != 1 {
			t.Fatalf("%d items in the trash", len(items))
		}
		whole := string(kit.Must[[]byte](t)(os.ReadFile(filepath.Join(trash, items[0].Name()))))
		_, payload, ok := strings.Cut(whole, `{"$blob":`)
		if !ok {
			t.Fatalf("no payload in %s", whole)
		}
		torn := filepath.Join(trash, name+items[0].Name()[8:])
		kit.Write(t, torn, []byte("\x00\x00"+`{"$blob":`+payload))
		kit.Must[[]erase.Removal](t)(kit.Erase(s, c.ID(), at.ID, erase.Options{}))
		if left := kit.Must[[]os.DirEntry](t)(os.ReadDir(trash)); len(left) > 0 {
			t.Errorf("%s: %d items are left in the trash", name, len(left))
		}
		if n := len(kit.BlobFiles(t, dir)); n > 0 {
			t.Errorf("%s: %d blobs are left", name, n)
		}
		kit.Check(t, c.Close())
	}
}
