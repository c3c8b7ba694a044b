// Command pictures draws terminal sessions as SVG: it runs real commands on a pseudo terminal of 80 columns and draws
// what they print, once on a light and once on a dark ground.
//
//	cd docs/pictures && go run .
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

const columns = 80

// A session is a list of commands, run one after another in a folder with a new store.
type session struct {
	name     string
	commands []string
}

var sessions = []session{
	{"terminal", []string{
		"ctxtool import testdata/claude-code/release-notes-*.jsonl testdata/chatgpt",
		"ctxtool ls",
		"ctxtool tree 8f98",
		"ctxtool show 8f98 --last 2",
	}},
}

func main() {
	log.SetFlags(0)
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("out", ".", "the folder of the pictures")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		log.Fatal("pictures: ", err)
	}
}

func run(root, out string) error {
	work, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(work, "ctxtool"), "./cmd/ctxtool")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building ctxtool: %w", err)
	}
	for _, s := range sessions {
		var screen bytes.Buffer
		for i, command := range s.commands {
			if i > 0 {
				screen.WriteString("\n")
			}
			fmt.Fprintf(&screen, "\x1b[32m$\x1b[0m \x1b[1m%s\x1b[0m\n", command)
			printed, err := perform(root, work, command)
			if err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
			screen.WriteString(printed)
		}
		for _, t := range themes {
			svg, err := draw(screen.String(), t)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, s.name+"-"+t.name+".svg"), svg, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// perform runs a command on a pseudo terminal and returns what it printed.
func perform(root, work, command string) (string, error) {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(),
		"PATH="+work+":"+os.Getenv("PATH"), "CTXDIR_STORE="+filepath.Join(work, "store"), "CTXDIR_NO_GC=1",
		"PAGER=cat", "TERM=xterm-256color", "TZ=UTC")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 60, Cols: columns})
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	printed, err := io.ReadAll(terminal)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO is the end of a pseudo terminal whose command has ended
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%w: %s", err, printed)
	}
	text := strings.ReplaceAll(string(printed), "\r\n", "\n")
	return strings.ReplaceAll(text, work+string(filepath.Separator), ""), nil
}
