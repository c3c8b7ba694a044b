// Command adk measures package contrib/adk beside ADK's own database service on SQLite (WAL, synchronous=FULL), in one
// run: the two take turns at every operation. It prints medians and their ratio as a Markdown table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adk"
	"github.com/glebarez/sqlite"
	"google.golang.org/adk/session"
	"google.golang.org/adk/session/database"
	"google.golang.org/genai"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

func main() {
	n := flag.Int("n", 500, "operations of each kind")
	dir := flag.String("dir", os.TempDir(), "make the stores in this folder")
	flag.Parse()
	if err := run(*dir, *n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// services are the two that are compared: ctxdir, and SQLite.
type services [2]session.Service

func open(dir string) (services, func(), error) {
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		return services{}, nil, err
	}
	dsn := filepath.Join(dir, "sessions.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"
	db, err := database.NewSessionService(sqlite.Open(dsn), &gorm.Config{PrepareStmt: true, Logger: logger.Discard})
	if err == nil {
		err = database.AutoMigrate(db)
	}
	return services{adk.NewSessionService(store), db}, func() { _ = store.Close() }, err
}

func event(i int, delta map[string]any) *session.Event {
	e := session.NewEventWithContext(context.Background(), "invocation")
	e.Author, e.Content = "user", genai.NewContentFromText(fmt.Sprintf("message %d %s", i, strings.Repeat("of some length ", 30)), "user")
	e.Actions.StateDelta = delta
	return e
}

// row is one operation of the table. It runs in turns on both services; made are their sessions.
type row struct {
	name string
	n    int
	goal float64
	do   func(ctx context.Context, s session.Service, sess session.Session, i int) error
}

func appendWith(delta func(i int) map[string]any) func(context.Context, session.Service, session.Session, int) error {
	return func(ctx context.Context, s session.Service, sess session.Session, i int) error {
		return s.AppendEvent(ctx, sess, event(i, delta(i)))
	}
}

func rows(n int) []row {
	return []row{
		{"Create", n, 1.5, func(ctx context.Context, s session.Service, _ session.Session, i int) error {
			_, err := s.Create(ctx, &session.CreateRequest{AppName: "app", UserID: fmt.Sprint("user", i%10), State: map[string]any{"k": i}})
			return err
		}},
		{"AppendEvent", n, 0.5, appendWith(func(int) map[string]any { return nil })},
		{"AppendEvent with session state", n, 0.5, appendWith(func(i int) map[string]any { return map[string]any{"step": i} })},
		{"AppendEvent with app state", n, 0.8, appendWith(func(i int) map[string]any { return map[string]any{"app:step": i} })},
		{"Get, the newest 100 events", n / 5, 0.7, func(ctx context.Context, s session.Service, sess session.Session, _ int) error {
			r, err := s.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ada", SessionID: sess.ID(), NumRecentEvents: 100})
			if err == nil && r.Session.Events().Len() != min(100, 3*n) {
				err = fmt.Errorf("%d events", r.Session.Events().Len())
			}
			return err
		}},
		{"List of a user", n / 5, 0, func(ctx context.Context, s session.Service, _ session.Session, _ int) error {
			_, err := s.List(ctx, &session.ListRequest{AppName: "app", UserID: "user1"})
			return err
		}},
	}
}

func run(dir string, n int) error {
	dir, err := os.MkdirTemp(dir, "adk")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	both, done, err := open(dir)
	if err != nil {
		return err
	}
	defer done()
	ctx := context.Background()
	var made [2]session.Session
	for i, s := range both {
		r, err := s.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ada"})
		if err != nil {
			return err
		}
		made[i] = r.Session
	}
	fmt.Println("| operation | ctxdir, us | SQLite, us | ratio | goal |\n| --- | --- | --- | --- | --- |")
	for _, r := range rows(n) {
		var took [2][]time.Duration
		for i := range r.n {
			for j := range both {
				j = (i + j) % 2
				began := time.Now()
				if err := r.do(ctx, both[j], made[j], i); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				took[j] = append(took[j], time.Since(began))
			}
		}
		a, b := median(took[0]), median(took[1])
		goal := "-"
		if r.goal > 0 {
			goal = fmt.Sprintf("%.1f", r.goal)
		}
		fmt.Printf("| %s | %.0f | %.0f | %.2f | %s |\n", r.name, us(a), us(b), a.Seconds()/b.Seconds(), goal)
	}
	return concurrently(ctx, both, n/4)
}

// concurrently appends to eight sessions at once, on one service after the other.
func concurrently(ctx context.Context, both services, n int) error {
	fmt.Printf("\n| %d sessions at once, %d events each | events a second | failed |\n| --- | --- | --- |\n", writers, n)
	for i, name := range []string{"ctxdir", "SQLite"} {
		var failed atomic.Int64
		var first atomic.Value
		var all sync.WaitGroup
		began := time.Now()
		for w := range writers {
			all.Go(func() {
				r, err := both[i].Create(ctx, &session.CreateRequest{AppName: "app", UserID: fmt.Sprint("writer", w)})
				for e := 0; e < n && err == nil; e++ {
					if err = both[i].AppendEvent(ctx, r.Session, event(e, map[string]any{"step": e})); err != nil {
						failed.Add(1)
						first.CompareAndSwap(nil, err.Error())
						err = nil
					}
				}
				if err != nil {
					failed.Add(int64(n))
					first.CompareAndSwap(nil, err.Error())
				}
			})
		}
		all.Wait()
		fmt.Printf("| %s | %.0f | %d |\n", name, float64(writers*n-int(failed.Load()))/time.Since(began).Seconds(), failed.Load())
		if err := first.Load(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
	}
	return nil
}

const writers = 8

func us(d time.Duration) float64 { return float64(d.Microseconds()) }

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
