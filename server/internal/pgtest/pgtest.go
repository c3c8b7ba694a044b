// Package pgtest runs a PostgreSQL server for tests and benchmarks.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Binaries is the folder of initdb and postgres: PGBIN, or that of Debian's newest package.
func Binaries() string {
	if dir := os.Getenv("PGBIN"); dir != "" {
		return dir
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is right
	return slices.Max(append(all, ""))
}

// ErrNone means that there are no binaries, or no user to run them.
var ErrNone = errors.New("no PostgreSQL to run")

// Server is a running server with a data folder of its own.
type Server struct {
	Dir  string // data and socket
	who  *syscall.Credential
	cmd  *exec.Cmd
	next int
}

// Start makes a data folder below parent and starts a server. Settings are lines of postgresql.conf.
func Start(parent string, settings ...string) (*Server, error) {
	if _, err := os.Stat(filepath.Join(Binaries(), "initdb")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	dir, err := os.MkdirTemp(parent, "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir}
	if os.Getuid() == 0 { // initdb refuses root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNone, err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.who = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	out, err := s.command("initdb", "-D", s.Data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := s.Configure(append(settings, "listen_addresses = ''", "unix_socket_directories = '"+dir+"'")...); err != nil {
		return nil, err
	}
	return s, s.Run()
}

// Configure adds lines to postgresql.conf.
func (s *Server) Configure(settings ...string) error {
	conf, err := os.OpenFile(filepath.Join(s.Data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(conf, strings.Join(settings, "\n"))
	return errors.Join(err, conf.Close())
}

// Data is the data folder.
func (s *Server) Data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(Binaries(), name), args...)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.who}
	return cmd
}

// Run starts the server and waits until it answers.
func (s *Server) Run() error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command("postgres", "-D", s.Data())
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.Wait()
}

// Wait returns when the server accepts connections.
func (s *Server) Wait() error {
	for {
		// 0: it accepts connections, 1: it is starting or recovering, 2: it does not answer yet
		out, err := s.command("pg_isready", "-h", s.Dir).CombinedOutput()
		if err == nil {
			return nil
		}
		var e *exec.ExitError
		if !errors.As(err, &e) || !isRunning(s.cmd.Process.Pid) {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
			return fmt.Errorf("the server does not answer: %w: %s\n%s", err, out, log)
		}
	}
}

// Kill ends the server as a power cut of its machine would, except that the kernel keeps what was written. It returns when
// all its processes have ended.
func (s *Server) Kill() error {
	children, err := s.children()
	if err != nil {
		return err
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range children {
		for isRunning(pid) {
			runtime.Gosched()
		}
	}
	return nil
}

// children returns the processes of the server other than the first.
func (s *Server) children() (pids []int, err error) {
	pid := s.cmd.Process.Pid
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, f := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		pids = append(pids, n)
	}
	return pids, err
}

// isRunning reports whether a process still holds memory.
func isRunning(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait()
	return os.RemoveAll(s.Dir)
}

// URL is the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s", s.Dir, database)
}

// Database makes an empty database and opens it.
func (s *Server) Database(ctx context.Context, connections int) (*pgxpool.Pool, string, error) {
	s.next++
	name := fmt.Sprintf("test%d", s.next)
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, "", err
	}
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s pool_max_conns=%d", s.URL(name), connections))
	return pool, name, err
}
