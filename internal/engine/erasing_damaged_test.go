package engine

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestEraseDamagedVersion: an old version in the trash that is JSON still, and no version of a message any more, is erased too.
func TestEraseDamagedVersion(t *testing.T) {
	ctx := context.Background()
	line := regexp.MustCompile(`,"line":"([0-9a-f-]{35})[0-9a-f]","position":0,"prev"`)
	for what, damage := range map[string]func(string) string{
		"a digit":       func(s string) string { return line.ReplaceAllString(s, `,"line":"${1}g","position":0,"prev"`) },
		"the version":   func(s string) string { return strings.Replace(s, `{"ctxdir":"message/1"`, `{"ctxdir":"message-1"`, 1) },
		"a member name": func(s string) string { return strings.Replace(s, `"envelope":{`, `"envelopd":{`, 1) },
	} {
		s, dir := newStore(t)
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		a := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"content":"the secret"}`)}))
		check(t, c.Active().Replace(ctx, a.ID, Draft{Body: []byte(`{"content":"x"}`)}), c.Fold(ctx))
		paths := must[[]string](t)(filepath.Glob(filepath.Join(dir, c.ID().String(), "trash", "*.json")))
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		b := string(must[[]byte](t)(os.ReadFile(paths[0])))
		damaged := damage(b)
		if damaged == b {
			t.Fatalf("%s: there is none in %s", what, b)
		}
		check(t, os.WriteFile(paths[0], []byte(damaged), 0o600), c.Close())
		finish(t, s.Erase(ctx, c.ID(), []uuid.UUID{a.ID}, EraseOptions{}))
		check(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
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
