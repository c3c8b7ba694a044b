package assemble_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/google/uuid"
)

// answers is the folder of kept assemblies.
func (k *kit) answers() string { return filepath.Join(k.s.Info().Path, "derived", "answers") }

// same reports whether two assemblies are equal, as far as the caller sees.
func same(a, b *assemble.Assembly) bool {
	x, err := json.Marshal(a)
	y, yerr := json.Marshal(b)
	return err == nil && yerr == nil && bytes.Equal(x, y)
}

const kept = "KEPT: "

// mark marks the text of each kept assembly, so that a test sees whether one is used.
func (k *kit) mark() {
	k.t.Helper()
	entries, err := os.ReadDir(k.answers())
	check(k.t, err)
	for _, e := range entries {
		path := filepath.Join(k.answers(), e.Name())
		b, err := os.ReadFile(path)
		check(k.t, err)
		_, rest, _ := bytes.Cut(b, []byte("\n"))
		rest = bytes.ReplaceAll(rest, []byte(`"Text":"# Newest`), []byte(`"Text":"`+kept+`# Newest`))
		sum := sha256.Sum256(rest)
		check(k.t, os.WriteFile(path, append([]byte(hex.EncodeToString(sum[:])+"\n"), rest...), 0o600))
	}
}

// isKept reports whether an assembly is a kept one. Then it is as it would be without the cache.
func (k *kit) isKept(r assemble.Request) bool {
	k.t.Helper()
	a := k.build(r)
	text, is := strings.CutPrefix(a.Text, kept)
	check(k.t, os.RemoveAll(k.answers()))
	if fresh := k.build(r); fresh.Text != text {
		k.t.Errorf("kept:\n%s\nfresh:\n%s", text, fresh.Text)
	}
	k.mark()
	return is
}

// newKeeper returns a store with a marked assembly of a conversation and some chatter.
func newKeeper(t *testing.T, r assemble.Request) *kit {
	t.Helper()
	k := newKit(t)
	k.add(k.c, append([]string{"where do herons nest", "the herons nest in the tall reeds"}, chatter(0, 200)...)...)
	check(t, k.c.Flush(t.Context()))
	k.build(r)
	k.mark()
	return k
}

var nests = assemble.Request{Query: "where do herons nest", MaxTokens: 1000}

// TestKept: an assembly is used again by the same request, also in another handle of the store, and by no other
// request.
func TestKept(t *testing.T) {
	k := newKeeper(t, nests)
	if !k.isKept(nests) {
		t.Error("the same request is assembled again")
	}
	s, err := ctxdir.Open(k.s.Info().Path)
	check(t, err)
	defer s.Close()
	r := nests
	r.Context = k.c.ID()
	a, err := assemble.Build(t.Context(), s, r)
	check(t, err)
	if !strings.HasPrefix(a.Text, kept) || len(a.Items) == 0 || a.Items[0].Position < 0 {
		t.Errorf("in another handle: %+v", a)
	}
	for name, change := range map[string]func(r *assemble.Request){
		"query": func(r *assemble.Request) { r.Query += " now" }, "budget": func(r *assemble.Request) { r.MaxTokens++ },
		"all": func(r *assemble.Request) { r.All = true }, "branch": func(r *assemble.Request) { r.Branch = "main" },
		"explain": func(r *assemble.Request) { r.Explain = true }, "tokens": func(r *assemble.Request) { r.Tokens = assemble.Estimate() },
		"compression": func(r *assemble.Request) { r.Compression = "local" }, "format": func(r *assemble.Request) { r.Format = assemble.JSON },
		"weights": func(r *assemble.Request) { w := assemble.DefaultWeights; w.Newest = 0.5; r.Weights = &w },
		"root":    func(r *assemble.Request) { r.Root = t.TempDir() },
	} {
		r := nests
		if change(&r); strings.HasPrefix(k.build(r).Text, kept) {
			t.Errorf("with another %s, the kept one is used", name)
		}
	}
}

