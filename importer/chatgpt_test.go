package importer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestChatGPT(t *testing.T) {
	path := filepath.Join(fixtures, "chatgpt/conversations.json")
	s := newFakeStore()
	got := importFile(t, s, path, Options{})
	if len(got.errs)+len(got.problems) > 0 || len(got.results) != 2 {
		t.Fatalf("%+v", got)
	}
	knots := s.contexts[got.results[0].Context]
	if d := cmp.Diff([]string{"main@0+6", "fork-1@4+2"}, outline(knots)); d != "" {
		t.Error(d)
	}
	if knots.active != Main || knots.info.Title != "Knots for beginners" || knots.info.Model != "gpt-4o" {
		t.Errorf("%s %+v", knots.active, knots.info)
	}
	if !strings.Contains(string(knots.info.Extra), `"create_time":1725181200.123456`) ||
		!strings.Contains(string(knots.info.Extra), `"big":12345678901234567890`) || strings.Contains(string(knots.info.Extra), "mapping") {
		t.Errorf("extra: %s", knots.info.Extra)
	}
	main := knots.all(Main)
	last := main[len(main)-1]
	if last.Role != "assistant" || last.Type != "node" || last.CreatedAt.Nanosecond() != 1000 ||
		!strings.Contains(string(last.Body), `"create_time":1725181410.000001`) {
		t.Errorf("%+v %s", last, last.Body)
	}
	moon := s.contexts[got.results[1].Context]
	if first := moon.all(Main)[0]; first.OriginID != "client-created-root" {
		t.Errorf("a node named client-created-root: %+v", first)
	}
	before := s.dump()
	again := importFile(t, s, path, Options{})
	if again.results[0].Added+again.results[1].Added != 0 || again.results[0].Skipped != 8 || s.dump() != before {
		t.Errorf("again: %+v", again.results)
	}
}

// exportOf is a conversation with the nodes of a specification: "name<parent" each.
func exportOf(current string, nodes ...string) string {
	children := map[string][]string{}
	for _, n := range nodes {
		name, parent, _ := strings.Cut(n, "<")
		children[parent] = append(children[parent], name)
	}
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(",")
		}
		name, parent, _ := strings.Cut(n, "<")
		c, _ := json.Marshal(append([]string{}, children[name]...))
		fmt.Fprintf(
			&b,
			`%q:{"id":%q,"message":{"author":{"role":"user"},"content":{"parts":["%s"]}},"parent":%q,"children":%s}`,
			name,
			name,
			name,
			parent,
			c,
		)
	}
	return fmt.Sprintf(`{"title":"t","conversation_id":"c","mapping":{%s},"current_node":%q}`, b.String(), current)
}

func nodeNames(c *fakeContext) (out []string) {
	for _, name := range c.order {
		base, recs := c.own(name)
		if strings.HasPrefix(name, "import-") {
			name = "import-*"
		}
		entry := fmt.Sprintf("%s@%d:", name, base)
		for _, r := range recs {
			entry += " " + r.OriginID
		}
		out = append(out, entry)
	}
	return out
}

