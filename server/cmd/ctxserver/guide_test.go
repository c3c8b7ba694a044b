package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestGuide runs the commands of docs/SERVER.md, as they stand there, and looks at what they print.
func TestGuide(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for from, command := range map[string]string{".": "ctxserver", "../../..": "ctxtool"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, command), "./cmd/"+command)
		build.Dir = from
		if from == "." {
			build.Dir = "../.."
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", command, err, out)
		}
	}
	text, err := os.ReadFile("../../../docs/SERVER.md")
	if err != nil {
		t.Fatal(err)
	}
	// Another program may have the port.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\ntrap 'kill %1' EXIT\n"
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for i, b := range blocks {
		script += "echo == " + string(rune('a'+i)) + "\n" + strings.ReplaceAll(b[1], "127.0.0.1:7434", address)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "CTXSERVER_LISTEN="+address, "CTXDIR_NO_GC=1")
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parts := strings.Split(string(out), "== ")
	if len(parts) != 5 || !strings.Contains(parts[3], "Which berths") || !strings.Contains(parts[3], "Berths 3 and 4.") {
		t.Errorf("the laptop does not show both messages:\n%s", out)
	}
	if !strings.HasSuffix(parts[4], "404\n") || strings.Contains(parts[4], "Harbour") {
		t.Errorf("bob sees something:\n%s", parts[4])
	}
}
