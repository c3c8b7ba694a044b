// Recall measures how often package assemble finds again what a session needs much later.
//
//	CTXDIR_TEST_DATA=FOLDER go run ./cmd/recall [-half 1] [-budget 4000] [-out FILE]
//
// A fact is a distinctive word, such as a path, an identifier or a number, that an assistant uses again after 40
// messages or more without it. The query is the newest prompt and the two messages before, with the fact masked.
// Weights were chosen on half 0 of the sessions of 40,000 tokens or more, in the order of their length.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/bench/baseline"
	"github.com/ctxdir/ctxdir/search"
)

var weights = assemble.DefaultWeights

func main() {
	half := flag.Int("half", 1, "the half of the sessions: 0 or 1")
	budget := flag.Int("budget", 4000, "tokens")
	steps := flag.Int("steps", 40, "calls of the model in a row, for the prompt cache")
	out := flag.String("out", "", "write to this `FILE`")
	flag.Func("weights", "other weights, as `JSON`", func(text string) error { return json.Unmarshal([]byte(text), &weights) })
	flag.Parse()
	folder := os.Getenv("CTXDIR_TEST_DATA")
	if folder == "" {
		fmt.Fprintln(os.Stderr, "recall: skipped: CTXDIR_TEST_DATA does not name a folder with sessions")
		return
	}
	var report bytes.Buffer
	err := run(&report, folder, *half, *budget, *steps)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recall:", err)
		os.Exit(1)
	}
}

type results struct {
	order    []string
	found    map[string][][]bool // by session
	sessions []string
	facts    []description
}

func (r *results) note(session int, method string, hit bool) {
	if !slices.Contains(r.order, method) {
		r.order = append(r.order, method)
	}
	for len(r.found[method]) <= session {
		r.found[method] = append(r.found[method], nil)
	}
	r.found[method][session] = append(r.found[method][session], hit)
}

func run(w io.Writer, folder string, half, budget, steps int) (err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "recall-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := ctxdir.Init(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := load(ctx, s, folder)
	if err != nil {
		return err
	}
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // it was only read
	if _, err := x.Update(ctx, search.UpdateOptions{}); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b *session) int { return cmp.Compare(b.tokens(), a.tokens()) })
	r := &results{found: map[string][][]bool{}}
	n, tokens, cases, same, sessions := 0, 0, 0, [][]float64{}, 0
	var took time.Duration
	for i, session := range all {
		if i%2 != half {
			continue
		}
		facts := session.facts()
		if len(facts) == 0 {
			continue
		}
		tokens += session.tokens()
		r.sessions = append(r.sessions, fmt.Sprintf("%s, %d tokens", session.tool, session.tokens()))
		for _, f := range facts {
			r.facts = append(r.facts, session.describe(f))
			d, err := session.ask(ctx, s, x, f, budget, func(method string, hit bool) { r.note(n, method, hit) })
			if err != nil {
				return err
			}
			took += d
			cases++
		}
		shares, err := session.prefixes(ctx, s, x, budget, steps)
		if err != nil {
			return err
		}
		same = append(same, shares)
		n++
		sessions++
	}
	fmt.Fprintf(w, "%d facts in %d sessions of %d tokens in the mean, budget %d; %v each.\n\n",
		cases, sessions, tokens/max(sessions, 1), budget, (took / time.Duration(max(cases, 1))).Round(100*time.Microsecond))
	r.print(w)
	sum, count := 0.0, 0
	for _, shares := range same {
		for _, v := range shares {
			sum += v
			count++
		}
	}
	share := 100 * sum / float64(max(count, 1))
	fmt.Fprintf(w, "\nSame beginning as the text of the call before: %.1f %% of the bytes, in %d calls.\n", share, count)
	return nil
}

// ask asks for a fact with each method.
func (t *session) ask(
	ctx context.Context, s *ctxdir.Store, x *search.Index, f fact, budget int, note func(method string, hit bool),
) (took time.Duration, err error) {
	before := t.turns[:f.at]
	for _, m := range []struct{ name, text string }{
		{newest, baseline.LastN(before, budget)},
		{"opencode's rule", baseline.Opencode(before, budget)},
		{"codex's rule", baseline.Codex(before, budget)},
		{"random passages", baseline.Random(before, budget, uint64(f.at))},
		{bm25, t.corpus.BM25(f.at, f.query, budget)},
	} {
		note(m.name, strings.Contains(m.text, f.word))
	}
	began := time.Now()
	a, err := t.build(ctx, s, x, f.at, f.query, budget)
	if err != nil {
		return 0, err
	}
	took = time.Since(began)
	note(ours, strings.Contains(a.Text, f.word) || strings.Contains(a.Text, strings.TrimPrefix(f.word, t.root)))
	return took, nil
}

// build assembles from the first n messages of a session.
func (t *session) build(
	ctx context.Context, s *ctxdir.Store, x *search.Index, n int, query string, budget int,
) (*assemble.Assembly, error) {
	const branch = "past"
	err := s.Use(ctx, t.id, func(c *ctxdir.Context) error {
		main, err := c.Branch(t.branch)
		if err != nil {
			return err
		}
		_, err = main.Fork(ctx, branch, t.positions[n])
		return err
	})
	if err != nil {
		return nil, err
	}
	a, err := assemble.Build(ctx, s, assemble.Request{
		Context: t.id, Branch: branch, Query: query, MaxTokens: budget, Index: x, Weights: &weights,
	})
	if err == nil && a.Tokens > budget {
		err = fmt.Errorf("%d tokens of %d", a.Tokens, budget)
	}
	return a, errors.Join(err, s.Use(ctx, t.id, func(c *ctxdir.Context) error {
		b, err := c.Branch(branch)
		if err != nil {
			return err
		}
		return b.Remove(ctx)
	}))
}

// prefixes returns, for calls of the model in a row, the part of each text that begins as the one before.
func (t *session) prefixes(ctx context.Context, s *ctxdir.Store, x *search.Index, budget, steps int) (shares []float64, err error) {
	last, query := "", ""
	from := len(t.turns) / 2
	for i := range t.turns {
		turn := &t.turns[i]
		if turn.Role == "user" && !turn.Result {
			query = turn.Text
		}
		if i < from || turn.Role != "assistant" || len(shares) >= steps {
			continue
		}
		a, err := t.build(ctx, s, x, i, query, budget)
		if err != nil {
			return nil, err
		}
		if last != "" {
			same := 0
			for same < min(len(last), len(a.Text)) && last[same] == a.Text[same] {
				same++
			}
			shares = append(shares, float64(same)/float64(max(len(a.Text), 1)))
		}
		last = a.Text
	}
	return shares, nil
}