func TestTrees(t *testing.T) {
	for name, test := range map[string]struct {
		export string
		want   []string
	}{
		"current in the middle":  {exportOf("b", "a<", "b<a", "c<b", "d<b"), []string{"main@0: a b", "fork-1@2: c", "fork-2@2: d"}},
		"no current":             {exportOf("gone", "a<", "b<a", "c<a"), []string{"main@0: a c", "fork-1@1: b"}},
		"children before parent": {exportOf("c", "c<b", "b<a", "a<"), []string{"main@0: a b c"}},
		"missing parents":        {exportOf("b", "a<nowhere", "b<a", "x<elsewhere", "y<x"), []string{"main@0: a b", "fork-1@0: x y"}},
		"a circle":               {exportOf("b", "a<c", "b<a", "c<b"), []string{"main@0: a b", "fork-1@2: c"}},
		"its own parent":         {exportOf("a", "a<a", "b<a"), []string{"main@0: a", "fork-1@1: b"}},
		"a circle beside":        {exportOf("a", "a<", "x<y", "y<x", "z<y"), []string{"main@0: a", "fork-1@0: x y z"}},
		"into a circle":          {exportOf("x", "x<z", "y<z", "z<y"), []string{"main@0: y z x"}},
		"only the children lists, in a circle": {
			`{"conversation_id":"c","current_node":"c","mapping":{` +
				`"a":{"children":["b","c","zzz"]},"b":{"children":null},"c":{"parent":null,"children":["a"]}}}`,
			[]string{"main@0: a c", "fork-1@1: b"},
		},
		"parents win over children": {
			`{"conversation_id":"c","current_node":"c","mapping":{"a":{"children":["c"]},"b":{"parent":"a","children":[]},"c":{"parent":"b"}}}`,
			[]string{"main@0: a b c"},
		},
		"a name twice": {
			`{"conversation_id":"c","current_node":"b","mapping":{"a":{"n":1},"a":{"n":2},"b":{"parent":"a"}}}`,
			[]string{"main@0: a b", "fork-1@0: a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			got := importFile(t, s, fileOf(t, "x.json", test.export), Options{})
			if len(got.errs) > 0 {
				t.Fatal(got.errs)
			}
			if d := cmp.Diff(test.want, nodeNames(s.only(t))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTreeThatWentOn(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, fileOf(t, "x.json", exportOf("b", "a<", "b<a")), Options{})
	// The conversation goes on: node b has a child now.
	got := importFile(t, s, fileOf(t, "x.json", exportOf("c", "a<", "b<a", "c<b")), Options{})
	if d := cmp.Diff([]string{"main@0: a b c"}, nodeNames(s.only(t))); d != "" || got.results[0].Added != 1 {
		t.Errorf("%s %+v", d, got.results)
	}
	// The person went back to a: what is stored stays where it is, and the new path is what people see.
	got = importFile(t, s, fileOf(t, "x.json", exportOf("e", "a<", "b<a", "c<b", "d<a", "e<d")), Options{})
	c := s.only(t)
	if d := cmp.Diff([]string{"main@0: a b c", "import-*@1: d e"}, nodeNames(c)); d != "" || got.results[0].Added != 2 {
		t.Errorf("%s %+v", d, got.results)
	}
	if !strings.HasPrefix(c.active, "import-") {
		t.Errorf("active: %s", c.active)
	}
	before := s.dump()
	if importFile(t, s, fileOf(t, "x.json", exportOf("e", "a<", "b<a", "c<b", "d<a", "e<d")), Options{}); s.dump() != before {
		t.Error("importing again changed the store")
	}
}

func TestChatGPTOddities(t *testing.T) {
	good := exportOf("a", "a<")
	for name, test := range map[string]struct {
		content  string
		results  int
		problems []string
	}{
		"one object":       {good, 1, nil},
		"an object a line": {good + "\n" + strings.Replace(good, `"c"`, `"c2"`, 1) + "\n", 2, nil},
		"cut off":          {"[" + good + ",\n" + good[:40], 1, []string{"2 the last value is truncated"}},
		"noise":            {"[" + good + ",\n@@@", 1, []string{"2 invalid JSON"}},
		"an element no tree": {"[" + good + ",\n7,{\"mapping\":3},\n{\"mapping\":{}}]", 1,
			[]string{"2 a JSON number, expected an object", `2 not a conversation`, "3 a conversation without messages"}},
		"a node no object": {`[{"conversation_id":"c","mapping":{"a":{"id":"a"},"b":null}}]`, 1, []string{`1 node "b"`}},
		"two mappings": {strings.Replace(good, `"current_node"`, `"mapping":{"z":{}},"current_node"`, 1), 1,
			[]string{`1 a second "mapping"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := importFile(t, newFakeStore(), fileOf(t, "x.json", test.content), Options{Format: ChatGPT})
			if len(got.results) != test.results || len(got.errs) > 0 {
				t.Errorf("%d results, %v", len(got.results), got.errs)
			}
			if d := cmp.Diff(test.problems, problemLines(got.problems)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLargeExtra(t *testing.T) {
	large := func(n int) string {
		return strings.Replace(exportOf("b", "a<", "b<a"), `"title"`, `"urls":"`+strings.Repeat("u", n)+`","title"`, 1)
	}
	s := newFakeStore()
	importFile(t, s, fileOf(t, "x.json", large(10)), Options{})
	importFile(t, s, fileOf(t, "x.json", large(MaxExtra)), Options{})
	got := importFile(t, s, fileOf(t, "x.json", large(MaxExtra+7)), Options{})
	c := s.only(t)
	if d := cmp.Diff([]string{"main@0+2", "export@0+1"}, outline(c)); d != "" || got.results[0].Added != 0 || c.active != Main {
		t.Errorf("%s %+v %s", d, got.results, c.active)
	}
	if r := c.all("export")[0]; r.Type != "export" || strings.Contains(string(r.Body), "mapping") {
		t.Errorf("%+v", r)
	}
}

// Whatever the links say: every node is stored once, behind its parent, and it ends.
func TestAnyTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "nodes")
		name := rapid.Custom(func(rt *rapid.T) string { return string(rune('a' + rapid.IntRange(0, n).Draw(rt, "name"))) })
		var nodes []string
		for i := range n {
			children, _ := json.Marshal(rapid.SliceOfN(name, 0, 3).Draw(rt, "children"))
			nodes = append(nodes, fmt.Sprintf(`"%c":{"parent":%q,"children":%s}`, 'a'+i, name.Draw(rt, "parent"), children))
		}
		export := fmt.Sprintf(`{"conversation_id":"c","current_node":%q,"mapping":{%s}}`, name.Draw(rt, "current"), strings.Join(nodes, ","))
		s := newFakeStore()
		got := importFile(t, s, fileOf(t, "x.json", export), Options{})
		if len(got.errs)+len(got.problems) > 0 || got.results[0].Added != int64(n) {
			rt.Fatalf("%+v", got)
		}
		var names []string
		s.each(func(r Record) { names = append(names, r.OriginID) })
		slices.Sort(names)
		if len(slices.Compact(names)) != n {
			rt.Fatalf("stored %v", names)
		}
		before := s.dump()
		if importFile(t, s, fileOf(t, "x.json", export), Options{}); s.dump() != before {
			rt.Fatal("importing again changed the store")
		}
	})
}
