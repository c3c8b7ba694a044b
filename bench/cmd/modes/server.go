package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// server is a ctxserver with one user.
type server struct {
	command, dir, store, token, address string

	model *httptest.Server
	run   *exec.Cmd
}

// newServer builds the command, and makes the user. It does not run yet.
func newServer(ctx context.Context, dir string) (*server, error) {
	s := &server{command: filepath.Join(dir, "ctxserver"), dir: filepath.Join(dir, "data")}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.command, "./cmd/ctxserver")
	build.Dir = filepath.Join("..", "server")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ctxserver: %w: %s", err, out)
	}
	for _, args := range [][]string{{"user", "add", "ada"}, {"user", "token", "ada"}} {
		out, err := exec.CommandContext(ctx, s.command, append([]string{"--dir", s.dir}, args...)...).Output()
		if err != nil {
			return nil, fmt.Errorf("ctxserver %s: %w", strings.Join(args, " "), err)
		}
		s.token = strings.TrimSpace(string(out))
	}
	users, err := filepath.Glob(filepath.Join(s.dir, "users", "*", "user.json"))
	if err != nil || len(users) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d users", len(users)))
	}
	s.store = filepath.Join(filepath.Dir(users[0]), "store")
	s.model = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server is on this machine
		for range 20 {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"It was the limit. \"}}]}\n\n")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	return s, nil
}

// start returns when the server is ready.
func (s *server) start(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	s.run = exec.CommandContext(ctx, s.command, "--dir", s.dir, "--listen", s.address, "--model-url", s.model.URL+"/v1", "--audit", "none")
	s.run.Stderr = os.Stderr
	if err := s.run.Start(); err != nil {
		return err
	}
	for range 100 {
		resp, err := http.Get("http://" + s.address + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the server does not answer")
}

func (s *server) stop() {
	_ = s.run.Process.Signal(os.Interrupt)
	_ = s.run.Wait()
}

// proxy delays each direction, and counts bytes.
type proxy struct {
	l        net.Listener
	to       string
	delay    time.Duration
	up, down atomic.Int64
}

func newProxy(to string, delay time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p := &proxy{l: l, to: to, delay: delay}
	if err == nil {
		go p.serve()
	}
	return p, err
}

func (p *proxy) address() string { return p.l.Addr().String() }
func (p *proxy) close()          { _ = p.l.Close() }

func (p *proxy) serve() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		d, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		go p.carry(d, c, &p.up)
		go p.carry(c, d, &p.down)
	}
}

// carry copies from one connection to another, each piece after the delay.
func (p *proxy) carry(to, from net.Conn, n *atomic.Int64) {
	type piece struct {
		b  []byte
		at time.Time
	}
	pieces := make(chan piece, 10_000)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 64<<10)
			got, err := from.Read(b)
			if err != nil {
				return
			}
			n.Add(int64(got))
			pieces <- piece{b[:got], time.Now().Add(p.delay)}
		}
	}()
	for x := range pieces {
		time.Sleep(time.Until(x.at))
		if _, err := to.Write(x.b); err != nil {
			break
		}
	}
	_ = to.Close()
	for range pieces { // until the reader ends
	}
}
