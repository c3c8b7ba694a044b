package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
)

const token = "bench-0123456789abcdef0123456789ab"

// marker is the variable that makes a process a server.
const marker = "CTXDIR_BENCH_SERVE"

// served serves the store that a parent process names, until that ends. It returns false in other processes.
func served() bool {
	dir := os.Getenv(marker)
	if dir == "" {
		return false
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serve(dir string) error {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	server, err := api.New(s, api.Options{Token: token})
	if err != nil {
		return err
	}
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is that of the parent
		stop()
	}()
	return errors.Join(server.Serve(ctx, l, nil), s.Close())
}

// server is a server process.
type server struct {
	cmd  *exec.Cmd
	in   io.Closer
	base string
}

func start(dir string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), marker+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	return &server{cmd, in, "http://" + strings.TrimSpace(line)}, nil
}

func (s *server) close() error { return errors.Join(s.in.Close(), s.cmd.Wait()) }

// do sends a request and reads the whole answer.
func (s *server) do(method, path, body string) ([]byte, error) {
	r, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, b)
	}
	return b, err
}

// memory is the memory of the server process, in bytes: now, and at most since the last reset.
func (s *server) memory() (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) != 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			now = n << 10
		case "VmHWM":
			peak = n << 10
		}
	}
	return now, peak, nil
}

// resetPeak lets the peak begin anew.
func (s *server) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0)
}
