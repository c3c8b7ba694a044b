package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/users"
)

// TestFailover kills the database under writers, and promotes its standby. Nothing that was acknowledged is lost, nothing is there
// twice, and the writers go on by themselves.
func TestFailover(t *testing.T) {
	primary, err := pgtest.Start("")
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	must(t, err)
	defer primary.Stop() // it has been killed
	pool, name, err := primary.Database(t.Context(), 1)
	must(t, err)
	pool.Close()
	standby, err := primary.Standby(t.Context())
	must(t, err)
	defer standby.Stop()
	at := newDatabase(t)
	at.url = primary.EitherURL(standby, name)
	k := newKit(t, at, server.Options{})

	const writers, before, after = 8, 10, 10
	var acked atomic.Int64
	var resumed atomic.Pointer[time.Time]
	var writing, halfway sync.WaitGroup
	dead := make(chan struct{})
	halfway.Add(writers)
	paths := make([]string, writers)
	tokens := make([]string, writers)
	for i := range writers {
		user := fmt.Sprint("user", i)
		_, err := k.users.Add(t.Context(), user)
		must(t, err)
		tokens[i] = k.token(user, users.TokenOptions{})
		paths[i] = "/v1/contexts/" + k.create(tokens[i], "title", "first") + "/branches/main/messages"
	}
	for i := range writers {
		writing.Go(func() {
			for n := range before + after {
				if n == before {
					halfway.Done()
				}
				k.appendUntilDone(tokens[i], paths[i], fmt.Sprintf("message %d of %d", n, i))
				acked.Add(1)
				select {
				case <-dead:
					now := time.Now()
					resumed.CompareAndSwap(nil, &now)
				default:
				}
			}
		})
	}
	halfway.Wait()
	must(t, primary.Kill())
	killed := time.Now()
	close(dead)
	must(t, standby.Promote())
	t.Logf("promoted after %v", time.Since(killed))
	writing.Wait()
	t.Logf("the first write after %v, %d acknowledged", resumed.Load().Sub(killed).Round(time.Millisecond), acked.Load())
	for i, path := range paths {
		r := k.do(tokens[i], "GET", path, "")
		var got []string
		for line := range strings.Lines(r.body) {
			var m struct{ Message struct{ Content string } }
			must(t, json.Unmarshal([]byte(line), &m))
			got = append(got, m.Message.Content)
		}
		want := []string{"first"}
		for n := range before + after {
			want = append(want, fmt.Sprintf("message %d of %d", n, i))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("user %d has\n%s", i, strings.Join(got, "\n"))
		}
	}
}

// appendUntilDone appends a message, as clients do: after an answer that it may work later, and one that leaves open whether it
// did, they send it again.
func (k *kit) appendUntilDone(token, path, text string) {
	for {
		r, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.url+path,
			strings.NewReader(`{"role":"user","content":"`+text+`"}`))
		if err != nil {
			k.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", strings.ReplaceAll(text, " ", "-"))
		switch a := k.send(r); {
		case a.status < 300:
			return
		case a.status != http.StatusServiceUnavailable:
			k.Errorf("%d %s", a.status, a.body)
			return
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
