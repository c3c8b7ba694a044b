// Assembly measures how long package assemble takes in a new process, in a large store.
//
//	go run ./cmd/assembly [-dir STORE] [-n MESSAGES] [-runs N] [-out FILE]
//
// The messages are those of the test data, and of the folder that CTXDIR_TEST_DATA names, again and again. -dir uses a
// store that is there, or makes and keeps it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

const perContext = 140 // messages of a context

func main() {
	var err error
	if len(os.Args) == 6 && os.Args[1] == "worker" {
		err = work(os.Args[2], os.Args[3], os.Args[4], os.Args[5] == "all")
	} else {
		err = parse()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "assembly:", err)
		os.Exit(1)
	}
}

func parse() error {
	dir := flag.String("dir", "", "the `STORE`")
	n := flag.Int("n", 100_000, "messages of a new store")
	runs := flag.Int("runs", 200, "processes of each kind")
	out := flag.String("out", "", "write to this `FILE`")
	flag.Parse()
	if *dir == "" {
		temporary, err := os.MkdirTemp("", "assembly-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary) //nolint:errcheck // a temporary folder
		*dir = filepath.Join(temporary, "store")
	}
	var report bytes.Buffer
	err := run(&report, *dir, *n, *runs)
	if err == nil && *out != "" {
		return os.WriteFile(*out, report.Bytes(), 0o600)
	}
	if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	return err
}

func run(w io.Writer, dir string, n, runs int) error {
	ctx := context.Background()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		c, err := corpus.Load(filepath.Join("..", "testdata"))
		if err != nil {
			return err
		}
		if err := fill(ctx, dir, c.Stream(1), n); err != nil {
			return err
		}
	}
	ids, queries, messages, err := sample(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d messages in %d contexts, budget 4000, each assembly in a new process:\n\n", messages, len(ids))
	fmt.Fprint(w, "| | wall p50 | p99 | processor p50 | p99 |\n| --- | --- | --- | --- | --- |\n")
	for _, scope := range []string{"one", "all"} {
		name := map[string]string{"one": "one context", "all": "all contexts"}[scope]
		var first, again times
		for range runs {
			args := []string{"worker", dir, ids[rand.IntN(len(ids))].String(), queries[rand.IntN(len(queries))], scope}
			// No answer of an earlier run may be there.
			if err := os.RemoveAll(filepath.Join(dir, "derived", "answers")); err != nil {
				return err
			}
			for _, t := range []*times{&first, &again} {
				if err := t.measure(args); err != nil {
					return err
				}
			}
		}
		first.report(w, name)
		again.report(w, name+", asked again")
	}
	return nil
}

// times are those of processes.
type times struct{ wall, used []time.Duration }

// measure runs a process.
func (t *times) measure(args []string) error {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	t.wall = append(t.wall, time.Since(began))
	t.used = append(t.used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return nil
}

func (t *times) report(w io.Writer, name string) {
	fmt.Fprintf(w, "| %s | %.0f ms | %.0f ms | %.0f ms | %.0f ms |\n", name,
		ms(t.wall, 0.5), ms(t.wall, 0.99), ms(t.used, 0.5), ms(t.used, 0.99))
}

func ms(times []time.Duration, p float64) float64 {
	return float64(measure.Quantile(times, p).Microseconds()) / 1000
}

func work(dir, id, query string, all bool) error {
	ctx := context.Background()
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	of, err := uuid.Parse(id)
	if err != nil {
		return err
	}
	a, err := assemble.Build(ctx, s, assemble.Request{Context: of, Query: query, MaxTokens: 4000, All: all})
	if err == nil && a.Tokens > 4000 {
		err = fmt.Errorf("%d tokens", a.Tokens)
	}
	return err
}

// fill makes a store.
func fill(ctx context.Context, dir string, from *corpus.Stream, n int) error {
	s, err := ctxdir.Init(dir, ctxdir.Options{RelaxedDurability: true})
	if err != nil {
		return err
	}
	defer s.Close()
	for at := 0; at < n; at += perContext {
		c, err := s.Create(ctx, ctxdir.Metadata{Title: fmt.Sprint("context ", at/perContext)})
		if err != nil {
			return err
		}
		var drafts []ctxdir.Draft
		for i := at; i < min(at+perContext, n); i++ {
			drafts = append(drafts, ctxdir.Draft{ID: from.ID(int64(i)), Body: from.Body(int64(i))})
		}
		if _, err = c.Active().AppendBatch(ctx, drafts); err == nil {
			err = c.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sample brings the index up to date, and returns the contexts and queries of words from random messages.
func sample(ctx context.Context, dir string) (ids []uuid.UUID, queries []string, messages int64, err error) {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return nil, nil, 0, err
	}
	defer s.Close()
	x, err := search.Open(ctx, s)
	if err != nil {
		return nil, nil, 0, err
	}
	defer x.Close() //nolint:errcheck // it was only measured
	if _, err := x.Update(ctx, search.UpdateOptions{}); err != nil {
		return nil, nil, 0, err
	}
	is, err := x.Stats(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	for id, err := range s.IDs() {
		if err != nil {
			return nil, nil, 0, err
		}
		ids = append(ids, id)
	}
	for range 200 {
		err := s.Use(ctx, ids[rand.IntN(len(ids))], func(c *ctxdir.Context) error {
			last, err := c.Active().Last(ctx, 1+rand.IntN(perContext))
			if err != nil || len(last) == 0 {
				return err
			}
			words := strings.FieldsFunc(string(last[0].Stored), func(r rune) bool { return r < 'a' || r > 'z' })
			if len(words) > 10 {
				from := rand.IntN(len(words) - 8)
				queries = append(queries, strings.Join(words[from:from+4+rand.IntN(5)], " "))
			}
			return nil
		})
		if err != nil {
			return nil, nil, 0, err
		}
	}
	return ids, queries, is.Messages, nil
}
