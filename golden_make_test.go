package ctxdir_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

var goldenDir = flag.String("golden.make", "", "make golden stores of this build in this folder, such as testdata/stores/v1")

// golden is a store in the making.
type golden struct {
	*testing.T
	dir string
	s   *ctxdir.Store
	n   int
}

// goldenStates are the states of which there are golden stores. Each makes one context or a few; what is open at the
// end stays open while the store is copied.
var goldenStates = map[string]func(g *golden){
	"fresh": func(g *golden) { g.fill(g.new("fresh"), "main", 5) },
	"closed": func(g *golden) {
		c := g.new("closed")
		g.fill(c, "main", 5)
		g.do(c.Close())
	},
	"sealed": func(g *golden) {
		c := g.new("sealed")
		for range 4 {
			g.fill(c, "main", 8)
			g.do(c.Admin().Seal(g.Context()))
		}
		g.fill(c, "main", 3)
	},
	"merged": func(g *golden) {
		c := g.new("merged")
		for range 10 {
			g.fill(c, "main", 2)
			g.do(c.Admin().Seal(g.Context()))
		}
	},
	"archived": func(g *golden) {
		c := g.new("archived")
		g.fill(c, "main", 20)
		g.archive(c, ctxdir.ArchiveOptions{})
	},
	"half-archived": func(g *golden) {
		c := g.new("half archived")
		g.fill(c, "main", 20)
		g.archive(c, ctxdir.ArchiveOptions{})
		alt := must(must(c.Branch("main")).Fork(g.Context(), "alt", 10))
		g.fill(c, alt.Name(), 6)
		g.archive(c, ctxdir.ArchiveOptions{Branch: "alt"})
		g.fill(c, "main", 5)
		g.fill(c, "alt", 2)
		m := must(must(c.Branch("main")).Last(g.Context(), 10))[0]
		g.do(must(c.Branch("main")).Replace(g.Context(), m.ID, ctxdir.Draft{Body: said("user", "another version")}))
	},
	"forked": func(g *golden) {
		c := g.new("forked")
		g.fill(c, "main", 10)
		must(must(c.Branch("main")).Fork(g.Context(), "alt", 6))
		g.fill(c, "alt", 4)
		must(must(c.Branch("alt")).Fork(g.Context(), "of an inherited range", 3))
		must(must(c.Branch("alt")).Fork(g.Context(), "of a fork ❤", 8))
		g.fill(c, "of a fork ❤", 2)
		g.do(c.Switch(g.Context(), "alt"))
		must(must(c.Branch("alt")).Fork(g.Context(), "empty", 0))
	},
	"rewound": func(g *golden) {
		c := g.new("rewound")
		g.fill(c, "main", 10)
		must(must(c.Branch("main")).Fork(g.Context(), "keeps", 8))
		g.do(must(c.Branch("main")).Rewind(g.Context(), 4))
		g.fill(c, "main", 3)
		g.do(must(c.Branch("main")).Rewind(g.Context(), 5))
		must(must(c.Branch("keeps")).Fork(g.Context(), "removed", 7))
		g.fill(c, "removed", 3)
		g.do(must(c.Branch("removed")).Remove(g.Context()))
	},
	"collected": func(g *golden) {
		c := g.new("collected")
		g.fill(c, "main", 10)
		g.do(must(c.Branch("main")).Rewind(g.Context(), 4))
		g.fill(c, "main", 2)
		m := must(must(c.Branch("main")).Last(g.Context(), 1))[0]
		g.do(must(c.Branch("main")).Replace(g.Context(), m.ID, ctxdir.Draft{Body: said("user", "another version")}))
		must(g.s.Collect(g.Context(), ctxdir.CollectOptions{All: true, Grace: time.Hour}))
		gone := g.new("a removed context")
		g.fill(gone, "main", 2)
		g.do(gone.Close())
		must(g.s.Remove(g.Context(), gone.ID()))
	},
	"renamed": func(g *golden) {
		c := g.new("renamed")
		g.fill(c, "main", 4)
		must(must(c.Branch("main")).Fork(g.Context(), "alt", 2))
		g.fill(c, "alt", 3)
		must(must(c.Branch("alt")).Rename(g.Context(), "a/b: c"))
		must(must(c.Branch("main")).Rename(g.Context(), "Haupt"))
		g.fill(c, "Haupt", 2)
	},
	"migrated": func(g *golden) {
		node := func(id, role, text string) string {
			message := fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"metadata":null}`, role, text)
			return fmt.Sprintf(`%q:{"id":%q,"message":%s,"parent_id":null}`, id, id, message)
		}
		ids := []string{
			"0a000000-0000-4000-8000-000000000001", "0a000000-0000-4000-8000-000000000002",
			"not-a-uuid", "0a000000-0000-4000-8000-000000000004",
		}
		pool := []string{
			node(ids[0], "System", "Be kind."), node(ids[1], "User", "Which way?"),
			node(ids[2], "Assistant", "Left."), node(ids[3], "Assistant", "Right."),
		}
		file := `{"id":"0a000000-0000-4000-8000-0000000000ff","parent_id":null,"title":"migrated",` +
			`"config":{"model_id":"m-1","mode":"chat","parameters":{"temperature":1.0}},` +
			`"message_pool":{` + strings.Join(pool, ",") + `},` +
			`"branches":{"main":{"name":"main","message_ids":["` + strings.Join(ids[:3], `","`) + `"],` +
			`"system_prompt":{"id":"p","content":"` + strings.Repeat("kind ", 500) + `"},"user_prompt":null},` +
			`"other":{"name":"other","message_ids":["` + ids[0] + `","` + ids[1] + `","` + ids[3] + `"],` +
			`"system_prompt":null,"user_prompt":null}},` +
			`"active_branch_name":"main","current_state":{"awaiting_tool_approval":{"pending":["a"]}}}`
		path := filepath.Join(g.dir, "0a000000-0000-4000-8000-0000000000ff.json")
		g.do(os.WriteFile(path, []byte(file), 0o600))
		must(g.s.Migrate(g.Context(), path, ctxdir.MigrateOptions{}))
	},
	"payloads": func(g *golden) {
		c := g.new("payloads")
		g.fill(c, "main", 2)
		noise := bytes.Repeat([]byte("\x89PNG\r\n noise \x00\xff"), 700)
		png, jpeg := base64.StdEncoding.EncodeToString(noise), base64.StdEncoding.EncodeToString(noise[9:])
		for _, body := range []string{
			`{"role":"user","content":[{"type":"image",` +
				`"source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + jpeg + `"}}]}`,
			`{"role":"tool","content":"` + strings.Repeat(`a long line of output \u003c\n`, 900) + `","$blob":1}`,
		} {
			must(must(c.Branch("main")).Append(g.Context(), ctxdir.Draft{Body: json.RawMessage(body)}))
		}
		must(must(c.Branch("main")).Fork(g.Context(), "alt", 5))
		body := json.RawMessage(`{"role":"tool","content":"` + strings.Repeat("another long line\\n", 4000) + `"}`)
		must(must(c.Branch("alt")).Append(g.Context(), ctxdir.Draft{Body: body}))
		g.archive(c, ctxdir.ArchiveOptions{Branch: "alt"})
		body = json.RawMessage(`{"role":"tool","content":"` + strings.Repeat("in the log\\n", 2000) + `"}`)
		must(must(c.Branch("main")).Append(g.Context(), ctxdir.Draft{Body: body}))
	},
	"erased": func(g *golden) {
		c := g.new("erased")
		g.fill(c, "main", 6)
		must(must(c.Branch("main")).Append(g.Context(), ctxdir.Draft{Body: said("user", strings.Repeat("secret ", 4000))}))
		g.fill(c, "main", 2)
		ms := must(must(c.Branch("main")).Range(g.Context(), 0, ctxdir.End))
		must(g.s.Erase(g.Context(), c.ID(), []uuid.UUID{ms[2].ID, ms[6].ID}, ctxdir.EraseOptions{}))
		g.fill(c, "main", 1)
	},
	"edited": func(g *golden) {
		c := g.new("edited")
		ms := g.viewed(c, 4)
		b := must(os.ReadFile(g.file(c, ms[1])))
		b = bytes.Replace(b, []byte(`"content":"message`), []byte(`"content":"what a hand made of message`), 1)
		g.do(os.WriteFile(g.file(c, ms[1]), b, 0o600))
	},
	"damaged-files": func(g *golden) {
		c := g.new("damaged files")
		ms := g.viewed(c, 6)
		g.do(os.WriteFile(g.file(c, ms[1]), make([]byte, 300), 0o600))
		g.do(os.Remove(g.file(c, ms[2])))
		g.do(os.WriteFile(g.file(c, ms[4]), nil, 0o600))
	},
	"lost": func(g *golden) { // what a repair leaves of a message without another copy
		c := g.new("lost")
		g.fill(c, "main", 6)
		g.damage(c, "log-*", "message 2")
		must(g.s.Repair(g.Context(), ctxdir.RepairOptions{All: true}))
	},
	"damaged-log": func(g *golden) {
		c := g.new("damaged log")
		g.fill(c, "main", 6)
		g.damage(c, "log-*", "message 2")
	},
	"damaged-segment": func(g *golden) {
		c := g.new("damaged segment")
		g.fill(c, "main", 6)
		g.do(c.Admin().Seal(g.Context()))
		g.fill(c, "main", 1)
		g.damage(c, "segments/*", "message 2")
	},
	"damaged-tail": func(g *golden) {
		c := g.new("damaged tail")
		g.fill(c, "main", 6)
		log := g.only(c, "log-*")
		b := must(os.ReadFile(log))
		end := len(bytes.TrimRight(b, "\n")) + 1
		copy(b[end:], `{"chain":"0123456789abcdef","prev":"0123`) // what a crash leaves of a record
		g.do(os.WriteFile(log, b, 0o600))
	},
	"metadata": func(g *golden) {
		c := must(g.s.Create(g.Context(), ctxdir.Metadata{Title: "metadata", State: json.RawMessage(`{"step":3,"n":1.0}`)}))
		g.fill(c, "main", 1)
		g.do(c.Update(g.Context(), func(m *ctxdir.Metadata) error {
			m.Config = json.RawMessage(`{"model_id":"m-1","parameters":{"temperature":0.000003}}`)
			m.Extra = json.RawMessage(`{"of a framework":[1,{"a":null}]}`)
			return nil
		}))
	},
}