// TestKeptUntilChange: after each change of what an assembly was made from, a new one is made. Other changes leave it.
func TestKeptUntilChange(t *testing.T) {
	all := nests
	all.All = true
	for name, x := range map[string]struct {
		r      assemble.Request
		change func(k *kit)
		kept   bool
	}{
		"nothing":               {nests, func(*kit) {}, true},
		"append":                {nests, func(k *kit) { k.add(k.c, "a new one") }, false},
		"append elsewhere":      {nests, func(k *kit) { k.add(k.create("Other"), "herons nest here too") }, true},
		"append elsewhere, all": {all, func(k *kit) { k.add(k.create("Other"), "herons nest here too") }, false},
		"remove elsewhere, all": {all, func(k *kit) { check(k.t, remove(k, k.create("Other").ID())) }, false},
		"fork":                  {nests, func(k *kit) { k.fork("other") }, false},
		"switch":                {nests, func(k *kit) { k.fork("other"); check(k.t, k.c.Switch(k.t.Context(), "other")) }, false},
		"title":                 {nests, func(k *kit) { k.title("Herons") }, false},
		"replace":               {nests, func(k *kit) { k.replace(1, "the herons nest on the roof") }, false},
		"edit of a passage":     {nests, func(k *kit) { k.edit(1, "tall reeds", "deep caves") }, false},
		"edit of a newest one":  {nests, func(k *kit) { k.edit(201, "lorem", "heron") }, false},
		"instructions":          {nests, func(k *kit) { k.write("instructions.md", "Answer in rhymes.") }, false},
		"edit of the title":     {nests, func(k *kit) { k.editFile("metadata.json", `"Test"`, `"Heron"`) }, false},
		"a setting without effect": {nests, func(k *kit) {
			check(k.t, k.s.Configure(k.t.Context(), func(s *ctxdir.Settings) error { s.MaxTokens = 9; return nil }))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, x.r)
			k.t = t
			if x.change(k); k.isKept(x.r) != x.kept {
				t.Errorf("kept: %v, want %v", !x.kept, x.kept)
			}
		})
	}
}

func remove(k *kit, id uuid.UUID) error {
	k.build(assemble.Request{Query: "herons", All: true})
	_, err := k.s.Remove(k.t.Context(), id)
	return err
}

func (k *kit) fork(name string) {
	k.t.Helper()
	_, err := k.c.Active().Fork(k.t.Context(), name, 100)
	check(k.t, err)
}

func (k *kit) title(text string) {
	k.t.Helper()
	check(k.t, k.c.Update(k.t.Context(), func(m *ctxdir.Metadata) error { m.Title = text; return nil }))
	check(k.t, k.c.Flush(k.t.Context()))
}

func (k *kit) messageAt(position int64) *ctxdir.Message {
	k.t.Helper()
	all, err := k.c.Active().Range(k.t.Context(), position, position+1)
	check(k.t, err)
	return all[0]
}

func (k *kit) replace(position int64, text string) {
	k.t.Helper()
	err := k.c.Active().Replace(k.t.Context(), k.messageAt(position).ID, ctxdir.Draft{Body: said("assistant", text)})
	check(k.t, err)
}

// edit changes a message file by hand.
func (k *kit) edit(position int64, old, text string) {
	k.t.Helper()
	folder := filepath.Join(k.s.Info().Path, k.c.ID().String())
	found, err := filepath.Glob(filepath.Join(folder, "messages", "*", "*"+k.messageAt(position).ID.String()+"*"))
	if err != nil || len(found) != 1 {
		k.t.Fatalf("%q, %v", found, err)
	}
	name, err := filepath.Rel(folder, found[0])
	check(k.t, err)
	k.editFile(name, old, text)
}

func (k *kit) editFile(name, old, text string) {
	k.t.Helper()
	path := filepath.Join(k.s.Info().Path, k.c.ID().String(), name)
	b, err := os.ReadFile(path)
	check(k.t, err)
	edited := bytes.ReplaceAll(b, []byte(old), []byte(text))
	if bytes.Equal(edited, b) {
		k.t.Fatalf("%s has no %q: %s", name, old, b)
	}
	check(k.t, os.WriteFile(path, edited, 0o600))
	later := time.Now().Add(3 * time.Second) // whatever the clock of the file system is
	check(k.t, os.Chtimes(path, later, later))
}

