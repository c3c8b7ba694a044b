package legacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var id = legacytest.ID(500)

// put writes a file and returns its folder.
func put(t testing.TB, name, text string) vfs.FS {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

func open(t testing.TB, text string) *legacy.File {
	t.Helper()
	f, err := legacy.Open(put(t, id+".json", text), id+".json", legacy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestDetect(t *testing.T) {
	type entry struct{ name, text string }
	whole := legacytest.Whole(id)
	emptied := legacytest.Split(whole)
	tests := []struct {
		name  string
		want  legacy.Format
		files []entry
	}{
		{"a file", legacy.Monolithic, []entry{{"x", whole}}},
		{"a file whose pool comes first", legacy.Monolithic, []entry{{"x", `{"message_pool":{"a":{"id":"a","message":{}}}, "x": 1}`}}},
		{"an empty pool first", legacy.Monolithic, []entry{{"x", `{"message_pool":{},"id":"x"}`}}},
		{"an empty pool alone", legacy.None, []entry{{"x", `{"message_pool":{}}`}}},
		{"another pool", legacy.None, []entry{{"x", `{"message_pool":{"a":{"b":{"message":1}}},"c":1}`}}},
		{"a pool that is a list", legacy.None, []entry{{"x", `{"id":"x","message_pool":[]}`}}},
		{"members that others have too", legacy.None, []entry{{"x", `{"id":"x","config":{},"parent_id":null}`}}},
		{"a split one", legacy.Split, []entry{{"x/context.json", whole}, {"x/messages_pool/a.json", "{}"}}},
		{"context.json alone", legacy.None, []entry{{"x/context.json", whole}}},
		{"context.json without its messages", legacy.Split, []entry{{"x/context.json", emptied}}},
		{
			"context.json without its messages and a pool", legacy.Split,
			[]entry{{"x/context.json", strings.Replace(emptied, `"message_pool":{},`, "", 1)}},
		},
		{
			"context.json without its messages, the pool null", legacy.Split,
			[]entry{{"x/context.json", strings.Replace(emptied, `"message_pool":{}`, `"message_pool":null`, 1)}},
		},
		{"context.json beside a file where its messages belong", legacy.Split, []entry{{"x/context.json", emptied}, {"x/messages_pool", ""}}},
		{"nodes without context.json", legacy.Split, []entry{{"x/messages_pool/a.json", "{}"}}},
		{"nodes in a damaged one of ours", legacy.None, []entry{{"x/messages_pool/a.json", "{}"}, {"x/index.json", "{}"}}},
		{"four of the members and no pool", legacy.Monolithic, []entry{{"x", `{"id":"x","config":{},"branches":{},"parent_id":null}`}}},
		{"no JSON with four of the members in it", legacy.Monolithic, []entry{{"x", `["id":"x","config":{},"branches":{},"parent_id":null}`}}},
		{"no JSON with three of the members in it", legacy.None, []entry{{"x", `["id":"x","config":{},"branches":{}}`}}},
		{"no JSON with a pool and another member in it", legacy.Monolithic, []entry{{"x", `["id":"x","message_pool":{}}`}}},
		{
			"a name in the midst of no JSON, far behind", legacy.Monolithic,
			[]entry{{"x", `["x":"` + strings.Repeat("long ", 30_000) + `","id":"x","message_pool":{}}`}},
		},
		{"a name across two reads", legacy.Monolithic, []entry{{"x", `["x":"` + strings.Repeat("x", 64<<10-20) + `","message_pool":{"id":1}}`}}},
		{"context.json of somebody else", legacy.None, []entry{{"x/context.json", `{"id":"x","config":{},"parent_id":null}`}}},
		{
			"context.json in a damaged one of ours", legacy.None,
			[]entry{{"x/context.json", emptied}, {"x/index.json", "{}"}, {"x/messages/a", ""}},
		},
		{"one of ours", legacy.Context, []entry{{"x/metadata.json", `{"ctxdir":"context/1"}`}}},
		{"one of ours, damaged", legacy.Context, []entry{{"x/metadata.json", ``}, {"x/messages/a", ""}}},
		{
			"one of ours beside a split one", legacy.Context,
			[]entry{{"x/metadata.json", `{"ctxdir":"context/1"}`}, {"x/context.json", whole}, {"x/messages_pool/a.json", "{}"}},
		},
		{"metadata of somebody else", legacy.None, []entry{{"x/metadata.json", `{"title":"x"}`}}},
		{"a folder", legacy.None, []entry{{"x/y", ""}}},
	}
	for _, test := range tests {
		var fsys vfs.FS
		dir := t.TempDir()
		for _, f := range test.files {
			path := filepath.Join(dir, f.name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(f.text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		fsys, err := vfs.OS(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := legacy.Detect(fsys, "x"); err != nil || got != test.want {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
		fsys.Close()
	}
	for _, d := range legacytest.Damaged(id) {
		want := map[bool]legacy.Format{true: legacy.Monolithic}[d.Legacy]
		fsys := put(t, id+".json", d.Text)
		if got, err := legacy.Detect(fsys, id+".json"); err != nil || got != want {
			t.Errorf("%s: %q, %v", d.Name, got, err)
		}
		f, err := legacy.Open(fsys, id+".json", legacy.Options{})
		if err == nil { // what is wrong with a message shows when it is read
			for i := range f.Len() {
				if _, nerr := f.Node(int32(i)); nerr != nil {
					err = nerr
				}
			}
			f.Close()
		}
		if err == nil || d.Legacy && !errors.Is(err, legacy.ErrDamaged) || !d.Legacy && !errors.Is(err, legacy.ErrNotLegacy) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

// TestMark: a byte order mark is no part of what is in a file.
func TestMark(t *testing.T) {
	whole := legacytest.Whole(id)
	a, b := open(t, whole), open(t, "\ufeff"+whole)
	to := a.Compare(func(d legacy.Discrepancy) { t.Error(d) })
	if err := errors.Join(give(b, to), to.Finish()); err != nil {
		t.Error(err)
	}
	if a.Digest == b.Digest || b.Size != a.Size+3 {
		t.Errorf("%x, %d bytes; with the mark %x, %d", a.Digest, a.Size, b.Digest, b.Size)
	}
}

// TestDetectLinks: a link is followed nowhere.
func TestDetectLinks(t *testing.T) {
	fsys := put(t, "x.json", legacytest.Whole(id))
	sub, err := fsys.Sub(".")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	dir := t.TempDir()
	target := filepath.Join(dir, "target.json")
	if err := os.WriteFile(target, []byte(legacytest.Whole(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "link.json")); err != nil {
		t.Skip(err)
	}
	in, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got, err := legacy.Detect(in, "link.json"); got != legacy.None || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// give hands a file to a sink as it is.
func give(f *legacy.File, to legacy.Sink) error {
	pool := func(yield func(legacy.Node, error) bool) {
		for i := range f.Len() {
			if n, err := f.Node(int32(i)); !yield(n, err) {
				return
			}
		}
	}
	branches := func(yield func(legacy.ListedBranch, error) bool) {
		for _, b := range f.Branches {
			if !yield(legacy.ListedBranch{Name: b.Name, Members: b.Members, List: list(f, b)}, nil) {
				return
			}
		}
	}
	for _, m := range f.Members {
		var err error
		switch {
		case m.Value != nil:
			err = to.Member(m.Name, m.Value)
		case m.Is(legacy.NamePool):
			err = to.Pool(pool)
		default:
			err = to.Branches(branches)
		}
		if err != nil {
			return err
		}
	}
	return to.Prompt(f.Prompt)
}

func list(f *legacy.File, b legacy.Branch) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		missing := b.Missing
		for i := 0; ; i++ {
			for len(missing) > 0 && missing[0].At == i {
				if !yield(missing[0].ID, nil) {
					return
				}
				missing = missing[1:]
			}
			if i == len(b.Nodes) {
				return
			}
			n, err := f.Node(b.Nodes[i])
			if !yield(n.Key, err) {
				return
			}
		}
	}
}

// TestCompare: whatever differs is told, with its place, and nothing else.
func TestCompare(t *testing.T) {
	whole := legacytest.Whole(id)
	one, two := legacytest.ID(1), legacytest.ID(2)
	tests := []struct{ old, new, want string }{
		{``, ``, ``},
		{`"mode":"chat"`, "\"mode\" :\t\"ch\\u0061t\"", ``},
		{`"model_id":"m","mode":"chat"`, `"mode":"chat","model_id":"m"`, ``},
		{`"mode":"chat"`, `"mode":"else"`, `/config`},
		{`"parameters":{}`, `"parameters":{"a":1.0}`, `/config`},
		{`"current_state":"idle"`, `"current_state":"Idle"`, `/current_state`},
		{`,"current_state":"idle"`, ``, `/current_state`},
		{`"current_state":"idle"`, `"current_state":"idle","more":1`, `/more`},
		{`"text":"t"`, `"text":"u"`, `/message_pool/` + one},
		{`"metadata":null`, `"metadata":1`, `/message_pool/` + one},
		{`"parent_id":"` + one + `"`, `"parent_id":null`, `/message_pool/` + two},
		{`["` + one + `","` + two + `"]`, `["` + two + `","` + one + `"]`, `/branches/main/message_ids`},
		{`["` + one + `","` + two + `"]`, `["` + one + `"]`, `/branches/main/message_ids`},
		{`["` + one + `","` + two + `"]`, `["` + one + `","` + two + `","gone"]`, `/branches/main/message_ids`},
		{`"main":{`, `"a/b":{`, "/branches/main /branches/a~1b"},
		{`"user_prompt":null`, `"user_prompt":"x"`, `/branches/main/user_prompt`},
		{`"` + two + `":{`, `"another":{`, "/message_pool/another /message_pool/" + two},
		{`"message_pool":{`, `"message_pool":{"` + one + `":{"first":1},`, `/message_pool/` + one + ` /message_pool/` + one},
	}
	for _, test := range tests {
		changed := whole
		if test.old != "" {
			if changed = strings.Replace(whole, test.old, test.new, 1); changed == whole {
				t.Fatalf("%s: nothing to replace", test.old)
			}
		}
		a, b := open(t, whole), open(t, changed)
		var told []string
		to := a.Compare(func(d legacy.Discrepancy) { told = append(told, d.Path) })
		if err := errors.Join(give(b, to), to.Finish()); err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(test.want)
		slices.Sort(told)
		slices.Sort(want)
		if !slices.Equal(told, want) {
			t.Errorf("%s: %q, wanted %q", test.new, told, want)
		}
		var back bytes.Buffer
		e, err := legacy.NewEncoder(&back)
		if err := errors.Join(err, give(b, e), e.Close()); err != nil {
			t.Fatal(err)
		}
		if got := compact(t, back.String()); got != compact(t, changed) {
			t.Errorf("written as\n%s\nwanted\n%s", got, changed)
		}
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	b, err := jsontext.AppendFormat(nil, []byte(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlan: lines share what the lists have in common, and give the lists again; every node is in one; each item has an
// id of its own.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := open(t, legacytest.Draw(rt, id))
		lines := f.Plan()
		placed := make([]bool, f.Len())
		whole := make([][]legacy.Item, len(lines))
		context := uuid.MustParse(id)
		for i, l := range lines {
			if l.Parent >= i || l.Base > 0 != (l.Parent >= 0) {
				rt.Fatalf("line %d: %+v", i, l)
			}
			if l.Parent >= 0 {
				if l.Base <= lines[l.Parent].Base {
					rt.Fatalf("line %d: the parent does not own what is before %d", i, l.Base)
				}
				whole[i] = slices.Clone(whole[l.Parent][:l.Base])
			}
			whole[i] = append(whole[i], l.Items...)
			for _, before := range whole[:i] {
				if n := l.Base; l.Branch >= 0 && len(before) > n && len(whole[i]) > n && slices.Equal(before[:n+1], whole[i][:n+1]) {
					rt.Fatalf("line %d shares more than %d", i, n)
				}
			}
			ids := map[uuid.UUID]bool{}
			for _, it := range whole[i] {
				placed[it.Node] = true
				got, err := f.ID(context, it)
				if err != nil || ids[got] {
					rt.Fatalf("line %d has %s twice, %v", i, got, err)
				}
				ids[got] = true
			}
			if l.Branch == legacy.Unlisted {
				continue
			}
			var nodes []int32
			for _, it := range whole[i] {
				nodes = append(nodes, it.Node)
			}
			if !slices.Equal(nodes, f.Branches[l.Branch].Nodes) {
				rt.Fatalf("line %d: %v, wanted %v", i, nodes, f.Branches[l.Branch].Nodes)
			}
		}
		if slices.Contains(placed, false) {
			rt.Fatalf("a node is in no line: %v", placed)
		}
	})
}

// TestMemory: a file is read in memory that is bounded by its largest node and 32 bytes for each.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	w, err := os.Create(filepath.Join(dir, "x.json"))
	if err != nil {
		t.Fatal(err)
	}
	const nodes, size = 400, 256 << 10
	fmt.Fprintf(w, `{"id":%q,"config":{},"message_pool":{`, id)
	for i := range nodes {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, "\n%q:{\"id\":%[1]q,\"message\":{\"text\":%q}}", legacytest.ID(i), strings.Repeat("x", size))
	}
	fmt.Fprint(w, `},"branches":{}}`)
	w.Close()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	var most, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&most)
	before := most.HeapAlloc
	peak := uint64(0)
	f, err := legacy.Open(fsys, "x.json", legacy.Options{Progress: func(int64) {
		if runtime.ReadMemStats(&now); now.HeapAlloc > before {
			peak = max(peak, now.HeapAlloc-before)
		}
	}})
	if err != nil || f.Len() != nodes {
		t.Fatal(err)
	}
	defer f.Close()
	if peak > 16<<20 {
		t.Errorf("%d bytes for a file of %d", peak, nodes*size)
	}
	if _, err := legacy.Open(fsys, "x.json", legacy.Options{Limit: size / 2}); !errors.Is(err, legacy.ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
}

// TestFind: files and folders are found below a folder, whatever else is there.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	whole := legacytest.Whole(id)
	for name, text := range map[string]string{
		"a.json": whole, "b.JSON": whole, "c.txt": whole, "d.json": "{}", "deep/er/e.json": whole, "f.json.old": whole, "g.json.old-2": whole,
		"s/context.json": whole, "s/messages_pool/x.json": "{}", "s.old/context.json": whole, "s.old/messages_pool/x.json": "{}",
		"store/ctxdir.json": "{}", "store/" + id + ".json": whole, "store/blobs/x.json": whole, "store/kept/x.json": whole,
		"store/" + id + "/metadata.json": `{"ctxdir":"context/1"}`, "store/" + id + "/messages/x.json": whole,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for f, err := range legacy.Find(dir) {
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(dir, f.Path)
		got = append(got, filepath.ToSlash(rel)+" "+string(f.Format))
	}
	slices.Sort(got)
	want := []string{
		"a.json legacy", "b.JSON legacy", "d.json ", "deep/er/e.json legacy", "s legacy-split", "store/" + id + ".json legacy",
		"store/kept/x.json legacy",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwanted\n%q", got, want)
	}
	for f, err := range legacy.Find(filepath.Join(dir, "s", "context.json")) {
		if err != nil || f.Path != filepath.Join(dir, "s") || f.Format != legacy.Split {
			t.Errorf("context.json of a split one: %+v, %v", f, err)
		}
	}
	for f, err := range legacy.Find(filepath.Join(dir, "nowhere")) {
		if err == nil {
			t.Error(f)
		}
	}
}

// FuzzDetect: detection ends, with an answer.
func FuzzDetect(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := legacy.Detect(put(t, "x.json", string(b)), "x.json"); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzOpen: what can be read comes back equal; what cannot gives an error that says so.
func FuzzOpen(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := put(t, "x.json", string(b))
		file, err := legacy.Open(fsys, "x.json", legacy.Options{Limit: 1 << 16})
		known := func(err error) bool {
			return errors.Is(err, legacy.ErrDamaged) || errors.Is(err, legacy.ErrNotLegacy) || errors.Is(err, legacy.ErrTooLarge)
		}
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		defer file.Close()
		file.Plan()
		var differ []legacy.Discrepancy
		to := file.Compare(func(d legacy.Discrepancy) { differ = append(differ, d) })
		if err := errors.Join(give(file, to), to.Finish()); err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		if len(differ) > 0 {
			t.Fatalf("%v\n%s", differ, b)
		}
		context := file.ContextID()
		for i := range file.Len() {
			id, err := file.ID(context, legacy.Item{Node: int32(i)})
			if err != nil {
				t.Fatal(err)
			}
			n, err := file.Node(int32(i))
			if err != nil {
				t.Fatal(err)
			}
			origin, body, err := file.Take(int32(i), id)
			if err != nil {
				continue // too deep
			}
			again := legacy.ParseSource(origin.Source())
			if again == nil {
				t.Fatalf("%s", origin.Source())
			}
			if key := again.Key; key != nil && !bytes.Equal(key, n.Key) {
				t.Fatalf("%s, wanted %s", key, n.Key)
			}
			if got := again.Build(n.Key, body); !bytes.Equal(got, n.Value) {
				t.Fatalf("%s, wanted %s", got, n.Value)
			}
		}
	})
}

func seeds(f *testing.F) {
	f.Helper()
	f.Add([]byte(legacytest.Whole(id)))
	for _, d := range legacytest.Damaged(id) {
		f.Add([]byte(d.Text))
	}
	for seed := range 20 {
		f.Add([]byte(rapid.Custom(func(t *rapid.T) string { return legacytest.Draw(t, id) }).Example(seed)))
	}
}
