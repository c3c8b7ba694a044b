package search

import (
	"slices"
	"strings"
	"testing"
)

func TestFilesThatACommandNames(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"cat main.go", "main.go"},
		{`sed -n '1,240p' docs/plan.md && cp a.go "b dir/c.go"`, "docs/plan.md a.go dir/c.go"},
		{"git show origin/main:ROADMAP.md", "ROADMAP.md"},
		{"vim main.go:12:5 x.mp3 lib/a.ts:10-20", "main.go x.mp3 lib/a.ts"},
		{"cd ~/src; make -f ../Makefile VERSION=1.2 OUT=out.json", "../Makefile out.json"},
		{"tail -f /var/log/app.log", "/var/log/app.log"},
		{"curl https://example.com/data.json -o $DIR/x.json '*.go' --file.go", ""},
		{"sed -i s/a.go/b.go/ list", ""},
		{"cat > run.py <<EOF\nopen('data.csv')\nEOF", "run.py"},
		{"go test ./... -run Foo", ""},
		{strings.Repeat("x", maxCommand) + " main.go", ""},
		{"", ""},
	} {
		var got []string
		eachNamed(c.command, func(path string) { got = append(got, path) })
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q names %q, want %q", c.command, got, c.want)
		}
	}
}

func TestCommandsOfMessages(t *testing.T) {
	for name, message := range map[string]string{
		"string":            `{"content":[{"type":"tool_use","name":"Bash","input":{"command":"cat a.go"}}]}`,
		"list":              `{"action":{"command":["bash","-lc","cat a.go"]}}`,
		"arguments":         `{"type":"function_call","arguments":"{\"cmd\":\"cat a.go\"}"}`,
		"list in arguments": `{"arguments":"{\"command\":[\"cat\",\"a.go\"]}"}`,
	} {
		w := &fileWalk{}
		_ = w.walk([]byte(message), "")
		if len(w.mentions) != 1 || w.mentions[0].path != "a.go" || w.mentions[0].access != named {
			t.Errorf("%s: %+v", name, w.mentions)
		}
	}
	w := &fileWalk{}
	_ = w.walk([]byte(`{"command":[["a.go"],{"x":"a.go"}],"commands":"a.go"}`), "")
	if len(w.mentions) != 0 {
		t.Errorf("%+v", w.mentions)
	}
}