func (k *kit) write(name, text string) {
	k.t.Helper()
	check(k.t, os.WriteFile(filepath.Join(k.s.Info().Path, name), []byte(text), 0o600))
}

// TestForgotten: no file in derived/ has a word of what was erased, purged or removed, whether the program that does so
// knows the cache or not.
func TestForgotten(t *testing.T) {
	secret := assemble.Request{Query: "zanzibarsecret", MaxTokens: 1000}
	for name, forget := range map[string]func(k *kit, s *ctxdir.Store){
		"erase": func(k *kit, s *ctxdir.Store) {
			_, err := s.Erase(k.t.Context(), k.c.ID(), []uuid.UUID{k.messageAt(0).ID}, ctxdir.EraseOptions{})
			check(k.t, err)
		},
		"remove and purge": func(k *kit, s *ctxdir.Store) {
			item, err := s.Remove(k.t.Context(), k.c.ID())
			check(k.t, err)
			k.lacks("zanzibarsecret")
			_, err = s.Purge(k.t.Context(), ctxdir.PurgeOptions{Items: []uuid.UUID{item.ID}})
			check(k.t, err)
		},
		"rewind and purge": func(k *kit, s *ctxdir.Store) {
			check(k.t, k.c.Active().Rewind(k.t.Context(), 0))
			check(k.t, k.c.Close())
			_, err := s.Purge(k.t.Context(), ctxdir.PurgeOptions{All: true})
			check(k.t, err)
		},
	} {
		for _, aware := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "", false: ", unaware"}[aware], func(t *testing.T) {
				k := newKit(t)
				k.add(k.c, append([]string{"the zanzibarsecret is here", "it is"}, chatter(0, 60)...)...)
				check(t, k.c.Flush(t.Context()))
				k.build(secret)
				if !k.has("zanzibarsecret") {
					t.Fatal("the cache does not have it")
				}
				s := k.s
				if !aware {
					check(t, k.x.Close())
					var err error
					s, err = ctxdir.Open(k.s.Info().Path)
					check(t, err)
					defer s.Close()
				}
				forget(k, s)
				k.lacks("zanzibarsecret")
			})
		}
	}
}

func (k *kit) lacks(word string) {
	k.t.Helper()
	if k.has(word) {
		k.t.Errorf("derived/ still has %q", word)
	}
}

// has reports whether a file in derived/ has a word.
func (k *kit) has(word string) (has bool) {
	err := fs.WalkDir(os.DirFS(filepath.Join(k.s.Info().Path, "derived")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(k.s.Info().Path, "derived", path))
		has = has || bytes.Contains(bytes.ToLower(b), []byte(word))
		return err
	})
	check(k.t, err)
	return has
}

// TestCacheFaults: a cache that is damaged, or cannot be written, is no reason to fail, and a store that is open for
// reading gets none.
func TestCacheFaults(t *testing.T) {
	k := newKeeper(t, nests)
	want := k.build(assemble.Request{Query: nests.Query, MaxTokens: 1000, Explain: true})
	entries, err := os.ReadDir(k.answers())
	check(t, err)
	for _, e := range entries {
		check(t, os.WriteFile(filepath.Join(k.answers(), e.Name()), []byte("damaged"), 0o600))
	}
	if got := k.build(assemble.Request{Query: nests.Query, MaxTokens: 1000, Explain: true}); !same(got, want) {
		t.Errorf("damaged: %s", got.Text)
	}
	check(t, os.RemoveAll(k.answers()))
	check(t, os.WriteFile(k.answers(), nil, 0o600))
	if got := k.build(assemble.Request{Query: nests.Query, MaxTokens: 1000, Explain: true}); !same(got, want) {
		t.Errorf("without the folder: %s", got.Text)
	}
	check(t, os.Remove(k.answers()))
	s, err := ctxdir.Open(k.s.Info().Path, ctxdir.Options{ReadOnly: true})
	check(t, err)
	defer s.Close()
	_, err = assemble.Build(t.Context(), s, assemble.Request{Context: k.c.ID(), Query: nests.Query})
	check(t, err)
	if _, err := os.Lstat(k.answers()); !os.IsNotExist(err) {
		t.Errorf("a reader made the folder: %v", err)
	}
}
