package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The contexts of the golden files.
const (
	walkID    = "a195f0a0-0000-7000-8000-00000000000a"
	wideID    = "b195f0a0-0000-7000-8000-00000000000b"
	joinedID  = "c195f0a0-0000-7000-8000-00000000000c"
	rudeID    = "d195f0a0-0000-7000-8000-00000000000d"
	removedID = "e195f0a0-0000-7000-8000-00000000000e"
)

// goldenViews are what people see, one file each.
var goldenViews = []struct {
	name string
	args []string
}{
	{"ls", []string{"ls"}},
	{"ls-size", []string{"ls", "--sort", "size", "--limit", "2"}},
	{"branch-ls", []string{"branch", "ls", walkID}},
	{"tree", []string{"tree", walkID}},
	{"diff", []string{"diff", walkID, "main", "alt"}},
	{"log", []string{"log", walkID}},
	{"du", []string{"du", "--apparent"}},
	{"du-context", []string{"du", "--apparent", walkID}},
	{"gc", []string{"gc", "--grace", "0s", "--dry-run"}},
	{"show", []string{"show", walkID, "--branch", "alt"}},
	{"show-full", []string{"show", walkID, "--range", "2:5", "--full"}},
	{"show-heads", []string{"show", walkID, "--no-content"}},
	{"show-wide", []string{"show", wideID}},
	{"meta", []string{"meta", rudeID}},
}

// laterViews follow a garbage collection and some damage.
var laterViews = []struct {
	name string
	args []string
}{
	{"trash-ls", []string{"trash", "ls"}},
	{"ls-problem", []string{"ls"}},
	{"check", []string{"check"}},
	{"repair", []string{"repair", "--dry-run"}},
	{"show-unavailable", []string{"show", walkID, "--last", "1"}},
}

// goldenStore is a store without differences between runs: its clock is that of a bubble.
type goldenStore struct {
	t *testing.T
	inProcess
}

func (g *goldenStore) do(stdin string, args ...string) {
	g.t.Helper()
	if code := g.run(g.t.Context(), stdin, args...); code != 0 {
		g.t.Fatalf("%q: %d: %s", args, code, g.stderr.String())
	}
}

// goldenMessage is a line of "append --envelope".
func goldenMessage(context, number, minute int, body string) string {
	return fmt.Sprintf(
		`{"id":"0195f0a0-%04d-7000-8000-%012d","created_at":"1999-12-31T23:%02d:00Z","message":%s}`+"\n",
		context,
		number,
		minute,
		body,
	)
}

func (g *goldenStore) fill() {
	g.do("", "new", "--id", walkID, "--title", "A walk through the parser, from the lexer to the last of its error messages, and back again")
	var walk strings.Builder
	for i, body := range []string{
		`{"role":"system","content":"You help."}`,
		`{"role":"user","content":"# A question\n\n* one\n* two\n\nWhat does *the parser* do?"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"First I read it.\nThen I answer."},` +
			`{"type":"text","text":"I read it."},{"type":"tool_use","name":"Bash","input":{"command":"cat parser.go",` +
			`"description":"a description that does not fit into a line of eighty columns"}}]}`,
		`{"role":"tool","content":"package parser\n\nfunc Parse() {\n}\n"}`,
		`{"role":"User","content":[{"type":"text","text":"And this?"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAAAAAAAAAA"}},` +
			`{"type":"file","filename":"notes 日本.txt","source":{"type":"base64","media_type":"text/plain","data":"AAAA"}}]}`,
		`{"role":"Assistant","content":"It parses."}`,
	} {
		walk.WriteString(goldenMessage(1, i, i, body))
	}
	g.do(walk.String(), "append", walkID, "--jsonl", "--envelope")
	g.do("", "branch", "fork", walkID, "alt", "--at", "4")
	g.do(
		goldenMessage(1, 10, 10, `{"type":"progress","data":{"n":1}}`)+goldenMessage(1, 11, 11, `{"role":"user","content":"\n"}`),
		"append",
		walkID,
		"--branch",
		"alt",
		"--jsonl",
		"--envelope",
	)
	g.do("", "branch", "fork", walkID, "分岐 👩‍👩‍👧‍👦", "--from", "alt", "--at", "5")
	g.do("", "branch", "fork", walkID, "early", "--at", "1")
	g.do("", "branch", "new", walkID, "apart")

	g.do("", "new", "--id", wideID, "--title", "日本語の題名は幅が二倍あるので、"+
		"途中で切られるときも列がずれてはいけません。")
	g.do(goldenMessage(2, 0, 20, `{"role":"user","content":"日本語 Ελληνικά עברית 👩🏽‍💻 é ﷽"}`)+
		goldenMessage(
			2,
			1,
			21,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"`+
				`漢字の思考はとても長いので、八十桁の端末では`+
				`一行に収まりません。切れ目は文字の途中であってはならない。"},`+
				`{"type":"text","text":"👍🏿"}]}`,
		),
		"append", wideID, "--jsonl", "--envelope")
	g.do(
		"",
		"new",
		"--id",
		joinedID,
		"--title",
		"👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 🇩🇪 country, "+
			"e\u0301 combining, a\u0300\u0301\u0302\u0303 stack, "+strings.Repeat("🧑🏾‍🚀", 20),
	)
	g.do("", "new", "--id", rudeID, "--title", "bell\a \x1b[31mred\x1b[0m line\nbreak \u202eesrever\u202c tab\tend")
	g.do("", "new", "--id", removedID, "--title", "Removed")

	time.Sleep(3 * time.Hour) // of the bubble's clock: no time passes
	g.do("", "rm", removedID)
	g.do("", "branch", "rewind", walkID, "--to", "5")
	g.do("", "branch", "rm", walkID, "early")
	g.do("", "meta", wideID, "--set", "state=1")
	time.Sleep(26 * time.Hour)
}

