package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A scene of the recorded session: commands on a screen of their own.
type scene []string

// scenes are run in one folder, with the agent of docs/tutorials/framework.md as ./walk.
var scenes = []scene{
	{"timeout -s KILL 2 ./walk", "./walk", "ctxtool check"},
	{
		"ctxtool branch fork saturday ferry --at 3",
		`ctxtool append saturday --branch ferry --role assistant "Take the ferry."`,
		"ctxtool tree saturday",
		"ctxtool show saturday --branch ferry --last 2",
	},
	{"ctxtool import claude-code/release-notes-*.jsonl", "ctxtool tree 8f98", "ctxtool search harbour --limit 2"},
}

// Seconds of the recording. They are not those of the run, so that it is the same each time.
const (
	perKey, perLine, perStep = 0.035, 0.06, 0.2
	beforeOutput, afterward  = 0.25, 1.2
	afterScene               = 3.5
	rows                     = 24
)

const clear = "\x1b[2J\x1b[H"

// An output is what a terminal got, and when. It is an event of an asciicast.
type output struct {
	at   float64
	text string
}

type recorder struct {
	events []output
	now    float64
	ids    map[string]string
}

func (r *recorder) put(text string, then float64) {
	r.events = append(r.events, output{r.now, text})
	r.now += then
}

// record runs the scenes, and returns what was on the screen.
func record(root, work string) (*recorder, error) {
	if err := buildAgent(root, work); err != nil {
		return nil, err
	}
	if err := os.Symlink(filepath.Join(root, "testdata/claude-code"), filepath.Join(work, "claude-code")); err != nil {
		return nil, err
	}
	r := &recorder{ids: map[string]string{}}
	for i, s := range scenes {
		if i > 0 {
			r.put(clear, 0)
		}
		for j, command := range s {
			if j > 0 {
				r.put("\r\n", 0)
			}
			if err := r.run(work, command); err != nil {
				return nil, err
			}
			r.now += afterward
		}
		r.now += afterScene
	}
	return r, nil
}

// buildAgent makes ./walk of the program in the tutorial.
func buildAgent(root, work string) error {
	page, err := os.ReadFile(filepath.Join(root, "docs/tutorials/framework.md"))
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(page), "cat > main.go <<'END'\n")
	program, _, ends := strings.Cut(rest, "\nEND\n")
	if !found || !ends {
		return fmt.Errorf("docs/tutorials/framework.md has no main.go")
	}
	dir := filepath.Join(work, "source")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program+"\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "init", "example.org/walk"}, {"work", "init", ".", root}, {"build", "-o", "../walk"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

var (
	ids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`) // made in this run
	killed = regexp.MustCompile(`bash: line \d+: +\d+ (Killed).*`)
)

// run types a command and shows what it prints. Ids and times of this run become others that are always the same.
func (r *recorder) run(work, command string) error {
	r.put("\x1b[32m$\x1b[0m \x1b[1m", 0.4)
	for _, key := range command {
		r.put(string(key), perKey)
	}
	r.put("\x1b[0m\r\n", beforeOutput)
	text, err := perform(work, work, command+"; exit 0")
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	text = killed.ReplaceAllString(text, "$1") // an interactive shell says no more
	today := regexp.MustCompile(time.Now().UTC().Format("2006-01-02") + ` \d\d:\d\d(:\d\d)?`)
	text = today.ReplaceAllStringFunc(text, func(now string) string { return "2026-11-28 10:00:00"[:len(now)] })
	text = ids.ReplaceAllStringFunc(text, func(id string) string {
		if r.ids[id] == "" {
			r.ids[id] = fmt.Sprintf("01a1ff6e-29%02d-7de6-8185-f166b8bcbe20", len(r.ids)+1)
		}
		return r.ids[id]
	})
	then := perLine
	if strings.HasSuffix(command, "./walk") {
		then = perStep
	}
	for line := range strings.Lines(text) {
		r.put(strings.TrimSuffix(line, "\n")+"\r\n", then)
	}
	return nil
}

// asciicast is the recording in version 2 of that format.
func (r *recorder) asciicast() ([]byte, error) {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(map[string]any{"version": 2, "width": columns, "height": rows, "title": "ctxdir"}); err != nil {
		return nil, err
	}
	for _, e := range r.events {
		if err := w.Encode([]any{float64(int(e.at*1000+0.5)) / 1000, "o", e.text}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// readCast reads an asciicast, as far as this command writes them.
func readCast(b []byte) (events []output, err error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			continue
		}
		var e []any
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		events = append(events, output{e[0].(float64), e[2].(string)})
	}
	return events, lines.Err()
}
