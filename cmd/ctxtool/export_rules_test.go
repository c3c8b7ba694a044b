package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/apirules"
	"github.com/ctxdir/ctxdir/transcript"

	"github.com/ctxdir/ctxdir/internal/record"
)

// exportRules are the rules of each form that a program reads. They get the tool of the context: the records that a tool
// wrote itself stay as they are.
var exportRules = map[string]func(t *testing.T, tool string, export []byte) []string{
	"openai":      func(_ *testing.T, _ string, export []byte) []string { return apirules.ChatCompletions(export) },
	"anthropic":   func(_ *testing.T, _ string, export []byte) []string { return apirules.Anthropic(export) },
	"claude-code": claudeRules,
	"codex":       codexRules,
	"chatgpt":     chatGPTRules,
}

// claudeRules checks the messages that Claude Code sends when it resumes a session. Its first message is one of its own,
// with what the user's instructions say.
func claudeRules(t *testing.T, tool string, export []byte) []string {
	if tool == "claude-code" {
		return nil
	}
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":"(instructions)"}`)}
	for line := range bytes.Lines(export) {
		message := transcript.ObjectOf(transcript.ObjectOf(line)["message"])
		if message == nil {
			t.Errorf("a record without a message: %.200s", line)
			continue
		}
		messages = append(messages, record.Encode(map[string]json.RawMessage{"role": message["role"], "content": message["content"]}))
	}
	return apirules.AnthropicMessages(messages)
}

// codexRules checks the items that Codex sends when it resumes a rollout.
func codexRules(_ *testing.T, tool string, export []byte) []string {
	if tool == "codex" {
		return nil
	}
	var items []json.RawMessage
	for line := range bytes.Lines(export) {
		if o := transcript.ObjectOf(line); o.Text("type") == "response_item" {
			items = append(items, o["payload"])
		}
	}
	return apirules.Responses(items)
}

// chatGPTRules checks that each node is the only child of its parent, and that each message has a role of ChatGPT.
func chatGPTRules(_ *testing.T, _ string, export []byte) (found []string) {
	var conversations []struct {
		Current string `json:"current_node"`
		Mapping map[string]struct {
			Parent   string
			Children []string
			Message  *struct{ Author struct{ Role string } }
		}
	}
	if err := json.Unmarshal(export, &conversations); err != nil || len(conversations) != 1 {
		return []string{"no list with one conversation"}
	}
	c := conversations[0]
	reached := 0
	for id := c.Current; id != ""; id = c.Mapping[id].Parent {
		node, ok := c.Mapping[id]
		if !ok || reached > len(c.Mapping) {
			return append(found, "no chain of nodes to the root")
		}
		reached++
		if parent := c.Mapping[node.Parent]; node.Parent != "" && !slices.Equal(parent.Children, []string{id}) {
			found = append(found, id+" is not the only child of its parent")
		}
		roles := []string{"system", "user", "assistant", "tool"}
		if node.Message != nil && !slices.Contains(roles, node.Message.Author.Role) {
			found = append(found, id+" has the role "+node.Message.Author.Role)
		}
	}
	if reached != len(c.Mapping) {
		found = append(found, "nodes beside the chain")
	}
	return found
}

// contextList returns the contexts of a store.
func contextList(t *testing.T, p *inProcess) (all []record.Context) {
	t.Helper()
	if code := p.run(t.Context(), "", "--json", "ls"); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	for line := range strings.Lines(p.stdout.String()) {
		var c record.Context
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Record == "context" {
			all = append(all, c)
		}
	}
	return all
}

// branchesOf returns the names of the branches of a context.
func branchesOf(t *testing.T, p *inProcess, id string) (names []string) {
	t.Helper()
	if code := p.run(t.Context(), "", "--json", "branch", "ls", id); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	for line := range strings.Lines(p.stdout.String()) {
		var b struct{ Name string }
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		names = append(names, b.Name)
	}
	return names
}

// keepsRules exports every branch of every context of a store in every form, and checks the rules of the form.
func keepsRules(t *testing.T, p *inProcess) {
	t.Helper()
	for _, c := range contextList(t, p) {
		for _, branch := range branchesOf(t, p, c.ID) {
			for format, rules := range exportRules {
				if code := p.run(t.Context(), "", "export", c.ID, "--branch", branch, "--format", format); code != exitOK {
					t.Errorf("%s of %s: %s", format, branch, p.stderr.String())
					continue
				}
				if found := rules(t, c.Labels["tool"], []byte(p.stdout.String())); len(found) > 0 {
					t.Errorf("%s of %s in %s: %d faults: %.1000s", format, branch, c.ID, len(found), strings.Join(found, "\n"))
				}
			}
		}
	}
}

// TestExportsKeepRules checks the exports of small histories of every tool.
func TestExportsKeepRules(t *testing.T) {
	exportsOf(t, 1, 3, "../../importer/testdata", "../../testdata/openai", "../../testdata/claude-code", "testdata/histories")
}

// TestRealExportsKeepRules checks the exports of real histories.
func TestRealExportsKeepRules(t *testing.T) {
	dir := os.Getenv("CTXDIR_TEST_DATA")
	if dir == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder of real histories")
	}
	n := 1 + today()%3
	exportsOf(t, n, n, dir)
}

// exportsOf imports each history alone, and checks its exports. A short test looks at some of each folder, from one number to another.
func exportsOf(t *testing.T, from, to int, roots ...string) {
	seen := map[string]int{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() && e.Name() != "events" && e.Name() != "storage" {
				return err
			}
			seen[filepath.Dir(path)]++
			if n := seen[filepath.Dir(path)]; testing.Short() && (n < from || n > to) {
				return nil
			}
			t.Run(filepath.ToSlash(path[len(root):]), func(t *testing.T) {
				p := newInProcess(t)
				if code := p.run(t.Context(), "", "import", path); code == exitOK || code == exitProblems {
					keepsRules(t, p)
				}
			})
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
