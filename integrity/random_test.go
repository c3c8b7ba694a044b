package integrity_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// TestRandomDamage damages several files at random. Whatever a repair can do, it invents nothing, leaves a context that
// can be read and written, and a second one does nothing.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for _, of := range states {
		whole := newPatient(t, of)
		var files []string
		check(t, filepath.WalkDir(whole.path(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, whole.root))
			}
			return err
		}))
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			p := *whole
			p.root = filepath.Join(t.TempDir(), "store")
			check(t, os.CopyFS(p.root, os.DirFS(whole.root)))
			for _, file := range files { // else they would look edited
				at, err := os.Stat(whole.root + file)
				check(t, err, os.Chtimes(p.root+file, at.ModTime(), at.ModTime()))
			}
			var did []string
			for _, at := range r.Perm(len(files))[:1+r.IntN(3)] {
				file := files[at]
				how := []string{"removed", "cut", "flipped", "zeroed"}[r.IntN(4)]
				if how == "flipped" && (strings.Contains(file, "/messages/") || strings.Contains(file, "metadata.json")) {
					how = "zeroed" // such a file alone does not say whether a person changed it
				}
				did = append(did, file+" "+how)
				damageFile(&p, p.root+file, how, r)
			}
			done, _ := p.repair(checking.Options{Adopt: seed%2 == 0})
			if hopeless(p.check()) {
				continue
			}
			lost := p.lost()
			if again, _ := p.repair(checking.Options{Adopt: seed%2 == 0}); len(again) > 0 {
				t.Errorf("%s, seed %d, %v: another repair: %+v\nthe first: %+v", of, seed, did, again, done)
			}
			for _, f := range p.check() {
				if f.Severity == bad || f.Kind != integrity.KindLost && f.Kind != integrity.KindForeign {
					t.Errorf("%s, seed %d, %v: %+v", of, seed, did, f)
				}
			}
			p.do(func(c *engine.Context) error { return appendTo(c.Active(), 1000, 1001) })
			if t.Failed() {
				t.Fatalf("%s, seed %d, %v: %d lost", of, seed, did, lost)
			}
		}
	}
}

// hopeless reports whether nothing has the metadata any more.
func hopeless(found []integrity.Finding) bool {
	return slices.ContainsFunc(found, func(f integrity.Finding) bool { return f.Kind == integrity.KindMetadata && f.Severity == bad })
}

func damageFile(p *patient, path, how string, r *rand.Rand) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return // it was removed before
	}
	check(p.T, err)
	b, err := os.ReadFile(path)
	check(p.T, err)
	if how == "removed" || len(b) == 0 {
		check(p.T, os.Remove(path))
		return
	}
	at := r.IntN(len(b))
	switch how {
	case "cut":
		b = b[:at]
	case "flipped":
		b[at] ^= 1 << r.IntN(8)
	case "zeroed":
		clear(b[at:min(at+512, len(b))])
	}
	check(p.T, os.WriteFile(path, b, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
}
