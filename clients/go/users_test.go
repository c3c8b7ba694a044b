package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// serverOfUsers starts a server of many users with one of them, and returns their store, their token, and what passes requests
// on to the server.
func serverOfUsers(t *testing.T, command string) (store, token string, behind http.Handler) {
	t.Helper()
	dir := t.TempDir()
	do := func(args ...string) (record map[string]any) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), command, append([]string{"--json", "--dir", dir}, args...)...).Output()
		if err == nil {
			err = json.Unmarshal(out, &record)
		}
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return record
	}
	id := do("user", "add", "ada")["id"].(string)
	token = do("user", "token", "ada")["token"].(string)
	serve := []string{"--json", "--dir", dir, "--listen", "127.0.0.1:0", "--audit", "none"}
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
	return filepath.Join(dir, "users", id, "store"), token, httputil.NewSingleHostReverseProxy(to)
}