// new makes a context.
func (g *golden) new(title string) *ctxdir.Context {
	return must(g.s.Create(g.Context(), ctxdir.Metadata{Title: title}))
}

// fill appends messages to a branch.
func (g *golden) fill(c *ctxdir.Context, branch string, n int) {
	for range n {
		role := []string{"user", "assistant"}[g.n%2]
		must(must(c.Branch(branch)).Append(g.Context(), ctxdir.Draft{Body: said(role, fmt.Sprintf("message %d on %s", g.n, branch))}))
		g.n++
	}
}

// viewed fills a context with messages that have their files.
func (g *golden) viewed(c *ctxdir.Context, n int) []*ctxdir.Message {
	g.fill(c, "main", n)
	g.do(c.Admin().Seal(g.Context()))
	return must(c.Active().Range(g.Context(), 0, ctxdir.End))
}

// damage changes the first byte of a text, in a file of a context.
func (g *golden) damage(c *ctxdir.Context, pattern, text string) {
	g.Helper()
	path := g.only(c, pattern)
	b := must(os.ReadFile(path))
	i := bytes.Index(b, []byte(text))
	if i < 0 {
		g.Fatalf("%s does not have %q", path, text)
	}
	b[i] ^= 1
	g.do(os.WriteFile(path, b, 0o600))
}

