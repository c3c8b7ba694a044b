package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// terminal is a writer to a terminal.
type terminal struct{ bytes.Buffer }

func (*terminal) Size() (columns, rows int, err error) { return 200, 50, nil }

// rude is what a stranger may write: escapes, a title, C1 in UTF-8, overrides, isolates, marks and separators.
const rude = "A\x1b[31mB\x1b]0;title\x07C\u009b31mD\u0085E\x7fF\r\u202eG\u2066H\u200fI\u061cJ\u2028K\u2029L"

// ownStyle matches the styles of the command.
var ownStyle = regexp.MustCompile(`^\x1b\[(0|1|2|31|32|33|35|1;31|1;32|1;34)m`)

// checkShown fails if control characters reached a terminal, except the styles of the command.
func checkShown(t *testing.T, what, got string) {
	t.Helper()
	for len(got) > 0 {
		if style := ownStyle.FindString(got); style != "" {
			got = got[len(style):]
			continue
		}
		r, size := utf8.DecodeRuneInString(got)
		if r == utf8.RuneError && size == 1 ||
			r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			t.Errorf("%s: %q is shown, before %.40q", what, r, got[size:])
			return
		}
		got = got[size:]
	}
}

// TestTerminalInjection: whatever a store holds, no verb lets it control a terminal. Files and pipes get messages
// verbatim.
func TestTerminalInjection(t *testing.T) {
	p := newInProcess(t)
	ctx := t.Context()
	if code := p.run(ctx, "", "new", "-q", "--title", rude, "--model", rude, "--mode", rude, "--config", "k="+rude); code != 0 {
		t.Fatal(p.stderr.String())
	}
	id := strings.TrimSpace(p.stdout.String())
	text, _ := json.Marshal(rude)
	raw := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029", "\\u007f", "\x7f").Replace(string(text))
	messages := []string{
		`{"role":"user","content":` + raw + `}`,
		`{"role":` + raw + `,"content":` + raw + `}`,
		`{"type":` + raw + `,"x":` + raw + `,` + raw + `:1}`,
		`{"role":"assistant","content":[{"type":"tool_use","name":` + raw + `,"input":{"a":` + raw + `}},` +
			`{"type":"thinking","thinking":` + raw + `}]}`,
		`{"role":"tool","content":[{"type":"tool_result","content":` + raw + `},` +
			`{"type":"image","media_type":` + raw + `,"filename":` + raw + `}]}`,
	}
	if code := p.run(ctx, strings.Join(messages, "\n")+"\n", "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for _, args := range [][]string{{"branch", "fork", id, rude}, {"branch", "new", id, rude + "2"}, {"branch", "rm", id, rude + "2"}} {
		if code := p.run(ctx, "", args...); code != 0 {
			t.Fatal(args, p.stderr.String())
		}
	}
	odd := filepath.Join(p.store, "\x1b]0;x\x07\u202e\xff")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		odd = p.store
	}
	for _, args := range [][]string{
		{"ls"}, {"show", id}, {"show", id, "--full"}, {"show", id, "--no-content"}, {"show", id, "--branch", rude},
		{"tree", id}, {"branch", "ls", id}, {"meta", id},
		{"du"}, {"du", id}, {"check"}, {"check", "-v"}, {"watch", id, "--tail", "9", "--no-follow"}, {"watch", id, "--from", "0", "--no-follow"},
		{"watch", "--no-follow"},
		{"export", id}, {"export", id, "--format", "openai"}, {"export", id, "--format", "markdown"}, {"export", id, "--format", "html"},
		{"trash", "ls"}, {"files", id}, {"doctor"}, {"import", odd}, {"migrate", odd}, {"migrate", p.store},
		{"repair", "--dry-run"}, {"gc", "--dry-run"},
		{"show", rude}, {"branch", "switch", id, rude + "x"}, {"--store", rude, "ls"}, {rude}, {"ls", "--sort", rude},
		{"export", id, "-o", "/none/" + rude},
		{"__complete", "branch", "switch", id, ""}, {"__complete", "show", ""}, {"man"}, {"help", "show"},
	} {
		for _, global := range [][]string{nil, {"--json"}, {"NO_COLOR"}} {
			env := p.env
			if len(global) > 0 && global[0] == "NO_COLOR" {
				env = func(key string) string {
					if key == "NO_COLOR" {
						return "1"
					}
					return p.env(key)
				}
				global = nil
			}
			args := append(global, args...)
			var stdout, stderr terminal
			run(ctx, args, strings.NewReader(""), &stdout, &stderr, env)
			checkShown(t, fmt.Sprintf("%q on stdout", args), stdout.String())
			checkShown(t, fmt.Sprintf("%q on stderr", args), stderr.String())
			if env("NO_COLOR") != "" && strings.Contains(stdout.String()+stderr.String(), "\x1b") {
				t.Errorf("%q: colours that nobody wanted", args)
			}
			if len(global) > 0 {
				for line := range strings.Lines(stdout.String()) {
					if !json.Valid([]byte(line)) && !slices.Contains([]string{"__complete", "man", "help", "export"}, args[1]) {
						t.Errorf("%q: not JSON: %.200q", args, line)
					}
				}
			}
		}
	}
	// As JSON nothing is lost on a terminal, and nothing is changed elsewhere.
	var shown terminal
	run(ctx, []string{"export", id}, strings.NewReader(""), &shown, &shown, p.env)
	p.run(ctx, "", "export", id)
	if p.stdout.String() != strings.Join(messages, "\n")+"\n" {
		t.Errorf("a pipe gets %q", p.stdout.String())
	}
	for i, line := range strings.Split(strings.TrimSpace(shown.String()), "\n") {
		var got, want any
		if json.Unmarshal([]byte(line), &got) != nil || json.Unmarshal([]byte(messages[i]), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("a terminal gets %q", line)
		}
	}
}
