package storetest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestDamagedBesideChanges damages a context whose metadata is a copy and the changes after it. All branches are there
// as long as something proves each; those of which only messages are left come back with a repair.
func TestDamagedBesideChanges(t *testing.T) {
	t.Parallel()
	flip := func(log []byte) []byte { // a bit in the second change
		at := 0
		for range 2 {
			at += bytes.Index(log[at:], []byte(`"kind":"change"`)) + 1
		}
		at += bytes.Index(log[at:], []byte(`"body":`)) + 20
		log[at] ^= 1
		return log
	}
	for name, damage := range map[string]func(dir, log string, content, earlier []byte) error{
		"metadata.json is lost": func(_, _ string, _, _ []byte) error { return nil },
		"a change, and all after it are in metadata.json": func(_, log string, content, _ []byte) error {
			return os.WriteFile(log, flip(content), 0o600)
		},
		"a change, and metadata.json is older than the last ones": func(dir, log string, content, earlier []byte) error {
			if err := os.WriteFile(filepath.Join(dir, "metadata.json"), earlier, 0o600); err != nil {
				return err
			}
			return os.WriteFile(log, flip(content), 0o600)
		},
		"the begin of the log, and metadata.json is lost": func(_, log string, content, _ []byte) error {
			content[200] ^= 1
			return os.WriteFile(log, content, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, path := kit.NewStore(t, kit.Manual(0)...)
			c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{Title: strings.Repeat("a long title ", 500)}))
			dir := filepath.Join(path, c.ID().String())
			kit.Fill(t, c.Active(), 3)
			want := []string{"main"}
			fork := func() {
				name := fmt.Sprint("fork ", len(want))
				kit.Must[*engine.Branch](t)(c.Active().Fork(t.Context(), name, 2))
				want = append(want, name)
			}
			for range 4 {
				fork()
			}
			kit.Check(t, c.Flush(t.Context()))
			earlier := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, "metadata.json")))
			fork()
			fork()
			last := kit.Must[*engine.Branch](t)(c.Branch(want[len(want)-1]))
			kit.Fill(t, last, 2)
			kit.Check(t, s.Close())
			log := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "log-*.jsonl")))[0]
			content := kit.Must[[]byte](t)(os.ReadFile(log))
			if n := bytes.Count(content, []byte(`"kind":"change"`)); n != len(want)-1 {
				t.Fatalf("%d changes in the log", n)
			}
			if !bytes.Contains([]byte(name), []byte("in metadata.json")) {
				kit.Check(t, os.Remove(filepath.Join(dir, "metadata.json")))
			}
			kit.Check(t, damage(dir, log, content, earlier))

			s = kit.Must[*engine.Store](t)(kit.Open(path))
			defer s.Close()
			c = kit.Must[*engine.Context](t)(s.Context(t.Context(), c.ID()))
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"next":1}`)})
			if strings.HasSuffix(name, "older than the last ones") {
				(&kit.Patient{T: t, Store: s}).Repair(checking.Options{})
				kit.Check(t, c.Refresh(t.Context()))
				want = slices.Delete(want, 5, 6) // it has no message
			}
			var got []string
			for _, b := range kit.Must[[]engine.BranchInfo](t)(c.Branches(t.Context())) {
				got = append(got, b.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("the branches are %v, want %v", got, want)
			}
			last = kit.Must[*engine.Branch](t)(c.Branch(want[len(want)-1]))
			if n := len(kit.Must[[]*engine.Message](t)(last.Last(t.Context(), 100))); n != 4 {
				t.Fatalf("the last branch shows %d messages", n)
			}
		})
	}
}
