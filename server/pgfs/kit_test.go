package pgfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

var (
	server  *pgtest.Server
	missing error // why there is no server
)

func TestMain(m *testing.M) {
	server, missing = pgtest.Start("", "max_connections = 200")
	code := m.Run()
	if server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// database returns a migrated database of its own.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	if errors.Is(missing, pgtest.ErrNone) {
		t.Skip(missing)
	}
	check(t, missing)
	pool, _, err := server.Database(t.Context(), 20)
	check(t, err)
	t.Cleanup(pool.Close)
	check(t, schema.Migrate(t.Context(), pool))
	return pool
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// master returns where a new master key is from.
func master(t testing.TB) Master {
	t.Helper()
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	check(t, err)
	key, err := aead.New(h)
	check(t, err)
	return func() (tink.AEAD, error) { return key, nil }
}

// disk is the files of one user, opened again and again.
type disk struct {
	t       testing.TB
	pool    *pgxpool.Pool
	user    uuid.UUID
	keys    *Keys
	damages []error
}

func newDisk(t testing.TB) *disk {
	return &disk{t: t, pool: database(t), user: uuid.New(), keys: NewKeys(master(t))}
}

func (d *disk) open() *FS {
	d.t.Helper()
	f, err := Open(context.Background(), d.pool, d.user, Options{
		Owner: "test", Keys: d.keys, Group: NewGroup(d.pool, 2), Damaged: func(err error) { d.damages = append(d.damages, err) },
	})
	check(d.t, err)
	return f
}

func (d *disk) exec(statement string, args ...any) int64 {
	d.t.Helper()
	tag, err := d.pool.Exec(d.t.Context(), statement, args...)
	check(d.t, err)
	return tag.RowsAffected()
}

func newDiskOf(t testing.TB, pool *pgxpool.Pool, keys *Keys) *disk {
	return &disk{t: t, pool: pool, user: uuid.New(), keys: keys}
}
