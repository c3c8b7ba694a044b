package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands returns a command and all commands below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		all = append(all, commands(c)...)
	}
	return all
}

func allCommands() []*cobra.Command {
	_, root := newRoot(strings.NewReader(""), &strings.Builder{}, &strings.Builder{}, func(string) string { return "" })
	return commands(root)
}

// TestHelpIsComplete checks that the help of every command has all its parts.
func TestHelpIsComplete(t *testing.T) {
	for _, cmd := range allCommands() {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: what it does in short: %q", path, cmd.Short)
		}
		if !strings.Contains(cmd.Example, "ctxtool ") {
			t.Errorf("%s: no example", path)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: example %q is not indented", path, line)
			}
			if cmd.HasParent() && !strings.Contains(line, "ctxtool ") {
				t.Errorf("%s: example %q does not run it", path, line)
			}
		}
		if s := cmd.Annotations[exitsKey]; !strings.HasPrefix(s, "0 ok\n1 failed\n2 wrong usage") {
			t.Errorf("%s: exit status: %q", path, s)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no help", path, f.Name)
			}
		})
		if cmd.HasParent() && !cmd.Parent().HasParent() && cmd.GroupID == "" &&
			!strings.Contains(" completion help man version ", " "+cmd.Name()+" ") {
			t.Errorf("%s: in no group", path)
		}
	}
}

// TestHelpFits: the help fits a narrow terminal, except examples and names.
func TestHelpFits(t *testing.T) {
	for _, cmd := range allCommands() {
		a, _ := newRoot(strings.NewReader(""), &screen{columns: 80, rows: 24}, &strings.Builder{}, func(string) string { return "" })
		help := a.help(cmd)
		for _, section := range []string{"\nUsage:\n", "\nExamples:\n", "\nExit status:\n"} {
			if !strings.Contains(help, section) {
				t.Errorf("%s: no %q", cmd.CommandPath(), section)
			}
		}
		text, rest, _ := strings.Cut(help, "\nUsage:\n")
		_, flags, _ := strings.Cut(rest, "\nFlags:\n")
		for _, line := range strings.Split(text+flags, "\n") {
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, "\t") {
				t.Errorf("%s: %q", cmd.CommandPath(), line)
			}
		}
	}
}

// The things that examples name.
const (
	exampleID      = "7c2f0a51-6d3e-4b8a-9f10-2a6b1c4d5e6f"
	exampleMessage = "0197f3c2-7a1e-7c55-9a3e-5f2f3c0d9b11"
	exampleItem    = "0197f3c2-9b40-7d11-8c21-77aa5f2f3c0d"
	migratedID     = "b81d2c3a-1e4f-4a5b-8c6d-0f1e2d3c4b5a"
)

// prepareExamples creates a home for every example: a store, a working folder, and stand-ins for other programs.
func prepareExamples(t *testing.T) (home string) {
	home = t.TempDir()
	files := map[string]string{
		"work/screenshot.png":        "\x89PNG\r\n\x1a\n",
		"work/prompt.md":             "You help.",
		"work/store.go":              strings.Repeat("line\n", 30),
		"work/go.mod":                "module example.org/store\n",
		"work/cmd/main.go":           strings.Repeat("line\n", 7),
		"bin/agent":                  "#!/bin/sh\necho '{\"role\":\"assistant\",\"content\":\"An answer.\"}'\n",
		"bin/git":                    "#!/bin/sh\nshift\nls -d -- \"$@\"\n",
		".zfunc/x":                   "",
		".config/fish/completions/x": "",
		".local/share/bash-completion/completions/x": "",
		".old-tool/conversations/" + migratedID + ".json": `{"id": "` + migratedID + `", "parent_id": null, "config": {}, ` +
			`"message_pool": {}, "branches": {"main": {"name": "main", ` +
			`"message_ids": [], "system_prompt": null, "user_prompt": null}}, "active_branch_name": "main", "current_state": "idle"}`,
	}
	for from, to := range map[string]string{
		"chatgpt/conversations.json":             "work/conversations.json",
		"claude-code/simple.jsonl":               ".claude/projects/walk/simple.jsonl",
		"../importer/testdata/codex/child.jsonl": ".codex/sessions/2026/03/02/rollout.jsonl",
	} {
		b, err := os.ReadFile(filepath.Join("../../testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		files[to] = string(b)
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := &inProcess{store: filepath.Join(home, ".local/share/ctxdir")}
	for _, step := range []struct {
		stdin string
		args  []string
	}{
		{"", []string{"new", "--id", exampleID, "--title", "A walk"}},
		{strings.Repeat(`{"role":"user","content":"text"}`+"\n", 20), []string{"append", exampleID, "--jsonl"}},
		{
			`{"role":"assistant","content":[{"type":"text","text":"The timeout is in lock.go."},` +
				`{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"/src/lock.go"}}]}` + "\n",
			[]string{"append", exampleID, "--jsonl"},
		},
		{"", []string{"branch", "fork", exampleID, "alt"}},
		{"", []string{"branch", "fork", exampleID, "retry"}},
		{"", []string{"branch", "rm", exampleID, "retry"}},
		{"", []string{"append", exampleID, "--id", exampleMessage, "to be named"}},
		{"", []string{"moment", "add", exampleID, "Tests start a real database.", "--type", "pattern"}},
		{"", []string{"migrate", filepath.Join(home, ".old-tool/conversations", migratedID+".json")}},
		{"", []string{"backup", "--to", filepath.Join(home, "backup")}},
		{"", []string{"new", "--id", exampleItem}},
		{"", []string{"rm", exampleItem}},
	} {
		if code := p.run(t.Context(), step.stdin, step.args...); code != 0 {
			t.Fatalf("%q: %s", step.args, p.stderr.String())
		}
	}
	// The item of the examples gets their id.
	items, err := filepath.Glob(filepath.Join(p.store, "trash", "*-*"))
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	if err := os.Rename(items[0], filepath.Join(p.store, "trash", exampleItem)); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestExamples runs the examples of every command, each in a separate home.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("examples are for a shell of Unix, which this system may not have")
	}
	prepared := prepareExamples(t)
	for _, cmd := range allCommands() {
		home := filepath.Join(t.TempDir(), "home")
		if err := os.CopyFS(home, os.DirFS(prepared)); err != nil {
			t.Fatal(err)
		}
		shell := exec.Command("sh", "-e", "-c", cmd.Example)
		shell.Dir = filepath.Join(home, "work")
		shell.Env = append(
			os.Environ(),
			"HOME="+home,
			"PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"),
			"CTXDIR_STORE=",
			"XDG_DATA_HOME=",
		)
		var out []byte
		var err error
		if cmd.Name() == "serve" {
			out, err = serves(shell)
		} else {
			out, err = shell.CombinedOutput()
		}
		if cmd.Name() == "doctor" && shell.ProcessState.ExitCode() == exitProblems {
			err = nil // nobody knows on what file system tests run
		}
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", cmd.CommandPath(), err, cmd.Example, out)
		}
	}
}

