package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// killsMover moves a conversation between a machine and the server, and goes on with it wherever it is.
type killsMover struct {
	killsWriter
	store   string
	private string // a context in local mode
	sent    int    // messages
	done    map[string]int
	last    string // failure
}

func newKillsMover(k *kills, seed uint64) *killsMover {
	m := &killsMover{killsWriter: killsWriter{kills: k, name: "mover", random: rand.New(rand.NewPCG(seed, 99))}, done: map[string]int{}}
	k.run("user", "add", m.name)
	m.token = strings.TrimSpace(k.run("user", "token", m.name))
	m.store = filepath.Join(k.dir, "mover")
	m.context, m.private = uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	for _, args := range [][]string{
		{"init"}, {"new", "--id", m.context}, {"new", "--id", m.private}, {"append", m.private, "private"}, {"mode", m.private, "local"},
		{"remote", "add", "team", "http://" + k.guide.address + "#" + m.token},
	} {
		if out, err := m.tool(context.Background(), args...).CombinedOutput(); err != nil {
			k.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return m
}

func (m *killsMover) tool(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(m.guide.dir, "bin", "ctxtool"), args...)
	cmd.Env = append(m.env, "CTXDIR_STORE="+m.store)
	return cmd
}

// move switches, is killed at times, and begins again until it is done.
func (m *killsMover) move(ctx context.Context) {
	switches := [][]string{
		{"mode", "switch", "server", m.context}, {"mode", "switch", "server", m.context, "--clean"}, {"sync"},
		{"mode", "switch", "local", m.context}, {"mode", "switch", "local", m.context, "--clean"},
	}
	for ctx.Err() == nil && !m.Failed() {
		args := switches[m.random.IntN(len(switches))]
		if len(args) > 2 && args[2] == "local" && !m.onServer() {
			continue // it has nothing to give back, and would say so for ever
		}
		for ctx.Err() == nil {
			try, done := context.WithCancel(ctx)
			if m.random.IntN(2) == 0 {
				try, done = context.WithTimeout(ctx, time.Duration(m.random.Int64N(int64(150*time.Millisecond))))
			}
			out, err := m.tool(try, args...).CombinedOutput()
			if err != nil && try.Err() == nil { // it was not killed
				m.last = fmt.Sprintf("%v: %.300s", args, out)
			}
			done()
			if err == nil {
				m.done[strings.Join(args[:min(len(args), 3)], " ")]++
				break
			}
			if args[len(args)-1] != "--clean" && args[0] != "sync" && !m.onServer() && !m.here() {
				m.Errorf("%v: %v: the context is nowhere", args, err)
				return
			}
			m.pause(ctx, 10*time.Millisecond)
		}
		m.goOn(ctx)
	}
}

// here reports whether the machine has the context.
func (m *killsMover) here() bool {
	return m.tool(context.Background(), "show", m.context).Run() == nil
}

// onServer reports whether the server has the context. It waits for the server.
func (m *killsMover) onServer() bool {
	for !m.Failed() {
		switch status, answer := m.send(context.Background(), http.MethodGet, "/v1/contexts/"+m.context, "", ""); status {
		case http.StatusOK:
			return true
		case http.StatusNotFound:
			return false
		case 0, http.StatusServiceUnavailable, http.StatusInternalServerError:
			m.pause(context.Background(), 10*time.Millisecond)
		default:
			m.Errorf("%d %s", status, answer)
		}
	}
	return false
}

// goOn adds a message where the context is.
func (m *killsMover) goOn(ctx context.Context) {
	text := m.text(m.sent)
	for ctx.Err() == nil {
		if m.here() {
			cmd := m.tool(context.Background(), "append", m.context)
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				m.Errorf("append: %v\n%s", err, out)
			}
			m.sent++
			return
		}
		path := "/v1/contexts/" + m.context + "/branches/main/messages"
		key, body := fmt.Sprint("message-", m.sent), fmt.Sprintf(`{"role":"user","content":%q}`, text)
		status, answer := m.send(context.Background(), http.MethodPost, path, key, body)
		if status/100 == 2 {
			m.sent++
			return
		}
		if status != 0 && status != http.StatusServiceUnavailable && status != http.StatusInternalServerError {
			m.Errorf("append to the server: %d %s", status, answer)
			return
		}
		m.pause(ctx, 10*time.Millisecond)
	}
}

// checkMoves brings the context back: all messages are there, once and in order, and the private one never left.
func (m *killsMover) checkMoves() {
	m.Helper()
	if m.onServer() {
		if out, err := m.tool(context.Background(), "mode", "switch", "local", m.context).CombinedOutput(); err != nil {
			m.Errorf("back: %v\n%s", err, out)
		}
	}
	s, err := ctxdir.Open(m.store)
	if err != nil {
		m.Fatal(err)
	}
	defer s.Close()
	var got []string
	err = s.Use(context.Background(), uuid.MustParse(m.context), func(c *ctxdir.Context) error {
		infos, err := c.Branches(context.Background())
		if err != nil || len(infos) != 1 {
			return fmt.Errorf("%+v, %w", infos, err)
		}
		for x, err := range c.Active().Messages(context.Background(), 0, int64(m.sent)+10) {
			if err != nil {
				return err
			}
			body, err := x.Body(context.Background())
			if err != nil {
				return err
			}
			_, text, _ := strings.Cut(string(body), `"content":"`)
			got = append(got, m.short(strings.TrimRight(text, `"}`)))
		}
		return nil
	})
	var want []string
	for i := range m.sent + 1 {
		want = append(want, fmt.Sprint("message ", i))
	}
	if err != nil || !slices.Equal(got, want[:m.sent]) && !slices.Equal(got, want) {
		m.Errorf("%d messages, %d sent: %v: %.2000s", len(got), m.sent, err, strings.Join(got, ", "))
	}
	for f, err := range s.Check(context.Background(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil || f.Severity == ctxdir.SeverityError {
			m.Errorf("%+v, %v", f, err)
		}
	}
	if status, _ := m.send(context.Background(), http.MethodGet, "/v1/contexts/"+m.private, "", ""); status != http.StatusNotFound {
		m.Errorf("the private context: %d", status)
	}
	m.Logf("%d messages, switches: %v; the last failure: %s", m.sent, m.done, m.last)
}