// only returns the one file of a context that matches a pattern.
func (g *golden) only(c *ctxdir.Context, pattern string) string {
	g.Helper()
	paths := must(filepath.Glob(filepath.Join(g.dir, c.ID().String(), pattern)))
	if len(paths) != 1 {
		g.Fatalf("%s: %q", pattern, paths)
	}
	return paths[0]
}

func (g *golden) archive(c *ctxdir.Context, o ctxdir.ArchiveOptions) {
	o.Contexts = []uuid.UUID{c.ID()}
	must(g.s.Archive(g.Context(), o))
}

func (g *golden) file(c *ctxdir.Context, m *ctxdir.Message) string {
	return filepath.Join(g.dir, c.ID().String(), "messages", "branch-main", m.ID.String()+".json")
}

func (g *golden) do(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// TestMakeGoldenStores makes the golden stores of this build, with -golden.make.
func TestMakeGoldenStores(t *testing.T) {
	if *goldenDir == "" {
		t.Skip("makes golden stores with -golden.make")
	}
	for state, make := range goldenStates {
		t.Run(state, func(t *testing.T) {
			dir := t.TempDir()
			g := &golden{T: t, dir: filepath.Join(dir, "STORE")}
			g.s = must(ctxdir.Init(g.dir, knobs.FilesOnReturn())) // no file comes while the store is copied
			defer g.s.Close()
			make(g)
			out := t.TempDir()
			g.do(os.CopyFS(filepath.Join(out, "STORE"), os.DirFS(g.dir)))
			copyTimes(t, g.dir, filepath.Join(out, "STORE"))
			read := must(ctxdir.Open(filepath.Join(out, "STORE"), ctxdir.Options{ReadOnly: true}))
			defer read.Close()
			shown := must(json.MarshalIndent(withFindings(t, read, showStore(t, read)), "", " "))
			g.do(os.WriteFile(filepath.Join(out, "shown.json"), append(shown, '\n'), 0o600))
			g.do(os.MkdirAll(*goldenDir, 0o755))
			kit.PackGolden(t, out, filepath.Join(*goldenDir, state+".tar.zst"))
		})
	}
	if err := os.WriteFile(filepath.Join(*goldenDir, "SHA256SUMS"), []byte(goldenSums(t, *goldenDir)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyTimes gives files the times of their originals.
func copyTimes(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to, must(filepath.Rel(from, path))), info.ModTime(), info.ModTime())
	})
	if err != nil {
		t.Fatal(err)
	}
}
