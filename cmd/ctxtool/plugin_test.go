package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var commandInText = regexp.MustCompile("ctxtool ([a-z][a-z-]*)")

// TestPlugin: the plugin for Claude Code is valid, and names only verbs that there are.
func TestPlugin(t *testing.T) {
	files := os.DirFS("../../contrib/claude-code")
	verbs := 0
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".json") && !json.Valid(b) {
			t.Errorf("%s is no JSON", path)
		}
		for _, m := range commandInText.FindAllStringSubmatch(string(b), -1) {
			_, root := newRoot(strings.NewReader(""), &screen{columns: 80, rows: 24}, &strings.Builder{}, func(string) string { return "" })
			if cmd, _, err := root.Find(m[1:2]); err != nil || cmd == root {
				t.Errorf("%s: ctxtool %s: no such verb", path, m[1])
			}
			verbs++
		}
		return nil
	})
	if err != nil || verbs < 3 {
		t.Errorf("%d verbs, %v", verbs, err)
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	b, err := fs.ReadFile(files, ".mcp.json")
	if err == nil {
		err = json.Unmarshal(b, &config)
	}
	if s := config.Servers["ctxdir"]; err != nil || s.Command != "ctxtool" || len(s.Args) != 1 || s.Args[0] != "mcp" {
		t.Errorf("%+v, %v", config, err)
	}
}
