package api_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/internal/knobs"
)

// example is a command of docs/API.md and what it prints. An empty answer is not compared.
type example struct {
	line            int
	command, answer string
}

func examples(t *testing.T, path string) (all []example) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	console := false
	for i, line := range strings.Split(string(b), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console"
		case console && is:
			all = append(all, example{line: i + 1, command: command})
		case console:
			all[len(all)-1].answer += line + "\n"
		}
	}
	return all
}

// TestDocs runs every command of docs/API.md in one shell, and compares what it prints. Ids may be others, but the same
// ones in the same places; "…" stands for anything. Each operation has an example.
func TestDocs(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
	all := examples(t, "../docs/API.md")
	s, err := ctxdir.Init(t.TempDir(), knobs.FilesOnReturn()) // a payload then has its blob when the append returns
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := serve(t, s, api.Options{Version: "1.0"}, func(*api.Server) {})
	var script strings.Builder
	for i, e := range all {
		fmt.Fprintf(&script, "%s\nprintf '\\036%d\\n'\n", e.command, i)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "API=http://"+k.host+"/v1", "AUTH=Authorization: Bearer "+token,
		"JSON=Content-Type: application/json", "LINES=Content-Type: application/x-ndjson", "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ids := map[string]string{} // by the one in the page
	rest := string(out)
	for i, e := range all {
		got, after, ok := strings.Cut(rest, fmt.Sprintf("\x1e%d\n", i))
		if !ok {
			t.Fatalf("line %d: no end of %s: %s", e.line, e.command, rest)
		}
		rest = after
		if !same(e.answer, got, ids) {
			t.Errorf("line %d: %s\nprints\n%s\nwanted\n%s", e.line, e.command, got, e.answer)
		}
	}
	for _, op := range api.Operations() {
		if !strings.HasPrefix(op.Path, "/v1/") && op.Path != "/healthz" {
			continue
		}
		path := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(strings.TrimPrefix(op.Path, "/v1")), `[^/"? ]+`)
		is := regexp.MustCompile(path + `["?]`)
		if !shown(all, op.Method, is) {
			t.Errorf("docs/API.md has no example of %s %s", op.Method, op.Path)
		}
	}
}

func shown(all []example, method string, path *regexp.Regexp) bool {
	for _, e := range all {
		with := "GET"
		if strings.Contains(e.command, " -d ") || strings.Contains(e.command, " --data-binary ") {
			with = "POST"
		}
		if m := regexp.MustCompile(`-X (\w+)`).FindStringSubmatch(e.command); m != nil {
			with = m[1]
		}
		if with == method && path.MatchString(e.command) {
			return true
		}
	}
	return false
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// same compares an answer of the page with a real one, and learns which id of the one is which of the other.
func same(shown, seen string, ids map[string]string) bool {
	shown, seen = strings.TrimSpace(shown), strings.TrimSpace(seen)
	if shown == "" {
		return true
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(shown), "…", `[^\n]*?`)
	var names []string
	pattern = uuids.ReplaceAllStringFunc(strings.ReplaceAll(pattern, `\-`, "-"), func(id string) string {
		names = append(names, id)
		return "(" + uuids.String() + ")"
	})
	found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(seen)
	if found == nil {
		return false
	}
	for i, id := range names {
		if was, ok := ids[id]; ok && was != found[i+1] {
			return false
		}
		ids[id] = found[i+1]
	}
	return true
}
