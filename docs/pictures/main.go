// Command pictures records a session in a terminal, in which an agent is killed: it runs real commands on a pseudo terminal of
// 80 columns. session.cast has the recording, in the format of asciinema; session-light.svg and session-dark.svg play it.
//
//	cd docs/pictures && go run .
package main

import (
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
	defer func() { _ = os.RemoveAll(work) }()
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(work, "ctxtool"), "./cmd/ctxtool")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building ctxtool: %w", err)
	}
	return play(root, work, out)
}

// play records the session, and draws it.
func play(root, work, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	r, err := record(root, work)
	if err != nil {
		return err
	}
	cast, err := r.asciicast()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "session.cast"), cast, 0o644); err != nil {
		return err
	}
	events, err := readCast(cast)
	if err != nil {
		return err
	}
	for _, t := range themes {
		svg, err := animate(events, t)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, "session-"+t.name+".svg"), svg, 0o644); err != nil {
			return err
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
	defer func() { _ = terminal.Close() }()
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
