package erase_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseNamesCopies: an erase leaves copies alone that a person made inside the store, and names exactly those.
func TestEraseNamesCopies(t *testing.T) {
	ctx := t.Context()
	for _, payload := range []bool{false, true} {
		s, store := kit.NewStore(t, kit.Manual(1<<10)...)
		other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		size := 40
		if payload {
			size = 3000
		}
		secret := kit.Secret(size)
		for _, x := range []*engine.Context{other, c} {
			kit.Append(t, x.Active(), engine.Draft{Body: []byte(`{"role":"user","content":"not it, but the canary"}`)})
		}
		m := kit.Append(t, c.Active(), engine.Draft{Body: secret})
		kit.Append(t, other.Active(), engine.Draft{Body: secret}) // another context may say the same
		kit.Check(t, c.Seal(ctx), other.Seal(ctx))
		dir, folder := filepath.Join(store, c.ID().String()), c.Current().Lines[0].Folder
		text := strings.TrimSpace(strings.Repeat(kit.Canary+" ", size/len(kit.Canary)+1))
		copies := map[string]string{
			"notes.md":                                              "the message was:\n" + text + " \n",
			"saved/deep/copy.json":                                  string(secret),
			c.ID().String() + "/metadata.json.bak":                  text,
			c.ID().String() + "/messages.old/copy":                  "the id is " + m.ID.String(),
			c.ID().String() + "/messages/x/notes.json":              string(secret),
			c.ID().String() + "/messages/" + folder + "/notes.json": text,
			c.ID().String() + "/segments/large":                     string(make([]byte, 1<<20-20)) + text,
		}
		want := []string{}
		for p, content := range copies {
			kit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(store, p)), 0o700))
			kit.Write(t, filepath.Join(store, p), []byte(content))
			want = append(want, p)
		}
		for _, p := range []string{"plain.txt", ".git/objects/copy", c.ID().String() + "/plain.txt"} {
			kit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(store, p)), 0o700))
			content := "nothing"
			if p == ".git/objects/copy" {
				content = text
			}
			kit.Write(t, filepath.Join(store, p), []byte(content))
		}
		outside := filepath.Join(t.TempDir(), "outside")
		kit.Write(t, outside, []byte(text))
		kit.Check(t, os.Symlink(outside, filepath.Join(store, "link")), os.Symlink(store, filepath.Join(dir, "loop")))
		slices.Sort(want)
		for n, dry := range []bool{true, false, false} {
			var found []string
			for x, err := range erase.Messages(ctx, s, c.ID(), []uuid.UUID{m.ID}, erase.Options{DryRun: dry}) {
				kit.Check(t, err)
				if x.Foreign {
					found = append(found, x.Path)
				}
			}
			slices.Sort(found)
			if n == 2 { // of the text nothing is left by which to find it
				want = []string{c.ID().String() + "/messages.old/copy"}
			}
			if !slices.Equal(found, want) {
				t.Errorf("payload %v, erase %d: %q, wanted %q", payload, n, found, want)
			}
		}
		for p, content := range copies {
			if b := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(store, p))); string(b) != content {
				t.Errorf("%s was changed", p)
			}
		}
		kit.Check(t, c.Close(), other.Close())
	}
}
