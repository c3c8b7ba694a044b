package erase_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseDamagedVersion: an old version in the trash that is JSON still, and no version of a message any more, is
// erased too.
func TestEraseDamagedVersion(t *testing.T) {
	ctx := context.Background()
	line := regexp.MustCompile(`,"line":"([0-9a-f-]{35})[0-9a-f]","position":0,"prev"`)
	for what, damage := range map[string]func(string) string{
		"a digit":       func(s string) string { return line.ReplaceAllString(s, `,"line":"${1}g","position":0,"prev"`) },
		"the version":   func(s string) string { return strings.Replace(s, `{"ctxdir":"message/1"`, `{"ctxdir":"message-1"`, 1) },
		"a member name": func(s string) string { return strings.Replace(s, `"envelope":{`, `"envelopd":{`, 1) },
	} {
		s, dir := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		a := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"content":"the secret"}`)})
		kit.Check(t, c.Active().Replace(ctx, a.ID, engine.Draft{Body: []byte(`{"content":"x"}`)}), c.Seal(ctx))
		paths := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, c.ID().String(), "trash", "*.json")))
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		b := string(kit.Must[[]byte](t)(os.ReadFile(paths[0])))
		damaged := damage(b)
		if damaged == b {
			t.Fatalf("%s: there is none in %s", what, b)
		}
		kit.Check(t, os.WriteFile(paths[0], []byte(damaged), 0o600), c.Close())
		kit.Finish(t, erase.Messages(ctx, s, c.ID(), []uuid.UUID{a.ID}, erase.Options{}))
		kit.Check(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(p)
			if bytes.Contains(b, []byte("the secret")) {
				t.Errorf("%s: the message is in %s still", what, strings.TrimPrefix(p, dir))
			}
			return err
		}))
	}
}
