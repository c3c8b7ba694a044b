package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// server is a process of ctxtool serve.
type server struct {
	cmd     *exec.Cmd
	address string // with the token
}

var printed = regexp.MustCompile(`http://\S+`)

func start(ctx context.Context, tool, store string) (*server, error) {
	cmd := exec.CommandContext(ctx, tool, "--store", store, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Dir(store))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address := printed.FindString(strings.TrimSpace(line))
	if address == "" {
		return nil, errors.Join(errors.New("the server did not print its address"), err, cmd.Process.Kill(), cmd.Wait())
	}
	return &server{cmd, address}, nil
}

func (s *server) close() error {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	_ = s.cmd.Wait() // ended by the signal
	return nil
}
