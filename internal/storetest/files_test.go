package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFilesAreEnough: a copy of the files of a context, and of nothing else, is a store in which it reads the same and
// goes on; by plain copying, and by a clone with git.
func TestFilesAreEnough(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	prompt := `"` + strings.Repeat("Be kind. ", 300) + `"`
	m := engine.Metadata{Branches: []ctxfolder.Branch{{SystemPrompt: []byte(prompt)}}}
	c := kit.Must[*engine.Context](t)(s.Create(ctx, m))
	other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for i, body := range kit.Samples() {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
		if i == 3 {
			kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2))
		}
	}
	kit.Append(t, other.Active(), engine.Draft{Body: []byte(kit.LargeBody("x"))})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for p, err := range c.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(p, other.ID().String()) || strings.HasPrefix(p, "locks") || strings.Contains(p, "trash") {
			t.Errorf("%s is none of the context's", p)
		}
		paths = append(paths, p)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(name, at string) {
		t.Helper()
		there := kit.Must[*engine.Store](t)(kit.Open(at))
		copied := kit.Must[*engine.Context](t)(there.Context(ctx, c.ID()))
		defer copied.Close()
		got := kit.Load(t, copied.Active())
		for i, want := range kit.Samples() {
			if i >= len(got) || kit.BodyOf(got[i]) != want || got[i].Edited {
				t.Fatalf("%s: message %d of %d: %.100s", name, i, len(got), kit.BodyOf(got[i]))
			}
		}
		if p, err := copied.SystemPrompt(ctx, engine.MainBranch); err != nil || string(p) != prompt {
			t.Errorf("%s: system prompt %.50s, %v", name, p, err)
		}
		if p := copied.Problem(); p != nil {
			t.Errorf("%s: %v", name, p)
		}
		kit.Append(t, copied.Active(), engine.Draft{Body: []byte(`{"more":true}`)})
	}
	at := t.TempDir()
	for _, p := range paths {
		b, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(at, p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, p), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check("copy", at)

	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not there: the clone is not tried")
	}
	clone := filepath.Join(t.TempDir(), "clone")
	for _, args := range [][]string{
		{"-C", dir, "init", "-q"}, append([]string{"-C", dir, "add", "--"}, paths...),
		{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a conversation"},
		{"clone", "-q", dir, clone},
	} {
		cmd := exec.Command(git, args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args[:4], err, out)
		}
	}
	check("clone", clone)
}