// serves runs the one example of a command that serves until it is interrupted.
func serves(shell *exec.Cmd) (out []byte, err error) {
	shell.Args[len(shell.Args)-1] = "exec " + strings.TrimSpace(shell.Args[len(shell.Args)-1]) // the signal is for the command
	stdout, err := shell.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := shell.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(stdout).ReadBytes('\n')
	err = errors.Join(shell.Process.Signal(os.Interrupt), shell.Wait())
	if shell.ProcessState.ExitCode() == exitInterrupted && bytes.HasPrefix(line, []byte("serving at http://127.0.0.1:")) {
		err = nil
	}
	return line, err
}

// TestManuals: each command has a complete page, in which no text looks like a macro.
func TestManuals(t *testing.T) {
	p := newInProcess(t)
	dir := filepath.Join(t.TempDir(), "man1")
	if code := p.run(t.Context(), "", "man", dir); code != 0 {
		t.Fatal(p.stderr.String())
	}
	known := map[string]bool{"TH": true, "SH": true, "PP": true, "TP": true, "B": true, "BR": true, "BI": true, "EX": true, "EE": true}
	for _, cmd := range allCommands() {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		b, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(b)
		title := ".TH \"" + escape(strings.ToUpper(name)) + "\" \"1\""
		for _, wanted := range []string{title, ".SH \"SYNOPSIS\"", ".SH \"EXIT STATUS\"", ".SH \"EXAMPLES\"", escape(cmd.Short)} {
			if !strings.Contains(page, wanted) {
				t.Errorf("%s: no %s", name, wanted)
			}
		}
		for line := range strings.Lines(page) {
			macro, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, ".")), " ")
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !known[macro] {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	if code := p.run(t.Context(), "", "man"); code != 0 || !strings.HasPrefix(p.stdout.String(), `.TH "CTXTOOL" "1"`) {
		t.Errorf("%d: %.100s", code, p.stdout.String())
	}
}

func TestRoff(t *testing.T) {
	tests := []struct {
		name  string
		write func(p *roff)
		want  string
	}{
		{"hyphens and backslashes", func(p *roff) { p.text(`--last \n`) }, "\\-\\-last \\en\n"},
		{"no macros", func(p *roff) { p.text(".TH\n'br\n a") }, "\\&.TH\n\\&'br\n a\n"},
		{"quotes in arguments", func(p *roff) { p.macro("B", `say "so"`, "[A…]") }, ".B \"say \\(dqso\\(dq\" \"[A\\|.\\|.\\|.]\"\n"},
		{"paragraphs", func(p *roff) { p.paragraphs("a\nb\n\n  c\n  d\n\ne") }, "a b\n.PP\n.EX\n  c\n  d\n.EE\n.PP\ne\n"},
	}
	for _, test := range tests {
		p := &roff{}
		if test.write(p); p.String() != test.want {
			t.Errorf("%s: %q, wanted %q", test.name, p.String(), test.want)
		}
	}
}
