package term

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// pager shows long results in the user's pager. It holds results back until they exceed the screen, and starts the
// program only then: short results stay on the screen, whatever the program is.
type pager struct {
	screen        *os.File
	command       []string
	env           []string
	columns, rows int
	failed        func(err error) // called if the program does not start; results go to the screen then

	held bytes.Buffer
	used int // rows of the screen that held needs
	cmd  *exec.Cmd
	in   io.WriteCloser
}

// pagerCommand parses $PAGER; nil is no pager.
func pagerCommand(pager string) []string {
	switch {
	case pager == "cat":
		return nil
	case strings.TrimSpace(pager) == "":
		return []string{"less", "-FRX"}
	case strings.ContainsAny(pager, "|&;<>()$`\\\"'*?[]#~=%"):
		return []string{"sh", "-c", pager}
	}
	return strings.Fields(pager)
}

// pagerEnv is the environment of a pager. Unless the user set them otherwise, less and lv show colours, and less keeps
// the screen.
func pagerEnv(env Env) []string {
	all := os.Environ()
	for _, v := range []struct{ key, value string }{{"LESS", "FRX"}, {"LV", "-c"}} {
		if env(v.key) == "" {
			all = append(all, v.key+"="+v.value)
		}
	}
	return all
}

func (p *pager) Write(b []byte) (int, error) {
	if p.in != nil {
		return p.pass(b)
	}
	p.held.Write(b)
	for line := range bytes.Lines(b) {
		p.used += 1 + len(line)/p.columns // never too few
	}
	if p.used < p.rows {
		return len(b), nil
	}
	if err := p.start(); err != nil {
		p.failed(err)
		p.in = p.screen
	}
	if _, err := p.pass(p.held.Bytes()); err != nil {
		return 0, err
	}
	p.held = bytes.Buffer{}
	return len(b), nil
}

// pass writes to the pager. Any error counts as a user who left it.
func (p *pager) pass(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if err != nil && p.cmd != nil {
		err = syscall.EPIPE
	}
	return n, err
}

func (p *pager) start() error {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = p.screen, os.Stderr, p.env
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in = cmd, in
	// Ctrl-C belongs to the pager now: if this process ended first, pager and shell would both read the terminal.
	signal.Ignore(os.Interrupt)
	return nil
}

// Close waits until the user leaves the pager. Its exit status says nothing about the results.
func (p *pager) Close() error {
	if p.cmd == nil {
		_, err := p.screen.Write(p.held.Bytes())
		return err
	}
	_ = p.in.Close()
	_ = p.cmd.Wait()
	return nil
}
