package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// sessions is how many sessions the idle store has.
const sessions = 1000

// quiet measures what a server costs that nobody asks anything, beside an import that follows the files of as many
// sessions as the store has contexts.
func quiet(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "quiet")
	histories := filepath.Join(dir, "histories")
	if err := os.MkdirAll(histories, 0o700); err != nil {
		return nil, err
	}
	for range sessions {
		if err := writeSession(histories); err != nil {
			return nil, err
		}
	}
	tool := filepath.Join(dir, "ctxtool")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", tool, "./cmd/ctxtool")
	build.Dir = ".." // the root of the repository
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	environment := append(os.Environ(), "CTXDIR_STORE="+filepath.Join(dir, "store"), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	importer, err := startTool(environment, sessions+1, tool, "--json", "import", "--follow", histories) // "imported" of each, and "ready"
	if err != nil {
		return nil, err
	}
	defer importer.end()
	server, err := startTool(environment, 1, tool, "--json", "serve", "--listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer server.end()
	time.Sleep(5 * time.Second) // both have begun
	idle := []*process{server, importer}
	var before [2]cost
	for i, p := range idle {
		if before[i], err = costOf(p.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	time.Sleep(o.idle)
	for i, p := range idle {
		after, err := costOf(p.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		cpu, read := after.cpu-before[i].cpu, after.read-before[i].read
		rows = append(rows, row{
			fmt.Sprintf("%s, idle for %s, %d contexts", p.cmd.Args[2], o.idle, sessions), "≤ 1 s of processor time, ≤ 1 MiB read",
			fmt.Sprintf("%s, %s", cpu, mebibytes(read)), cpu <= time.Second && read <= 1<<20,
		})
	}
	return rows, nil
}

// writeSession writes a session as Claude Code does: one prompt and its answer.
func writeSession(dir string) error {
	session, prompt, answer := uuid.NewString(), uuid.NewString(), uuid.NewString()
	const format = `{"parentUuid":null,"sessionId":"%[1]s","cwd":"/work","version":"2.1.31","type":"user",` +
		`"message":{"role":"user","content":"Is %[2]s there?"},"uuid":"%[2]s","timestamp":"2026-04-15T07:58:12.004Z"}` + "\n" +
		`{"parentUuid":"%[2]s","sessionId":"%[1]s","cwd":"/work","version":"2.1.31","type":"assistant",` +
		`"message":{"role":"assistant","content":[{"type":"text","text":"It is."}]},"uuid":"%[3]s",` +
		`"timestamp":"2026-04-15T07:58:14.350Z"}` + "\n"
	return os.WriteFile(filepath.Join(dir, session+".jsonl"), fmt.Appendf(nil, format, session, prompt, answer), 0o600)
}

// process is a running ctxtool whose first lines were read.
type process struct{ cmd *exec.Cmd }

func startTool(environment []string, lines int, name string, args ...string) (*process, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = environment
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd}
	r := bufio.NewReader(out)
	for range lines {
		if _, err := r.ReadString('\n'); err != nil {
			p.end()
			return nil, err
		}
	}
	return p, nil
}

func (p *process) end() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// cost is what a process used.
type cost struct {
	cpu  time.Duration
	read int64 // bytes, of files and pipes
}

func costOf(pid int) (c cost, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return c, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return c, err
		}
		c.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return c, err
	}
	_, text, _ := strings.Cut(string(io), "rchar: ")
	text, _, _ = strings.Cut(text, "\n")
	c.read, err = strconv.ParseInt(text, 10, 64)
	return c, err
}
