// Modes measures what a request costs in local mode and in server mode, with a delay between the agent and the server.
//
//	go run ./cmd/modes [-delay 50ms] [-rounds N] [-n MESSAGES] [-out FILE]
//
// The server is ctxserver of this tree, in a process of its own; the model is scripted, and answers at once.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/exchange"
)

func main() {
	delay := flag.Duration("delay", 50*time.Millisecond, "`DELAY` of a round trip")
	rounds := flag.Int("rounds", 30, "requests of each mode")
	n := flag.Int("n", 100_000, "messages of the large conversation on the server")
	out := flag.String("out", "", "write to this `FILE`")
	flag.Parse()
	var report bytes.Buffer
	err := run(context.Background(), &report, *delay, *rounds, *n)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "modes:", err)
		os.Exit(1)
	}
}

// cost is what the requests of a mode cost.
type cost struct {
	first, whole []time.Duration // up to the first piece of the answer, and up to its end
	up, down     []time.Duration // bytes; durations, for their median
}

func run(ctx context.Context, w io.Writer, delay time.Duration, rounds, n int) error {
	dir, err := os.MkdirTemp("", "modes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	s, err := newServer(ctx, dir)
	if err != nil {
		return err
	}
	defer s.model.Close()
	store, err := ctxdir.Init(s.store)
	if err != nil {
		return err
	}
	large, err := talk(ctx, store, n)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.stop()
	fmt.Fprintf(w, "A round trip of %v, %d requests of each mode, a scripted model that answers at once.\n\n", delay, rounds)
	fmt.Fprintln(w, "| mode | first text p50 | beyond the round trip | whole answer p50 | up p50 | down p50 |\n"+
		"| --- | --- | --- | --- | --- | --- |")
	costs := map[string]*cost{}
	for _, mode := range []string{ctxdir.StorageServer, ctxdir.StorageLocal} {
		c, err := s.requests(ctx, filepath.Join(dir, mode), mode, delay, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		costs[mode] = c
		first := measure.Quantile(c.first, 0.5)
		fmt.Fprintf(w, "| %s | %.1f ms | %.1f ms | %.1f ms | %d B | %d B |\n",
			mode, ms(first), ms(first-delay), ms(measure.Quantile(c.whole, 0.5)), measure.Quantile(c.up, 0.5), measure.Quantile(c.down, 0.5))
	}
	local, server := costs[ctxdir.StorageLocal], costs[ctxdir.StorageServer]
	fmt.Fprintln(w, "\n| what | measured | goal | |\n| --- | --- | --- | --- |")
	added := measure.Quantile(local.first, 0.5) - measure.Quantile(server.first, 0.5)
	both := measure.Quantile(local.up, 0.5) + measure.Quantile(local.down, 0.5)
	goal(w, "local mode beyond server mode", fmt.Sprintf("%.1f ms", ms(added)), "60 ms", added <= 60*time.Millisecond)
	goal(w, "local mode, both directions", fmt.Sprintf("%d B", both), "6,144 B", both <= 6<<10)
	up := measure.Quantile(server.up, 0.5)
	goal(w, "server mode, up", fmt.Sprintf("%d B", up), "1,024 B", up <= 1<<10)
	begun, warm, err := s.large(ctx, large, rounds)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("assembly on the server of %d messages, p50", n)
	goal(w, what, fmt.Sprintf("%.1f ms", ms(warm)), "100 ms", warm <= 100*time.Millisecond)
	fmt.Fprintf(w, "\nThe first request of that conversation took %.1f ms: it makes the index.\n", ms(begun))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func goal(w io.Writer, what, got, want string, met bool) {
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "| %s | %s | ≤ %s | %s |\n", what, got, want, verdict)
}

// talk makes a conversation of n messages.
func talk(ctx context.Context, s *ctxdir.Store, n int) (*ctxdir.Context, error) {
	c, err := s.Create(ctx, ctxdir.Metadata{Title: "measured"})
	if err != nil {
		return nil, err
	}
	for i := 0; i < n; {
		var drafts []ctxdir.Draft
		for ; i < n && len(drafts) < 1000; i++ {
			d, err := message(i)
			if err != nil {
				return nil, err
			}
			drafts = append(drafts, d)
		}
		if _, err := c.Active().AppendBatch(ctx, drafts); err != nil {
			return nil, err
		}
	}
	return c, c.Flush(ctx)
}

// topics vary what is said, so that some messages answer a question and others do not.
var topics = []string{
	"the queue of the worker", "the port of the service", "the color of the page", "the lock of the index", "the size of the cache",
}

func message(i int) (ctxdir.Draft, error) {
	about := topics[(i/2)%len(topics)]
	text := fmt.Sprintf("Why does %s change in step %d? It was the same in the test before, and nobody has touched it since.", about, i)
	if i%2 == 1 {
		text = fmt.Sprintf("We decided to keep %s in step %d. It failed because the limit was too small. The next run will show whether that is "+
			"enough, and the test has been changed to look for it.", about, i)
	}
	return ctxdir.NewDraft(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
}

// requests measures the requests of a mode. Before each, the agent stores two more messages, as it does when it works.
func (s *server) requests(ctx context.Context, dir, mode string, delay time.Duration, rounds int) (*cost, error) {
	store, err := ctxdir.Init(dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	c, err := talk(ctx, store, 200)
	if err != nil {
		return nil, err
	}
	p, err := newProxy(s.address, delay/2)
	if err != nil {
		return nil, err
	}
	defer p.close()
	source := exchange.NewLocal(store)
	defer source.Close() //nolint:errcheck // a cache
	client := exchange.NewClient(exchange.ClientOptions{URL: "http://" + p.address(), Token: s.token, Source: source})
	defer client.Close() //nolint:errcheck // nothing is pending
	if _, err := client.Upload(ctx, c); mode == ctxdir.StorageServer && err != nil {
		return nil, err
	}
	var all cost
	for round := range rounds + 1 {
		for i := range 2 {
			d, err := message(200 + 2*round + i)
			if err != nil {
				return nil, err
			}
			if _, err := c.Active().Append(ctx, d); err != nil {
				return nil, err
			}
		}
		up, down := p.up.Load(), p.down.Load()
		r := exchange.ChatRequest{
			SessionID: c.ID().String(), RequestID: fmt.Sprint("r", round), StorageMode: mode,
			Message: fmt.Sprintf("In step %d: why did %s fail, and what have we decided about it?", round, topics[round%len(topics)]),
		}
		began, first := time.Now(), time.Duration(0)
		if _, err := client.Ask(ctx, r, func(string) {
			if first == 0 {
				first = time.Since(began)
			}
		}); err != nil {
			return nil, err
		}
		if round == 0 {
			continue // it connects, and makes the index
		}
		all.first, all.whole = append(all.first, first), append(all.whole, time.Since(began))
		all.up = append(all.up, time.Duration(p.up.Load()-up))
		all.down = append(all.down, time.Duration(p.down.Load()-down))
	}
	return &all, nil
}

// large measures requests in a large conversation on the server, without a delay: up to the first piece of the answer.
func (s *server) large(ctx context.Context, of *ctxdir.Context, rounds int) (begun, warm time.Duration, err error) {
	client := exchange.NewClient(exchange.ClientOptions{URL: "http://" + s.address, Token: s.token, Patience: 10 * time.Minute})
	defer client.Close() //nolint:errcheck // nothing is pending
	var all []time.Duration
	for round := range rounds + 1 {
		began, first := time.Now(), time.Duration(0)
		_, err := client.Ask(ctx, exchange.ChatRequest{
			SessionID: of.ID().String(), RequestID: fmt.Sprint("r", round), StorageMode: ctxdir.StorageServer,
			Message: fmt.Sprintf("What have we decided about %s in step %d?", topics[round%len(topics)], 7*round),
		}, func(string) {
			if first == 0 {
				first = time.Since(began)
			}
		})
		if err != nil {
			return 0, 0, err
		}
		if round == 0 {
			begun = first
			continue
		}
		all = append(all, first)
	}
	return begun, measure.Quantile(all, 0.5), nil
}
