package pgfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TestKilledDatabase kills the database amid appends: all of it at once, or one process, after which it restarts itself.
func TestKilledDatabase(t *testing.T) {
	if errors.Is(missing, pgtest.ErrNone) {
		t.Skip(missing)
	}
	for _, what := range []string{"all", "backend"} {
		t.Run(what, func(t *testing.T) {
			s, err := pgtest.Start("")
			check(t, err)
			defer s.Stop()
			pool, name, err := s.Database(t.Context(), 20)
			check(t, err)
			check(t, schema.Migrate(t.Context(), pool))
			pool.Close()
			w := &appender{t: t, user: uuid.New(), keys: NewKeys(master(t)), acked: make([]int, 4)}
			for round := range 4 {
				pool, err := pgxpool.New(t.Context(), s.URL(name)+" pool_max_conns=20")
				check(t, err)
				w.run(pool, 40+round*30, func() {
					if what == "all" {
						check(t, s.Kill())
						return
					}
					var pid int
					check(t, pool.QueryRow(context.Background(), "SELECT pg_backend_pid()").Scan(&pid))
					check(t, syscall.Kill(pid, syscall.SIGKILL))
				})
				pool.Close()
				if what == "all" {
					check(t, s.Run())
				}
				check(t, s.Wait())
			}
			pool, err = pgxpool.New(t.Context(), s.URL(name))
			check(t, err)
			defer pool.Close()
			w.verify(pool)
		})
	}
}

// appender appends to some contexts at once.
type appender struct {
	t     *testing.T
	user  uuid.UUID
	keys  *Keys
	acked []int // messages of each context
}

func (w *appender) open(pool *pgxpool.Pool) (*FS, *ctxdir.Store) {
	w.t.Helper()
	f, err := Open(context.Background(), pool, w.user, Options{Keys: w.keys, Damaged: func(err error) { w.t.Error(err) }})
	check(w.t, err)
	opts := knobs.Options(engine.WithFS(f), engine.WithSealBytes(20_000))
	s, err := ctxdir.Open("database", opts)
	if errors.Is(err, ctxdir.ErrNoStore) {
		s, err = ctxdir.Init("database", opts)
	}
	check(w.t, err)
	return f, s
}

func (w *appender) id(i int) uuid.UUID { return uuid.NewSHA1(w.user, fmt.Append(nil, i)) }

// run appends until the database is gone, which kill does after so many appends.
func (w *appender) run(pool *pgxpool.Pool, appends int, kill func()) {
	f, s := w.open(pool)
	w.check(s)
	var done atomic.Int64
	var writers sync.WaitGroup
	enough := make(chan struct{})
	for i := range w.acked {
		writers.Go(func() {
			c, err := s.Open(context.Background(), w.id(i))
			if errors.Is(err, ctxdir.ErrNotExist) {
				c, err = s.Create(context.Background(), ctxdir.Metadata{ID: w.id(i)})
			}
			for err == nil {
				body := json.RawMessage(fmt.Sprintf(`{"role":"user","content":"message %d of context %d"}`, w.acked[i], i))
				d := ctxdir.Draft{ID: uuid.NewSHA1(w.id(i), fmt.Append(nil, w.acked[i])), Body: body}
				if _, err = c.Active().Append(context.Background(), d); err == nil {
					w.acked[i]++
					if done.Add(1) == int64(appends) {
						close(enough)
					}
				}
			}
			if !errors.Is(err, syscall.EIO) {
				w.t.Errorf("an append failed with %v", err)
			}
			if c != nil {
				_ = c.Close()
			}
		})
	}
	failed := make(chan struct{})
	go func() { writers.Wait(); close(failed) }()
	select {
	case <-enough:
		kill()
	case <-failed:
		w.t.Fatal("nothing was killed")
	}
	<-failed
	_ = s.Close()
	_ = f.Close()
}

// check fails unless everything that was acknowledged is there, with at most one message more in each context.
func (w *appender) check(s *ctxdir.Store) {
	w.t.Helper()
	for i := range w.acked {
		if w.acked[i] == 0 {
			continue
		}
		check(w.t, s.Use(context.Background(), w.id(i), func(c *ctxdir.Context) error {
			n := 0
			for m, err := range c.Active().Messages(context.Background(), 0, 1<<30) {
				if err != nil {
					return err
				}
				if want := uuid.NewSHA1(w.id(i), fmt.Append(nil, n)); m.ID != want || m.Unavailable != nil {
					w.t.Errorf("context %d has %s at %d: %v", i, m.ID, n, m.Unavailable)
				}
				n++
			}
			if n < w.acked[i] || n > w.acked[i]+1 {
				w.t.Errorf("context %d: %d messages were acknowledged, %d are there", i, w.acked[i], n)
			}
			w.acked[i] = n
			return nil
		}))
	}
	for f, err := range s.Check(context.Background(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		check(w.t, err)
		if f.Severity != ctxdir.SeverityInfo {
			w.t.Errorf("check: %+v", f)
		}
	}
}

func (w *appender) verify(pool *pgxpool.Pool) {
	f, s := w.open(pool)
	w.check(s)
	w.t.Log("acknowledged:", w.acked)
	check(w.t, s.Close())
	check(w.t, f.Close())
	g, s := w.open(pool)
	w.check(s)
	check(w.t, s.Close())
	h, err := g.OpenFile("a", os.O_CREATE|os.O_RDWR)
	check(w.t, err)
	check(w.t, h.Close())
	check(w.t, g.Close())
}
