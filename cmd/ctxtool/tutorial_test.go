package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const tutorial = "../../docs/TUTORIAL.md"

// step is a command of the tutorial and what it shows. An empty answer is not compared.
type step struct {
	line    int
	command string
	input   string // of a here-document
	answer  string
}

// blocks returns the fenced blocks of a language in a Markdown file, and the line each begins on.
func blocks(t *testing.T, path, language string) (texts []string, lines []int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inside, ours := false, false
	for i, line := range strings.Split(string(b), "\n") {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && !inside:
			inside, ours = true, fence == language
			if ours {
				texts, lines = append(texts, ""), append(lines, i+2)
			}
		case is:
			inside = false
		case inside && ours:
			texts[len(texts)-1] += line + "\n"
		}
	}
	if inside {
		t.Fatalf("%s ends in a block", path)
	}
	return texts, lines
}

func readSteps(t *testing.T) (steps []*step) {
	texts, lines := blocks(t, tutorial, "console")
	for i, text := range texts {
		var last *step
		end := ""
		for j, line := range strings.SplitAfter(text, "\n") {
			command, is := strings.CutPrefix(line, "$ ")
			switch {
			case end != "" && strings.TrimSpace(line) == end:
				end = ""
			case end != "":
				last.input += line
			case is:
				last = &step{line: lines[i] + j, command: strings.TrimSpace(command)}
				steps = append(steps, last)
				if before, word, ok := strings.Cut(last.command, " <<"); ok {
					last.command, end = before, strings.Trim(word, "'")
				}
			case last == nil && line != "":
				t.Fatalf("%s:%d: an answer to nothing", tutorial, lines[i]+j)
			case last != nil:
				last.answer += line
			}
		}
	}
	return steps
}

// otherMachine is ssh to a machine whose home folder is a folder here.
const otherMachine = `#!/bin/sh
[ "$1" != -- ] || shift
shift
cd "$HOME/desk" && exec sh -c "$(echo "$*" | sed "s,/home/ada,$PWD,g")"
`

// TestTutorial runs every command of the tutorial, in order, and compares what it shows. Ids may be others, but the
// same ones in the same places; sizes and times may be others; "…" stands for anything. The one block of language sh
// installs what is tested here.
func TestTutorial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tutorial is for a shell of Unix")
	}
	install, _ := blocks(t, tutorial, "sh")
	if len(install) != 1 || install[0] != "go install github.com/ctxdir/ctxdir/cmd/ctxtool@latest\n" {
		t.Errorf("commands that are not run: %q", install)
	}
	r := &reader{steps: readSteps(t), ids: map[string]string{}, theirs: map[string]string{}}
	if len(r.steps) < 20 {
		t.Fatalf("%d commands found", len(r.steps))
	}
	var script strings.Builder
	for i, s := range r.steps {
		fmt.Fprintf(&script, "# line %d\nstep %d\n", s.line, i)
	}
	path := filepath.Join(t.TempDir(), "tutorial.txtar")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{path},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TZ", "UTC")
			e.Setenv("LC_ALL", "C")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("CTXDIR_HOST", "laptop")
			bin := filepath.Join(e.WorkDir, "bin")
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			err := os.MkdirAll(filepath.Join(e.WorkDir, "desk"), 0o700)
			if err == nil {
				err = os.Mkdir(bin, 0o700)
			}
			return errors.Join(err, os.WriteFile(filepath.Join(bin, "ssh"), []byte(otherMachine), 0o700))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"step": r.step},
	})
}

// reader is somebody who follows the tutorial.
type reader struct {
	steps  []*step
	ids    map[string]string // by the one in the tutorial
	theirs map[string]string // and the other way round
	status int               // of the last command
}

func (r *reader) step(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := r.steps[n]
	stdout, stderr := r.run(ts, s)
	if fails := n+1 < len(r.steps) && r.steps[n+1].command == "echo $?"; r.status != 0 && !fails {
		ts.Fatalf("%s: exit status %d: %s", s.command, r.status, stderr)
	}
	if s.answer != "" && !r.same(s.answer, stderr+stdout) && !r.same(s.answer, stdout+stderr) {
		ts.Fatalf("%s shows\n%s%swanted\n%s", s.command, stdout, stderr, s.answer)
	}
}

var assignment = regexp.MustCompile(`^(\w+)=\$\((.*)\)$`)

// run does what a shell would, as far as the tutorial needs one.
func (r *reader) run(ts *testscript.TestScript, s *step) (stdout, stderr string) {
	command, into := s.command, ""
	if a := assignment.FindStringSubmatch(command); a != nil {
		command, into = a[2], a[1]
	}
	command, file, redirected := strings.Cut(command, " > ")
	words := r.words(ts, command)
	r.status = 0
	switch words[0] {
	case "cd":
		ts.Check(ts.Chdir(words[1]))
	case "echo":
		stdout = strings.Join(words[1:], " ") + "\n"
	case "cat":
		if stdout = s.input; stdout == "" {
			stdout = ts.ReadFile(words[1])
		}
	default:
		stdout, stderr = r.exec(ts, words)
	}
	switch {
	case redirected:
		path := ts.MkAbs(r.words(ts, file)[0])
		ts.Check(os.WriteFile(path, []byte(stdout), 0o600))
		if s.input != "" {
			ts.Check(makeOld(path)) // people take longer than a test to import what they wrote
		}
		return "", stderr
	case into != "":
		ts.Setenv(into, strings.TrimSpace(stdout))
		return "", stderr
	}
	return stdout, stderr
}

func (r *reader) exec(ts *testscript.TestScript, words []string) (stdout, stderr string) {
	err := ts.Exec(words[0], words[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	return ts.ReadFile("stdout"), ts.ReadFile("stderr")
}

var uuids = regexp.MustCompile(`\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-)?[0-9a-f]{12}\b`)

// words takes a command apart: only double quotes keep words together. Ids are those the reader has.
func (r *reader) words(ts *testscript.TestScript, command string) (words []string) {
	command = os.Expand(command, func(name string) string {
		if name == "?" {
			return strconv.Itoa(r.status)
		}
		return ts.Getenv(name)
	})
	command = uuids.ReplaceAllStringFunc(command, func(id string) string {
		if mine := r.ids[id]; mine != "" {
			return mine
		}
		return id
	})
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// differing are the sizes and times of a run, and where columns are because of them.
var differing = regexp.MustCompile(`\b[0-9.]+ ([KM]i)?B\b|\b\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?\b|\bnow\b|\b\d+ \w+ ago\b|/\S*/tour/`)

func plainly(s string) string {
	s = differing.ReplaceAllString(s, "~")
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

// same compares what the tutorial shows with what is seen, and learns which id of the one is which of the other.
func (r *reader) same(shown, seen string) bool {
	pattern := regexp.QuoteMeta(uuids.ReplaceAllString(plainly(shown), "ID"))
	pattern = "^" + strings.ReplaceAll(pattern, "…", ".*") + "$"
	if !regexp.MustCompile(pattern).MatchString(uuids.ReplaceAllString(plainly(seen), "ID")) {
		return false
	}
	mine := uuids.FindAllString(seen, -1)
	for i, id := range uuids.FindAllString(shown, -1) {
		if r.ids[id] != "" && r.ids[id] != mine[i] || r.theirs[mine[i]] != "" && r.theirs[mine[i]] != id {
			return false
		}
		r.ids[id], r.theirs[mine[i]] = mine[i], id
	}
	return true
}
