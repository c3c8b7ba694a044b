package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
)

// TestContractOnDatabase lets the Go client compare each answer of a server on PostgreSQL with the OpenAPI file.
func TestContractOnDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the client's tests")
	}
	_, url := pgtest.Empty(t)
	g := newGuide(t)
	command, key := filepath.Join(g.dir, "bin", "ctxserver"), filepath.Join(g.dir, "contract.key")
	if out, err := exec.CommandContext(t.Context(), command, "key", "new", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", ".")
	tests.Dir = filepath.Join("..", "..", "..", "clients", "go")
	tests.Env = append(os.Environ(), "CTXDIR_SERVER="+command, "CTXSERVER_DB="+url, "CTXSERVER_KEY="+key)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
