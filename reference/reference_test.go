package reference

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncode(t *testing.T) {
	hash := strings.Repeat("a", 40)
	r := Ref{
		File: "pkg/store.go", Lines: Lines{10, 12}, Commit: hash, Blob: strings.Repeat("b", 64), Sum: "0123456789abcdef", Size: 20,
		Context: "if a < b && c > d {\n", Diff: "@@ -1 +1 @@\n",
	}
	want := `[{"file":"pkg/store.go","lines":[10,12],"commit":"` + hash + `","blob":"` + r.Blob + `","sum":"0123456789abcdef",` +
		`"size":20,"context":"if a < b && c > d {\n","diff":"@@ -1 +1 @@\n"}]`
	if got := string(Encode([]Ref{r})); got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
	if got := string(Encode([]Ref{{File: "go.mod"}, {File: "../x"}, {File: "y", Computed: true}})); got != `[{"file":"go.mod"}]` {
		t.Errorf("%s", got)
	}
	if got := Encode([]Ref{{File: "/etc/passwd"}}); got != nil {
		t.Errorf("%s", got)
	}
	long := Ref{File: "x", Context: strings.Repeat("ä\xff", 1000), Diff: strings.Repeat("d", maxDiff+1)}
	back, err := Decode(Encode([]Ref{long}))
	if err != nil || len(back) != 1 || len(back[0].Context) > maxContext || back[0].Diff != "" {
		t.Errorf("%v %v", back, err)
	}
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []Ref
		bad  bool
	}{
		{"", nil, false},
		{"[]", nil, false},
		{`[{"file":"a"}, {"file":"b","lines":[1,2],"later":{"x":[]}}]`, []Ref{{File: "a"}, {File: "b", Lines: Lines{1, 2}}}, false},
		{`{"file":"a"}`, nil, true},
		{`"a"`, nil, true},
		{`[1,null,{"file":"a"},[],{}]`, []Ref{{File: "a"}}, true},
		{`[{"file":"../a"},{"file":"/a"},{"file":"a\u0000"},{"file":"a\nb"},{"file":"a/../b"},{"file":"."},{"file":"a\\b"},{"file":7}]`,
			nil, true},
		{`[{"file":"a","lines":[0,1]},{"file":"a","lines":[2,1]},{"file":"a","lines":[1]}]`, nil, true},
		{`[{"file":"a","lines":[1,1e300]},{"file":"a","lines":"1-2"}]`, nil, true},
		{`[{"file":"a","lines":[1,4611686018427387904]}]`, []Ref{{File: "a", Lines: Lines{1, 1 << 62}}}, false},
		{`[{"file":"a","commit":"--upload-pack=x"},{"file":"a","blob":"HEAD"},{"file":"a","sum":"x"},{"file":"a","size":-1}]`, nil, true},
	} {
		got, err := Decode(json.RawMessage(tc.in))
		if d := cmp.Diff(tc.want, got); d != "" || (err != nil) != tc.bad {
			t.Errorf("%s: %v\n%s", tc.in, err, d)
		}
	}
	many := "[" + strings.Repeat(`{"file":"a"},`, 2*MaxRefs) + `{"file":"b"}]`
	if got, err := Decode(json.RawMessage(many)); len(got) != MaxRefs || err == nil {
		t.Errorf("%d references, %v", len(got), err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"file":"pkg/store.go","lines":[10,12],"sum":"0123456789abcdef","context":"x\n"}]`))
	f.Add([]byte(`[{"file":"a","lines":[1,4611686018427387904],"commit":"` + strings.Repeat("0", 40) + `"}]`))
	f.Add([]byte(`[{"file":"../a"},{"file":"a\u0000"},[[[`))
	f.Add([]byte(`[{"file":"a","file":"b","context":"\ud83d"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		refs, _ := Decode(b)
		if len(refs) > MaxRefs {
			t.Fatalf("%d references", len(refs))
		}
		for i := range refs {
			if err := refs[i].Validate(); err != nil {
				t.Fatal(err)
			}
		}
		encoded := Encode(refs)
		again, err := Decode(encoded)
		if err != nil || len(again) != len(refs) {
			t.Fatalf("%s became %d references: %v", encoded, len(again), err)
		}
		if second := Encode(again); string(second) != string(encoded) {
			t.Fatalf("%s became %s", encoded, second)
		}
	})
}

func TestSum(t *testing.T) {
	same := Sum("a\nb\n")
	for _, lines := range []string{"a\nb", "a\r\nb\r\n", "a\r\nb"} {
		if Sum(lines) != same {
			t.Errorf("the sum of %q differs", lines)
		}
	}
	for _, lines := range []string{"", "ab\n", "a\nb\n\n", "a\n b\n", "b\na\n"} {
		if Sum(lines) == same {
			t.Errorf("the sum of %q is the same", lines)
		}
	}
}

func TestBlob(t *testing.T) { // as "git hash-object" prints them
	c := newContent([]byte("hello\n"))
	if got := c.blob(40); got != "ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Error(got)
	}
	if got := c.blob(64); got != "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4" {
		t.Error(got)
	}
}

func TestFind(t *testing.T) {
	c := newContent([]byte("a\nx\ny\nb\nx\ny\nc\nx\ny"))
	for _, tc := range []struct {
		was, want Lines
		sum       string
	}{
		{Lines{2, 3}, Lines{2, 3}, Sum("x\ny\n")},
		{Lines{4, 5}, Lines{5, 6}, Sum("x\ny\n")}, // the nearest one
		{Lines{100, 101}, Lines{8, 9}, Sum("x\ny\n")},
		{Lines{1, 9}, Lines{1, 9}, Sum(c.text)},
		{Lines{1, 10}, Lines{}, Sum(c.text)},
		{Lines{1, 1 << 62}, Lines{}, Sum("x\ny\n")},
		{Lines{1, 2}, Lines{}, Sum("y\nx\n")},
	} {
		budget := int64(work)
		if got, ok := c.find(tc.sum, tc.was, "", &budget); got != tc.want || ok != !tc.want.IsZero() {
			t.Errorf("%v: %v, wanted %v", tc.was, got, tc.want)
		}
	}
	budget := int64(1)
	many := newContent([]byte(strings.Repeat("x\n", 1000)))
	if _, ok := many.find(Sum("y\n"), Lines{500, 500}, "", &budget); ok || budget < -100 {
		t.Errorf("the search used %d bytes more than it may", -budget)
	}
}

// TestFollow compares the places of lines after a change with those that the change gave them.
func TestFollow(t *testing.T) {
	old := newContent([]byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"))
	for _, tc := range []struct {
		now       string
		was, want Lines
	}{
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", Lines{4, 6}, Lines{4, 6}},
		{"a\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", Lines{4, 6}, Lines{5, 7}},
		{"1\n2\n3\n4\nnew\n5\n6\n7\n8\n9\n", Lines{4, 6}, Lines{4, 7}},
		{"1\n2\n3\nnew\n4\n5\n6\n7\n8\n9\n", Lines{4, 6}, Lines{5, 7}},
		{"1\n2\n3\n4\n5\n6\nnew\n7\n8\n9\n", Lines{4, 6}, Lines{4, 6}},
		{"1\n2\n3\n4\n6\n7\n8\n9\n", Lines{4, 6}, Lines{4, 5}},
		{"3\n4\n5\n6\n7\n8\n9\n", Lines{4, 6}, Lines{2, 4}},
		{"1\n2\n3\nfour\nfive\nsix\nmore\n7\n8\n9\n", Lines{4, 6}, Lines{4, 7}},
		{"1\n2\n3\n7\n8\n9\n", Lines{4, 6}, Lines{4, 4}},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\nend\n", Lines{9, 9}, Lines{9, 9}},
		{"1\na\nb\nc\nd\ne\nf\ng\nh\ni\n9\n", Lines{4, 6}, Lines{4, 8}}, // within a larger change
		{"x\n", Lines{4, 6}, Lines{1, 1}},
		{"", Lines{4, 6}, Lines{}},
	} {
		now := newContent([]byte(tc.now))
		if got := now.follow(tc.was, hunksOf(old, now)); got != tc.want {
			t.Errorf("%q: %v, wanted %v", tc.now, got, tc.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for _, tc := range []struct{ lines, want string }{
		{"", ""},
		{"a", "a\n"},
		{"a\r\nb\r\nc\r\nd\r\n", "a\nb\nc\n"},
		{"a\n" + long + "\n", "a\n"},
		{long, strings.Repeat("ä", maxContext/2)},
	} {
		if got := excerpt(tc.lines); got != tc.want {
			t.Errorf("%.20q: %.40q", tc.lines, got)
		}
	}
}

// TestInCalls reads the references in calls and results of several tools.
func TestInCalls(t *testing.T) {
	sum := Sum("x\ny\n")
	for _, tc := range []struct{ name, body, want string }{
		{"a read and its result", `{"cwd":"/home/ada/src","type":"user","message":{"content":[{"type":"tool_result"}]},"toolUseResult":
			{"type":"text","file":{"filePath":"/home/ada/src/pkg/a.go","content":"x\ny","numLines":2,"startLine":7,"totalLines":40}}}`,
			"pkg/a.go:7-8 " + sum},
		{"a call", `{"role":"assistant","content":[{"type":"tool_use","name":"Read","input":{"file_path":"/root/a.go","offset":7,"limit":10}}]}`,
			"a.go:7-16 "},
		{"arguments in a string", `{"type":"function_call","arguments":"{\"path\":\"/root/a.go\",\"view_range\":[3,5]}"}`, "a.go:3-5 "},
		{"an edit", `{"toolUseResult":{"filePath":"/root/a.go","oldString":"o","newString":"n","structuredPatch":[
			{"oldStart":5,"oldLines":2,"newStart":6,"newLines":2,"lines":[" x","-o","+y"]}]}}`, "a.go:6-7 " + sum},
		{"a write", `{"input":{"file_path":"a.go","content":"x\ny\n"}}`, "a.go " + sum},
		{"a file before and after", `{"filediff":{"file":"/root/a.go","before":"","after":"x\ny\n"}}`, "a.go " + sum},
		{"a patch", `{"type":"custom_tool_call","input":"*** Begin Patch\n*** Update File: pkg/a.go\n@@\n*** Add File: b.go\n"}`,
			"pkg/a.go \nb.go "},
		{"the result counts more than the call", `[{"path":"a.go","start_line":7,"end_line":8},{"path":"a.go","startLine":7,"content":"x\ny"}]`,
			"a.go:7-8 " + sum},
		{"on Windows", `{"cwd":"C:\\src","input":{"file_path":"C:\\src\\pkg\\a.go"}}`, "pkg/a.go "},
		{"a search", `{"input":{"pattern":"x","path":"pkg"}}`, ""},
		{"outside", `{"input":{"file_path":"/etc/passwd"}}`, ""},
		{"outside, by a detour", `{"input":{"file_path":"/root/../etc/passwd"}}`, ""},
		{"above", `{"input":{"file_path":"../a.go"}}`, ""},
		{"at home", `{"input":{"file_path":"~/a.go"}}`, ""},
		{"a URL", `{"input":{"path":"https://example.org/a"}}`, ""},
		{"impossible lines", `{"input":{"file_path":"a.go","offset":4611686018427387904,"limit":4611686018427387904}}`, "a.go "},
		{"deep", strings.Repeat(`{"a":`, 60) + `{"path":"a.go"}` + strings.Repeat("}", 60), ""},
		{"no JSON", `{"path":"a.go"`, ""},
	} {
		var got []string
		for _, r := range inCalls(json.RawMessage(tc.body), []string{"/root"}) {
			if !r.Computed || r.Validate() != nil {
				t.Errorf("%s: %+v", tc.name, r)
			}
			got = append(got, fmt.Sprintf("%s %s", r.String(), r.Sum))
		}
		if text := strings.Join(got, "\n"); text != tc.want {
			t.Errorf("%s: %q, wanted %q", tc.name, text, tc.want)
		}
	}
}
