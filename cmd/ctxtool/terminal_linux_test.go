package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// console is a pseudo-terminal that a process runs on.
type console struct {
	t       *testing.T
	master  *os.File
	slave   *os.File
	mu      sync.Mutex
	changed *sync.Cond
	shown   bytes.Buffer
	closed  bool
}

// newConsole makes one of 80 columns and 24 rows, and reads all that is written there.
func newConsole(t *testing.T) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Skipf("no terminal can be set up here: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be opened here: %v", err)
	}
	// A terminal throws away what waits to be shown when Ctrl-C is typed, also what is written for that.
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		settings.Lflag |= unix.NOFLSH
		err = unix.IoctlSetTermios(fd, unix.TCSETS, settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: master, slave: slave}
	c.changed = sync.NewCond(&c.mu)
	go c.read()
	t.Cleanup(func() { master.Close(); slave.Close() })
	return c
}

func (c *console) read() {
	b := make([]byte, 4096)
	for {
		n, err := c.master.Read(b)
		c.mu.Lock()
		c.shown.Write(b[:n])
		c.closed = err != nil
		c.changed.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// start runs the command with the console as its terminal.
func (c *console) start(store string, env []string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command("ctxtool", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.slave, c.slave, c.slave
	cmd.Env = append(os.Environ(), "CTXDIR_STORE="+store, "CTXDIR_NO_GC=1", "TERM=xterm", "COLUMNS=", "PAGER=", "LESS=", "NO_COLOR=", "TZ=UTC")
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd
}

// waitFor waits until a text is on the screen.
func (c *console) waitFor(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !strings.Contains(c.shown.String(), text) && !c.closed {
		c.changed.Wait()
	}
}

// end waits for the process, and returns its exit status and all that it wrote.
func (c *console) end(cmd *exec.Cmd) (status int, shown string) {
	c.t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	c.slave.Close() // the last one that could write, so the reader comes to an end
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		c.changed.Wait()
	}
	return cmd.ProcessState.ExitCode(), strings.ReplaceAll(c.shown.String(), "\r\n", "\n")
}

func TestPager(t *testing.T) {
	p := newInProcess(t)
	long, short, lacks := p.new(t), p.new(t), p.new(t)
	for id, n := range map[string]int{long: 1500, short: 2, lacks: 30} {
		if code := p.run(t.Context(), strings.Repeat(`{"role":"user","content":"text"}`+"\n", n), "append", id, "--jsonl"); code != 0 {
			t.Fatal(p.stderr.String())
		}
	}
	if code := p.run(t.Context(), "", "append", lacks, "not for long"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	gone := strings.TrimSpace(p.stdout.String()) + ".json"
	if code := p.run(t.Context(), "", "append", lacks, "behind it"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	p.lose(t, lacks, "messages/*/"+gone)
	tests := []struct {
		name   string
		env    []string
		args   []string
		status int
		paged  bool
	}{
		{"long", nil, []string{"show", long}, 0, true},
		{"with an argument", []string{"PAGER=sed s/^/PAGED/"}, []string{"show", long}, 0, true},
		{"short", nil, []string{"show", short}, 0, false},
		{"a table", nil, []string{"ls"}, 0, false},
		{"asked not to", nil, []string{"show", long, "--last", "50", "--no-pager"}, 0, false},
		{"records", nil, []string{"show", long, "--last", "50", "--json"}, 0, false},
		{"dumb terminal", []string{"TERM=dumb"}, []string{"show", long, "--last", "50"}, 0, false},
		{"no pager wanted", []string{"PAGER=cat"}, []string{"show", long, "--last", "50"}, 0, false},
		{"no such pager", []string{"PAGER=does-not-exist"}, []string{"show", long, "--last", "50"}, 0, false},
		{"left early", []string{"PAGER=sed s/^/PAGED/;3q"}, []string{"show", long}, 0, true},
		{"left at once with an error", []string{"PAGER=sed 's/^/PAGED/;q7'"}, []string{"show", long}, 0, true},
		{"status of the verb", nil, []string{"show", lacks}, 3, true},
	}
	for _, test := range tests {
		c := newConsole(t)
		cmd := c.start(p.store, append([]string{"PAGER=sed 's/^/PAGED/'"}, test.env...), test.args...)
		status, shown := c.end(cmd)
		if status != test.status || strings.Contains(shown, "PAGED") != test.paged || shown == "" {
			t.Errorf("%s: status %d:\n%.1000s", test.name, status, shown)
		}
		if early := strings.Contains(test.name, "left"); early && strings.Contains(shown, "ctxtool:") {
			t.Errorf("%s: something was said:\n%.1000s", test.name, shown)
		}
	}
}

// TestCtrlC interrupts reading a text: the terminal is restored, and the line with the ^C is cleared.
func TestCtrlC(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	c := newConsole(t)
	before, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.start(p.store, nil, "append", id)
	c.waitFor("Ctrl-D")
	if _, err := io.WriteString(c.master, "\x03"); err != nil {
		t.Fatal(err)
	}
	after, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal's settings changed: %v, %+v, were %+v", err, after, before)
	}
	status, shown := c.end(cmd)
	want := "^C\r\x1b[K" + term.Painter(true).Paint(term.BoldRed, "ctxtool:") + " interrupted\n"
	if status != exitInterrupted || !strings.HasSuffix(shown, want) {
		t.Errorf("status %d: %q", status, shown)
	}
}

// TestCtrlCInPager: Ctrl-C belongs to the pager, and the command ends with it.
func TestCtrlCInPager(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	if code := p.run(t.Context(), strings.Repeat(`{"role":"user","content":"text"}`+"\n", 50), "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	c := newConsole(t)
	cmd := c.start(p.store, []string{`PAGER=trap "" INT; cat; echo ready; read x </dev/tty; echo left`}, "show", id)
	c.waitFor("ready")
	proc, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(proc), "SigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	if ignored, err := strconv.ParseUint(mask, 16, 64); err != nil || ignored&(1<<(syscall.SIGINT-1)) == 0 {
		t.Errorf("the command would be interrupted: %q ignored, %v", mask, err)
	}
	for _, typed := range []string{"\x03", "\n"} {
		if _, err := io.WriteString(c.master, typed); err != nil {
			t.Fatal(err)
		}
	}
	if status, shown := c.end(cmd); status != 0 || !strings.Contains(shown, "left") {
		t.Errorf("status %d: %q", status, shown)
	}
}

// TestConsoleInjection: a message does not control a real terminal, even through a pager.
func TestConsoleInjection(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	if code := p.run(t.Context(), strings.Repeat(rude+"\n", 50), "append", id); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for _, args := range [][]string{
		{"export", id, "--format", "markdown"}, {"export", id}, {"show", id}, {"--json", "show", id},
		{"watch", id, "--tail", "1", "--no-follow"},
	} {
		c := newConsole(t)
		_, shown := c.end(c.start(p.store, []string{"PAGER=head -n 1000"}, args...))
		checkShown(t, args[0], shown)
		if !strings.Contains(shown, "title") {
			t.Errorf("%v: %q", args, shown)
		}
	}
}

// TestAsksForTheMode: only who makes a store on a terminal is asked for its storage mode, and only a yes lets a server have it.
func TestAsksForTheMode(t *testing.T) {
	for _, test := range []struct{ typed, mode string }{{"\n", "local"}, {"n\n", "local"}, {"y\n", "server"}, {"", ""}} {
		dir := filepath.Join(t.TempDir(), "store")
		c := newConsole(t)
		args := []string{"init"}
		if test.typed == "" {
			args = append(args, "--json")
		}
		cmd := c.start(dir, nil, args...)
		if test.typed != "" {
			c.waitFor("May a server hold these conversations, too?")
			c.waitFor("[y/N] ")
			if _, err := io.WriteString(c.master, test.typed); err != nil {
				t.Fatal(err)
			}
		}
		if code, shown := c.end(cmd); code != 0 || test.typed == "" && strings.Contains(shown, "[y/N]") {
			t.Errorf("%q: %d: %s", test.typed, code, shown)
		}
		s, err := ctxdir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if set, err := s.Settings(); err != nil || set.StorageMode != test.mode {
			t.Errorf("%q: mode %q, %v", test.typed, set.StorageMode, err)
		}
		c = newConsole(t)
		if code, shown := c.end(c.start(dir, nil, "init")); code != 0 || strings.Contains(shown, "server") {
			t.Errorf("an existing store: %d: %s", code, shown)
		}
		s.Close()
	}
}

// TestAsksBeforeRemoving: on a terminal, verbs that remove something for good ask first, unless --yes is given. Only what
// is typed after the question answers it. What the trash can restore goes without a question.
func TestAsksBeforeRemoving(t *testing.T) {
	p := newInProcess(t)
	id, gone := p.new(t), p.new(t)
	must := func(args ...string) {
		t.Helper()
		if code := p.run(t.Context(), "", args...); code != 0 {
			t.Fatalf("%v: %s", args, p.stderr.String())
		}
	}
	for range 3 {
		must("append", id, "text")
	}
	must("rm", p.new(t))
	must("branch", "fork", id, "alt")
	must("branch", "fork", id, "gone")
	must("branch", "rm", id, "gone")
	tests := []struct {
		question string
		args     []string
	}{
		{"Erase 2 messages of context ", []string{"erase", id, "0", "1", "--shared"}},
		{"Purge 3 items for good (", []string{"gc", "--grace", "0s"}},
		{"from the trash for good (", []string{"trash", "empty"}},
	}
	// answer runs the command, with text that was typed before it began, and types an answer once it is asked for.
	answer := func(early, typed string, args ...string) (code int, shown string) {
		t.Helper()
		c := newConsole(t)
		if _, err := io.WriteString(c.master, early); err != nil {
			t.Fatal(err)
		}
		cmd := c.start(p.store, nil, args...)
		if typed != "" {
			c.waitFor("[y/N] ")
			if _, err := io.WriteString(c.master, typed); err != nil {
				t.Fatal(err)
			}
		}
		return c.end(cmd)
	}
	view := func() (text string) {
		for _, args := range [][]string{{"ls"}, {"trash", "ls"}, {"branch", "ls", id}, {"show", id}} {
			must(append(args, "--json")...)
			text += p.stdout.String()
		}
		return text
	}
	for _, test := range tests {
		before := view()
		for _, typed := range []string{"n\n", "\n", "yes or no\n", "\x04"} {
			code, shown := answer("y\n", typed, test.args...)
			if code != exitFailed || !strings.Contains(shown, test.question) || !strings.Contains(shown, "[y/N] ") ||
				!strings.Contains(shown, "nothing was changed") {
				t.Fatalf("%v, answer %q: %d: %s", test.args, typed, code, shown)
			}
		}
		if code, shown := answer("", "", append(test.args, "--dry-run")...); code != 0 || strings.Contains(shown, "[y/N]") ||
			!strings.Contains(shown, "would ") {
			t.Fatalf("%v, dry run: %d: %s", test.args, code, shown)
		}
		if d := cmp.Diff(before, view()); d != "" {
			t.Fatalf("%v changed something after a no: %s", test.args, d)
		}
		if code, shown := answer("n\n", "y\n", test.args...); code != 0 || !strings.Contains(shown, test.question) {
			t.Fatalf("%v, yes: %d: %s", test.args, code, shown)
		}
		must("rm", p.new(t)) // something for the next one to purge
	}
	for _, args := range [][]string{
		{"trash", "empty", "--yes"}, {"trash", "empty"}, {"gc"}, {"branch", "rewind", id, "--branch", "alt", "--to", "1"},
		{"branch", "rm", id, "alt"}, {"rm", gone}, {"rm", p.new(t), "--yes"}, {"gc", "-y", "--grace", "0s"},
	} {
		if code, shown := answer("", "", args...); code != 0 || strings.Contains(shown, "[y/N]") {
			t.Errorf("%v: %d: %s", args, code, shown)
		}
	}
	must("show", id)
}
