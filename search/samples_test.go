package search_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/search"
)

// importSamples imports every history in some folders.
func importSamples(t *testing.T, s *ctxdir.Store, roots ...string) {
	t.Helper()
	imported, files := map[string]bool{}, 0
	for _, root := range roots {
		check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			files++
			for r, err := range importer.Import(t.Context(), histories.Into(s), path, importer.Options{}) {
				if err == nil {
					imported[r.Context.String()] = true
				}
			}
			return nil
		}))
	}
	if len(imported) == 0 {
		t.Fatal("no sample was imported")
	}
	t.Logf("%d contexts from %d files", len(imported), files)
}

// TestSamples changes a store with every sample in every way, and compares random searches and expressions with a scan.
// With CTXDIR_TEST_DATA and without -short, the samples are those of that folder too, and a thousand searches compare the
// states that matter most.
func TestSamples(t *testing.T) {
	t.Parallel()
	r, s := newRand(41), openStore(t, t.TempDir())
	var some []string // states to search; nil for all
	roots, searches := []string{"../testdata/chatgpt", "../testdata/claude-code", "../testdata/jsonl", "../testdata/openai"}, queries()
	if root := os.Getenv("CTXDIR_TEST_DATA"); root != "" && !testing.Short() {
		roots, searches = append(roots, root), 100
		some = []string{"imported", "fold", "fork", "rewind", "archive", "edit by hand", "erase", "restore", "collect", "delete the index"}
	}
	importSamples(t, s, roots...)
	l := &life{t: t, s: s, x: openIndex(t, s), r: r}
	for sum, err := range s.List(t.Context(), ctxdir.ListOptions{}) {
		if check(t, err); sum.Messages > 5 && len(l.all) < 8 {
			c, err := s.Open(t.Context(), sum.ID)
			check(t, err)
			l.all = append(l.all, c)
		}
	}
	state := func(name string) {
		if some != nil && !slices.Contains(some, name) {
			return
		}
		all := agree(t, name, s, l.x, r, searches)
		sameSteps(t, name, s, l.x)
		for range searches / 25 {
			compareGrep(t, name, s, all, randomExpression(r, all), search.GrepOptions{})
		}
		t.Logf("%s: %d messages, %d searches agree", name, len(all), searches)
	}
	state("imported")
	for _, step := range l.steps() {
		step.do()
		state(step.name)
	}
	for _, c := range l.all {
		check(t, c.Close())
	}
}
