package client_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// serverOfUsers starts a server of many users with one of them, and returns their store, their token, and what passes requests
// on to the server. With $CTXSERVER_DB the users are in that database, and store is empty.
func serverOfUsers(t *testing.T, command string) (store, token string, behind http.Handler) {
	t.Helper()
	dir, name := t.TempDir(), rand.Text() // a database serves several tests
	place := []string{"--json", "--dir", dir}
	database := os.Getenv("CTXSERVER_DB") != ""
	if database {
		place = place[:1]
	}
	do := func(args ...string) (record map[string]any) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), command, append(place, args...)...).Output()
		if err == nil {
			err = json.Unmarshal(out, &record)
		}
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return record
	}
	id := do("user", "add", name)["id"].(string)
	token = do("user", "token", name)["token"].(string)
	serve := append(place, "--listen", "127.0.0.1:0", "--audit", "none")
	server := exec.CommandContext(context.WithoutCancel(t.Context()), command, serve...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // it has not ended
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var listening struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &listening)
	}
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(listening.URL)
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, to.JoinPath("readyz").String())
	if !database {
		store = filepath.Join(dir, "users", id, "store")
	}
	return store, token, httputil.NewSingleHostReverseProxy(to)
}

// awaitReady waits until a server has made its tables.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return
		case http.StatusServiceUnavailable:
		default:
			t.Fatal(url, resp.Status)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