// damage damages every copy of a message, and empties those of the metadata of another context.
func (g *goldenStore) damage() {
	g.lose(g.t, walkID, "messages/branch-main/*000000000004.json")
	for _, name := range []string{"metadata.json", "log-*"} {
		pattern := joinedID + "/" + name
		found, err := filepath.Glob(filepath.Join(g.store, pattern))
		if err != nil || len(found) == 0 {
			g.t.Fatalf("nothing matches %s: %v", pattern, err)
		}
		for _, path := range found {
			if err := os.Truncate(path, 0); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

var (
	someID     = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	someEnding = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	someChain  = regexp.MustCompile(`\b(\d+-\d+)-[0-9a-f]{8}\b`)
	someFrame  = regexp.MustCompile(`\b\d+ (bytes at)\b`)
)

// view returns what a verb shows on screens of two widths, with colours and without, and to a file. Escapes become
// visible, and random ids, chains and sizes become x.
func (g *goldenStore) view(args []string) string {
	var b bytes.Buffer
	for _, on := range []struct {
		name   string
		stdout func() io.Writer
		plain  string
	}{
		{"80 columns", func() io.Writer { return &screen{columns: 80, rows: 24} }, "1"},
		{"80 columns, in colour", func() io.Writer { return &screen{columns: 80, rows: 24} }, ""},
		{"200 columns", func() io.Writer { return &screen{columns: 200, rows: 24} }, "1"},
		{"200 columns, in colour", func() io.Writer { return &screen{columns: 200, rows: 24} }, ""},
		{"a file", func() io.Writer { return &strings.Builder{} }, ""},
	} {
		stdout, stderr := on.stdout(), &strings.Builder{}
		env := func(key string) string {
			if key == "NO_COLOR" {
				return on.plain
			}
			return g.env(key)
		}
		code := run(g.t.Context(), args, strings.NewReader(""), stdout, stderr, env)
		fmt.Fprintf(&b, "==== %s ====\n%s%sexit status %d\n", on.name, stdout, stderr, code)
	}
	text := strings.ReplaceAll(b.String(), "\x1b", "␛")
	text = someFrame.ReplaceAllString(someChain.ReplaceAllString(text, "$1-xxxxxxxx"), "x $1")
	text = someID.ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(id, "0195f0a0") {
			return id
		}
		return "xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx"
	})
	return someEnding.ReplaceAllStringFunc(text, func(end string) string {
		if strings.HasPrefix(end, "00000000") {
			return end
		}
		return "xxxxxxxxxxxx"
	})
}

// TestGolden compares what people see with the files in testdata/golden. "go test -run Golden -update" rewrites them.
func TestGolden(t *testing.T) {
	if !alone(t) {
		return
	}
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	views := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		g := &goldenStore{t, *newInProcess(t)}
		g.fill()
		for _, v := range goldenViews {
			views[v.name] = g.view(v.args)
		}
		g.do("", "gc")
		g.damage()
		for _, v := range laterViews {
			views[v.name] = g.view(v.args)
		}
	})
	compareGolden(t, "golden", views)
}

// alone reports whether a test has a process of its own. If not, it runs the test in one: ids go on from those of the
// tests before, which may be later than the clock of a bubble.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "CTXTOOL_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", fmt.Sprintf("-update=%t", *update))
	c.Env = append(os.Environ(), mark+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// compareGolden compares views with the files of a folder in testdata, which has no other files.
func compareGolden(t *testing.T, folder string, views map[string]string) {
	t.Helper()
	for name, got := range views {
		path := filepath.Join("testdata", folder, name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; -update writes it anew):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) != len(views) {
		t.Errorf("%d files for %d views: %v", len(files), len(views), err)
	}
}
