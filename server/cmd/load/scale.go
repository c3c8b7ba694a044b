package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/tink-crypto/tink-go/v2/tink"
)

var (
	scale     = flag.Bool("scale", false, "measure a server with many users instead, over HTTP")
	people    = flag.Int("users", 300, "with -scale: users")
	contexts  = flag.Int("contexts", 20, "with -scale: contexts of each, with one message")
	followers = flag.Int("followers", 1000, "with -scale: WebSockets, over a tenth as many users")
)

// anybody is the directory of a server in which the token of a user is the id: what registers users reads all of them.
type anybody struct{}

func (anybody) Authorize(_ context.Context, token string) (users.Grant, error) {
	id, err := uuid.Parse(token)
	if err != nil {
		return users.Grant{}, users.ErrUnauthorized
	}
	return users.Grant{User: id, Token: token, Scope: users.Write}, nil
}

func (anybody) Owner(context.Context, users.Grant, string) (uuid.UUID, []string, error) {
	return uuid.Nil, nil, users.ErrNotFound
}

func (anybody) Ready(context.Context) error { return nil }

// team is a server, and its users.
type team struct {
	url   string
	ids   []string
	first []string // a context of each
}

// scaled measures a server that is empty, and then the same one with many users.
func scaled(ctx context.Context, url string, master tink.AEAD) error {
	d, err := server.NewDatabase(ctx, url, server.DatabaseOptions{Master: func() (tink.AEAD, error) { return master, nil }})
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // the process ends
	if err := d.Prepare(ctx); err != nil {
		return err
	}
	s, err := server.New(anybody{}, d, server.Options{Idle: time.Hour, MaxOpen: 1000})
	if err != nil {
		return err
	}
	defer s.Close()
	h := httptest.NewServer(s)
	defer h.Close()
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64
	t := &team{url: h.URL}
	empty, err := t.appendTimes(ctx)
	if err != nil {
		return err
	}
	before, err := stored(ctx, url)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := t.fill(ctx); err != nil {
		return err
	}
	after, err := stored(ctx, url)
	if err != nil {
		return err
	}
	fmt.Printf("database: %d KiB for each context with a message of 1 KB\n", (after-before)>>10/int64(*people**contexts))
	fmt.Printf("%d users with %d contexts each, filled in %s\n", *people, *contexts, time.Since(began).Round(time.Second))
	full, err := t.appendTimes(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("append: %s on the empty server, %s on the full one, p99 x %.2f\n",
		quantiles(empty), quantiles(full), at(full, .99)/at(empty, .99))
	for _, what := range []string{"first", "again"} {
		lists, err := t.listTimes(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("list, %s: %s\n", what, quantiles(lists))
	}
	if err := t.follow(ctx); err != nil {
		return err
	}
	h.CloseClientConnections()
	debug.FreeOSMemory()
	fmt.Printf("memory with at most 1,000 of %d stores open: %s\n", *people, memory())
	return nil
}

// stored is the size of the database, in bytes.
func stored(ctx context.Context, url string) (bytes int64, err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer c.Close(ctx) //nolint:errcheck // it only reads
	return bytes, c.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&bytes)
}

// do sends a request as a user, and returns the body.
func (t *team) do(ctx context.Context, user, method, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+user)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer a.Body.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, path, a.StatusCode, b)
	}
	return string(b), err
}

func (t *team) create(ctx context.Context, user string) (id string, err error) {
	b, err := t.do(ctx, user, http.MethodPost, "/v1/contexts", `{"title":"A conversation","labels":{"project":"/harbour"}}`)
	var made struct{ ID string }
	if err == nil {
		err = json.Unmarshal([]byte(b), &made)
	}
	return made.ID, err
}

func (t *team) append(ctx context.Context, user, id string) error {
	_, err := t.do(ctx, user, http.MethodPost, "/v1/contexts/"+id+"/branches/main/messages", string(message()))
	return err
}

// appendTimes appends to a context of a new user, one message after another.
func (t *team) appendTimes(ctx context.Context) (took []time.Duration, err error) {
	user := uuid.NewString()
	id, err := t.create(ctx, user)
	for i := 0; i < 1000 && err == nil; i++ {
		began := time.Now()
		err = t.append(ctx, user, id)
		took = append(took, time.Since(began))
	}
	return took, err
}

func (t *team) fill(ctx context.Context) error {
	t.ids, t.first = make([]string, *people), make([]string, *people)
	return many(*people, 8, func(i int) (err error) {
		t.ids[i] = uuid.NewString()
		for n := 0; n < *contexts && err == nil; n++ {
			if t.first[i], err = t.create(ctx, t.ids[i]); err == nil {
				err = t.append(ctx, t.ids[i], t.first[i])
			}
		}
		return err
	})
}

// listTimes lists the contexts of users at random, one after another.
func (t *team) listTimes(ctx context.Context) (took []time.Duration, err error) {
	for _, i := range rand.Perm(*people) {
		began := time.Now()
		if _, err := t.do(ctx, t.ids[i], http.MethodGet, "/v1/contexts", ""); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// follow measures how long an append takes to reach those who follow the user.
func (t *team) follow(ctx context.Context) error {
	followed := max(min(*followers/10, *people), 1)
	var mu sync.Mutex
	var took []time.Duration
	began := make([]time.Time, followed)
	var ready, heard sync.WaitGroup
	var conns []*websocket.Conn
	for i := range *followers {
		of := i % followed
		o := &websocket.DialOptions{Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + t.ids[of]}}
		c, _, err := websocket.Dial(ctx, t.url+"/v1/events", o) //nolint:bodyclose // the connection has it
		if err != nil {
			return err
		}
		conns = append(conns, c)
		ready.Add(1)
		heard.Go(func() {
			_, _, err := c.Read(ctx)
			ready.Done()
			if err == nil {
				_, _, err = c.Read(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				took = append(took, time.Since(began[of]))
			}
		})
	}
	ready.Wait()
	for i := range began {
		mu.Lock()
		began[i] = time.Now()
		mu.Unlock()
		if err := t.append(ctx, t.ids[i], t.first[i]); err != nil {
			return err
		}
	}
	heard.Wait()
	fmt.Printf("followers: %d of %d heard of an append, %s after it began\n", len(took), *followers, quantiles(took))
	for _, c := range conns {
		_ = c.CloseNow()
	}
	return nil
}

// many calls f for each number below n, some at the same time.
func many(n, together int, f func(i int) error) error {
	next, errs := make(chan int), make(chan error, together)
	for range together {
		go func() {
			var err error
			for i := range next {
				if err == nil {
					err = f(i)
				}
			}
			errs <- err
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	var first error
	for range together {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// at is a quantile, in milliseconds.
func at(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(int(q*float64(len(took))), len(took)-1)].Seconds() * 1000
}

func quantiles(took []time.Duration) string {
	return fmt.Sprintf("p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", at(took, .5), at(took, .95), at(took, .99))
}

// memory says what this process has: the heap, and what the system counts.
func memory() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident := ""
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := strings.Cut(string(b), "VmRSS:"); ok {
			resident, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
		}
	}
	return fmt.Sprintf("heap %d MiB, resident %s", m.HeapInuse>>20, resident)
}
