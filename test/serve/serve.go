// Package serve kills the server of the API in the middle of appends, again and again, and repeats what was not
// answered, as a client does. In the end each message is there exactly once, in the order in which its client sent it.
package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
)

// token is that of the servers.
const token = "serve-0123456789abcdef0123456789ab"

// marker is the variable that makes a process a server.
const marker = "CTXDIR_TEST_SERVE"

// Started serves the store that a parent process names, until it is killed. It returns false in other processes.
func Started() bool {
	dir := os.Getenv(marker)
	if dir == "" {
		return false
	}
	if err := run(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func run(dir string) error {
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
	return server.Serve(context.Background(), l, nil)
}

// Options say what is done.
type Options struct {
	Dir     string // a folder, for everything
	Rounds  int    // number of kills
	Clients int
	Longest time.Duration // of the life of a server
	Seed    uint64
	Logf    func(format string, args ...any)
}

// Result is what a run did.
type Result struct {
	Kills    int
	Messages int // acknowledged
	Repeated int // requests sent again after a server was killed
	Existed  int // of them, those whose message was there already
}

// place is where the present server listens; it changes with each kill.
type place struct {
	mu      sync.Mutex
	address string
	changed chan struct{}
}

func (p *place) set(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = address
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

func (p *place) get() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address, p.changed
}

// client appends messages to one context until it is told to end.
type client struct {
	number int
	id     string
	sent   int // acknowledged
	result Result
}

// Run kills servers, and verifies the store in the end.
func Run(ctx context.Context, o Options) (Result, error) {
	dir := filepath.Join(o.Dir, "store")
	clients, err := found(ctx, dir, o.Clients)
	if err != nil {
		return Result{}, err
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	var at place
	working, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	failures := make(chan error, len(clients))
	var total Result
	for n := range o.Rounds + 1 {
		address, kill, err := start(dir)
		if err != nil {
			return total, err
		}
		at.set(address)
		if n == 0 {
			for _, c := range clients {
				group.Go(func() { failures <- c.work(working, &at) })
			}
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(o.Longest)))):
		case err := <-failures:
			kill()
			return total, err
		}
		if n == o.Rounds {
			stop() // the last server answers what is under way
			group.Wait()
		}
		kill()
		total.Kills = n
		o.Logf("kill %d", n+1)
	}
	for _, c := range clients {
		if err := <-failures; err != nil {
			return total, err
		}
		total.Messages += c.sent
		total.Repeated += c.result.Repeated
		total.Existed += c.result.Existed
		if err := c.verify(ctx, dir); err != nil {
			return total, err
		}
	}
	return total, nil
}

func found(ctx context.Context, dir string, n int) (clients []*client, err error) {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return nil, err
	}
	for i := range n {
		c, err := s.Create(ctx, ctxdir.Metadata{})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		clients = append(clients, &client{number: i, id: c.ID().String()})
		if err := c.Close(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return clients, s.Close()
}

// start begins a server process.
func start(dir string) (address string, kill func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), marker+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		kill()
		return "", nil, fmt.Errorf("the server does not listen: %w", err)
	}
	return strings.TrimSpace(line), kill, nil
}

// work sends one message after the other. One that is not answered is sent again, with the same key.
func (c *client) work(ctx context.Context, at *place) error {
	for ctx.Err() == nil {
		body := fmt.Sprintf(`{"role":"user","content":"%d/%d %s"}`, c.number, c.sent, strings.Repeat("x", c.sent%3000))
		for again := false; ; again = true {
			address, changed := at.get()
			existed, err := c.append(address, fmt.Sprint("key-", c.sent), body)
			if again {
				c.result.Repeated++
			}
			if err == nil {
				if existed && !again {
					return fmt.Errorf("message %d of client %d existed before it was sent", c.sent, c.number)
				}
				if existed {
					c.result.Existed++
				}
				break
			}
			var refused refusal
			if errors.As(err, &refused) {
				return err
			}
			<-changed
		}
		c.sent++
	}
	return nil
}

// refusal is an answer other than success.
type refusal string

func (r refusal) Error() string { return string(r) }

func (c *client) append(address, key, body string) (existed bool, err error) {
	url := "http://" + address + "/v1/contexts/" + c.id + "/branches/main/messages"
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Idempotency-Key", key)
	r.GetBody = nil // the client itself must not repeat
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusCreated {
		return false, refusal(fmt.Sprintf("%s: %s", resp.Status, b))
	}
	var answer struct {
		Position int
		Existed  bool
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return false, refusal(err.Error())
	}
	if answer.Position != c.sent {
		return false, refusal(fmt.Sprintf("message %d of client %d is at position %d", c.sent, c.number, answer.Position))
	}
	return answer.Existed, nil
}

// verify reads the context of the client: each message that was acknowledged, and no other.
func (c *client) verify(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := s.Resolve(c.id)
	if err != nil {
		return err
	}
	n := 0
	err = s.Use(ctx, id, func(x *ctxdir.Context) error {
		for m, err := range x.Active().Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return err
			}
			var body struct{ Content string }
			if err := json.Unmarshal(m.Stored, &body); err != nil {
				return err
			}
			if want := fmt.Sprintf("%d/%d ", c.number, n); !strings.HasPrefix(body.Content, want) {
				return fmt.Errorf("client %d, position %d: %.20q, want %q", c.number, n, body.Content, want)
			}
			n++
		}
		return nil
	})
	if err == nil && n != c.sent {
		err = fmt.Errorf("client %d: %d messages are stored, %d were acknowledged", c.number, n, c.sent)
	}
	return err
}
