package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
)

// quiet measures what a server costs that nobody asks anything, beside an import that follows.
func quiet(ctx context.Context, o options) (rows []row, err error) {
	if o.idle == 0 {
		return nil, nil
	}
	dir := filepath.Join(o.dir, "quiet")
	s, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	for range 1000 {
		c, err := s.Create(ctx, ctxdir.Metadata{})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if err := c.Close(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	tool := filepath.Join(dir, "ctxtool")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/ctxdir/ctxdir/cmd/ctxtool").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	histories := filepath.Join(dir, "histories")
	if err := os.MkdirAll(histories, 0o700); err != nil {
		return nil, err
	}
	environment := append(os.Environ(), "CTXDIR_STORE="+filepath.Join(dir, "store"), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	server, importer := exec.Command(tool, "--json", "serve", "--listen", "127.0.0.1:0"), exec.Command(tool, "import", "--follow", histories)
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	for _, cmd := range []*exec.Cmd{server, importer} {
		cmd.Env = environment
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Second) // both have begun
	before, err := costOf(server.Process.Pid)
	if err != nil {
		return nil, err
	}
	time.Sleep(o.idle)
	after, err := costOf(server.Process.Pid)
	if err != nil {
		return nil, err
	}
	cpu, read := after.cpu-before.cpu, after.read-before.read
	return []row{{
		fmt.Sprintf("idle for %s, 1,000 contexts, beside import --follow", o.idle), "≤ 1 s of processor time, ≤ 1 MiB read",
		fmt.Sprintf("%s, %s", cpu, mebibytes(read)), cpu <= time.Second && read <= 1<<20,
	}}, nil
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
