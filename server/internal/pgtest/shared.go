package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shared is the server of all tests of a package.
var shared struct {
	once   sync.Once
	server *Server
	err    error
	mu     sync.Mutex
}

// Run is for TestMain: it runs the tests, and ends the server that [Empty] started. It returns the exit status.
func Run(m *testing.M) int {
	code := m.Run()
	if s := shared.server; s != nil {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return code
}

// Empty returns an empty database of its own, and its URL. The first call starts a server; the test is skipped where there
// is none.
func Empty(t testing.TB) (*pgxpool.Pool, string) {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = Start("", "max_connections = 200") })
	if errors.Is(shared.err, ErrNone) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	pool, name, err := shared.server.Database(context.Background(), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, shared.server.URL(name)
}

// Flushed writes everything to disk, and returns the data folder of the server that [Empty] started.
func Flushed(t testing.TB) string {
	t.Helper()
	c, err := pgx.Connect(context.Background(), shared.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background()) //nolint:errcheck // nothing is pending
	if _, err := c.Exec(context.Background(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	return shared.server.Data()
}
