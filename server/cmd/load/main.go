// Command load measures stores in PostgreSQL beside bare statements on the same server, in turns: durable appends of 1 KB
// messages by many writers and by one, a range of 50 messages, and what an open idle user costs. With -scale, it measures the
// requests of many users. It starts a server of its own, see package pgtest.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

var (
	dir     = flag.String("dir", "", "folder for the database; empty: the system's temporary folder")
	writers = flag.Int("writers", 64, "concurrent writers, each with a user of its own")
	period  = flag.Duration("period", 3*time.Second, "duration of one turn")
	turns   = flag.Int("turns", 3, "turns of each side")
	idle    = flag.Int("idle", 300, "idle users")
	plain   = flag.Bool("plain", false, "encrypt nothing")
	seal    = flag.Int64("seal", 0, "length of a log, in bytes, at which it is sealed; 0: the default, negative: never")
	group   = flag.Int("group", 2, "connections of the group that shares transactions; 0: none")
	profile = flag.String("profile", "", "file for a CPU profile of the appends by many writers")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	s, err := pgtest.Start(*dir, "shared_buffers = 256MB", "max_wal_size = 4GB", "max_connections = 150")
	if err != nil {
		return err
	}
	defer s.Stop() //nolint:errcheck // the process ends
	if *scale {
		h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		master, err := aead.New(h)
		if err != nil {
			return err
		}
		pool, name, err := s.Database(ctx, 4)
		if err != nil {
			return err
		}
		pool.Close()
		return scaled(ctx, s.URL(name), master)
	}
	pool, _, err := s.Database(ctx, *writers+8)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := schema.Migrate(ctx, pool); err != nil {
		return err
	}
	const bare = `CREATE TABLE bare (user_id uuid, id bigint, data bytea, PRIMARY KEY (user_id, id));
	ALTER TABLE bare ALTER COLUMN data SET STORAGE EXTERNAL`
	if _, err := pool.Exec(ctx, bare); err != nil {
		return err
	}
	l := &load{pool: pool}
	if *group > 0 {
		l.group = pgfs.NewGroup(pool, *group)
	}
	if !*plain {
		h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		master, err := aead.New(h)
		if err != nil {
			return err
		}
		l.keys = pgfs.NewKeys(func() (tink.AEAD, error) { return master, nil })
	}
	for _, n := range []int{*writers, 1} {
		if err := l.appends(ctx, n); err != nil {
			return err
		}
	}
	if err := l.ranges(ctx); err != nil {
		return err
	}
	return l.idle(ctx)
}

type load struct {
	pool  *pgxpool.Pool
	keys  *pgfs.Keys
	group *pgfs.Group
	size  int // of a stored message, in bytes
}

// user is an open user with a store and a context.
type user struct {
	id   uuid.UUID
	fsys *pgfs.FS
	s    *ctxdir.Store
	c    *ctxdir.Context
}

func (l *load) open(ctx context.Context, id uuid.UUID) (*user, error) {
	f, err := pgfs.Open(ctx, l.pool, id, pgfs.Options{
		Owner: "load", Keys: l.keys, Group: l.group, Damaged: func(err error) { log.Print(err) },
	})
	if err != nil {
		return nil, err
	}
	o := knobs.Options(engine.WithFS(f), engine.WithSealBytes(*seal))
	o.CacheSize = -1
	s, err := ctxdir.Init("database", o)
	return &user{id: id, fsys: f, s: s}, err
}

func (u *user) close() error {
	if u.c != nil {
		if err := u.c.Close(); err != nil {
			return err
		}
	}
	if err := u.s.Close(); err != nil {
		return err
	}
	return u.fsys.Close()
}

// during calls f in n goroutines for a period, and returns the calls per second.
func during(n int, f func(i int) error) (float64, error) {
	var calls atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, n)
	begin := time.Now()
	for i := range n {
		all.Go(func() {
			for time.Since(begin) < *period {
				if err := f(i); err != nil {
					errs <- err
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(calls.Load()) / took.Seconds(), nil
	}
}

func (l *load) appends(ctx context.Context, n int) error {
	users := make([]*user, n)
	for i := range users {
		u, err := l.open(ctx, uuid.New())
		if err != nil {
			return err
		}
		if u.c, err = u.s.Create(ctx, ctxdir.Metadata{}); err != nil {
			return err
		}
		users[i] = u
	}
	text := message()
	var sent, before atomic.Int64
	for _, u := range users {
		before.Add(u.fsys.Statements())
	}
	next := make([]int64, n)
	var ours, bare []float64
	for turn := range *turns {
		if err := l.startProfile(n, turn); err != nil {
			return err
		}
		rate, err := during(n, func(i int) error {
			_, err := users[i].c.Active().Append(ctx, ctxdir.Draft{Body: text})
			sent.Add(1)
			return err
		})
		if err != nil {
			return err
		}
		pprof.StopCPUProfile()
		ours = append(ours, rate)
		if l.size == 0 {
			const average = `SELECT avg(octet_length(data))::int FROM extents WHERE octet_length(data) BETWEEN 1000 AND 3000`
			if err := l.pool.QueryRow(ctx, average).Scan(&l.size); err != nil {
				return err
			}
		}
		row := make([]byte, l.size)
		_, _ = rand.Read(row)
		rate, err = during(n, func(i int) error {
			next[i]++
			_, err := l.pool.Exec(ctx, `INSERT INTO bare VALUES ($1, $2, $3)`, users[i].id, next[i], row)
			return err
		})
		if err != nil {
			return err
		}
		bare = append(bare, rate)
	}
	var statements int64
	for _, u := range users {
		statements += u.fsys.Statements()
	}
	fmt.Printf("%d writers: %.0f appends/s, %.0f bare inserts/s of %d bytes, ratio %.2f; %.2f statements for each append\n",
		n, median(ours), median(bare), l.size, median(ours)/median(bare), float64(statements-before.Load())/float64(sent.Load()))
	for _, u := range users {
		if err := u.close(); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) startProfile(n, turn int) error {
	if *profile == "" || n == 1 || turn > 0 {
		return nil
	}
	f, err := os.Create(*profile)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}

// message is a message of 1 KB.
func message() json.RawMessage {
	b := make([]byte, 740)
	_, _ = rand.Read(b)
	return json.RawMessage(`{"role":"user","content":"` + base64.URLEncoding.EncodeToString(b) + `"}`)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
