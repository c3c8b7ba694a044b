package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ctxdir/ctxdir/internal/record"
)

// terminal is a writer to a terminal.
type terminal struct{ bytes.Buffer }

func (*terminal) Size() (columns, rows int, err error) { return 200, 50, nil }

// rude is what a stranger may write: escapes, a title, C1 in UTF-8, overrides, isolates, marks and separators.
const rude = "A\x1b[31mB\x1b]0;title\x07C\u009b31mD\u0085E\x7fF\r\u202eG\u2066H\u200fI\u061cJ\u2028K\u2029L"

// checkShown fails if control characters reached a terminal, except the styles of the command.
func checkShown(t *testing.T, what, got string) {
	t.Helper()
	for len(got) > 0 {
		if n, _ := styleAt([]byte(got)); n > 0 {
			got = got[n:]
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

// TestSanitiser: however the output is split, only styles control the terminal, and the text stays the same.
func TestSanitiser(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{
			"a",
			"é",
			"😀",
			"\n",
			"\t",
			"\x1b",
			"\x1b[1m",
			"\x1b[0m",
			"\x1b[8m",
			"\x1b[2J",
			"\x9b",
			"\u009b",
			"\u202e",
			"\u200d",
			"\u2028",
			"\xff",
			"\xf0\x9f",
			"\xe2\x80",
		})).Draw(r, "pieces")
		s := sanitiser{colours: rapid.Bool().Draw(r, "colours"), json: rapid.Bool().Draw(r, "json")}
		whole := strings.Join(pieces, "")
		at := s
		want := string(at.shown([]byte(whole)))
		got := ""
		for len(whole) > 0 {
			n := rapid.IntRange(1, len(whole)).Draw(r, "bytes")
			got, whole = got+string(s.shown([]byte(whole[:n]))), whole[n:]
		}
		if got != want {
			r.Fatalf("%q in pieces, %q at once", got, want)
		}
		checkShown(t, "shown", got)
		if (!s.colours || s.json) && strings.Contains(got, "\x1b") {
			r.Fatalf("%q", got)
		}
	})
}

// TestSafeNames: a file name from a message stays in its folder, is visible, and means no device.
func TestSafeNames(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.png": "a/b.png", `a\b.png`: "a/b.png", "../../etc/passwd": "etc/passwd", "-rf": "rf", "--": "",
		".bashrc": "bashrc", "a/.ssh/-x": "a/ssh/x", "...": "",
		"con": "_con", "NUL.txt": "_NUL.txt", "com1.tar.gz": "_com1.tar.gz", "COM¹": "_COM¹", "console": "console",
		"lpt1 .txt": "_lpt1 .txt", "a. . ": "a", "a:b|c?": "a_b_c_",
		"x\u202egnp.exe": "xgnp.exe", "x\u200by\ufeff": "xy", "x\x1b[31m\u009b": "x[31m", "x\u2028y\n": "xy", "\xff": "_", "": "", "/": "",
		strings.Repeat("é", 150) + ".png": strings.Repeat("é", 98) + ".png", strings.Repeat("x", 300): strings.Repeat("x", 200),
		strings.Repeat("d/", 50) + "f": strings.Repeat("d/", 8) + "f",
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q is called %q, wanted %q", name, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := safeName(
			rapid.OneOf(
				rapid.String(),
				rapid.StringMatching(`[-. /\\a:]{0,30}`),
				rapid.StringMatching(`(?i)(con|aux|lpt1|-|\.| )*(\.x)?`),
			).Draw(
				r,
				"name",
			),
		)
		if len(name) > (maxNameBytes+2)*(maxNameFolders+1) || name != "" && !filepath.IsLocal(name) {
			r.Fatalf("%q", name)
		}
		for part := range strings.SplitSeq(name, "/") {
			if name != "" &&
				(part == "" || strings.ContainsAny(part[:1], "-. ") || strings.ContainsAny(part[len(part)-1:], ". ") ||
					len(part) > maxNameBytes+1 || oneLine(part) != part ||
					deviceName.MatchString(part) || safePart(part) != part) {
				r.Fatalf("part %q of %q", part, name)
			}
		}
	})
}

// TestSaveUnderRudeNames: attached files get safe and distinct names below the folder, and replace no file.
func TestSaveUnderRudeNames(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	out := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(out, "link")); err != nil {
		t.Skip(err)
	}
	var lines []string
	for i, name := range []string{"-rf", ".profile", "a", "a/b", "A.png", "a.png", "a.png", "x\u202egnp.sh", "NUL", "../up", "\x1b[2J"} {
		data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0, byte(i)}, 500))
		lines = append(
			lines,
			string(
				record.Encode(
					map[string]any{
						"role": "user",
						"content": []any{
							map[string]any{
								"type":     "image",
								"filename": name,
								"source":   map[string]any{"type": "base64", "media_type": "image/png", "data": data},
							},
						},
					},
				),
			),
		)
	}
	if code := p.run(t.Context(), strings.Join(lines, "\n")+"\n", "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for range 2 {
		if code := p.run(t.Context(), "", "show", id, "--save-attachments", out); code != 0 {
			t.Fatal(p.stderr.String())
		}
	}
	var names []string
	err := filepath.WalkDir(out, func(at string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, at)
			if part := path.Base(filepath.ToSlash(at)); safePart(part) != part {
				t.Errorf("%q was written", at)
			}
		}
		return err
	})
	if err != nil || len(names) != 2*len(lines) {
		t.Errorf("%d files, %v: %q", len(names), err, names)
	}
	if left, _ := os.ReadDir(filepath.Dir(outside)); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
}
