// Locomo measures how much evidence package assemble finds in the conversations of LoCoMo.
//
//	LOCOMO_DIR=FOLDER go run ./cmd/locomo [-files 42,43] [-budget 4000] [-out FILE]
//
// Weights were chosen on the conversations 26, 30 and 41.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/bench/baseline"
	"github.com/ctxdir/ctxdir/search"
)

// unanswerable is the category of questions without an answer in the conversation.
const unanswerable = 5

func main() {
	files := flag.String("files", "42,43", "the conversations")
	budget := flag.Int("budget", 4000, "tokens")
	out := flag.String("out", "", "write to this `FILE`")
	flag.Func("weights", "other weights, as `JSON`", func(text string) error { return json.Unmarshal([]byte(text), &weights) })
	flag.Parse()
	folder := os.Getenv("LOCOMO_DIR")
	if folder == "" {
		fmt.Fprintln(os.Stderr, "locomo: skipped: LOCOMO_DIR does not name the folder of LoCoMo")
		return
	}
	var report bytes.Buffer
	err := run(&report, folder, strings.Split(*files, ","), *budget)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "locomo:", err)
		os.Exit(1)
	}
}

// conversation is one of LoCoMo.
type conversation struct {
	turns     []turn
	questions []question
}

type turn struct {
	ID      string `json:"dia_id"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
	at      time.Time
}

type question struct {
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category int      `json:"category"`
}

func (t *turn) said() string {
	text := t.Speaker + ": " + strings.Join(strings.Fields(t.Text), " ")
	if t.Caption != "" {
		text += " [shares " + t.Caption + "]"
	}
	return text
}

func read(path string) (*conversation, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the caller names it
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, err
	}
	c := &conversation{}
	if err := json.Unmarshal(members["qa"], &c.questions); err != nil {
		return nil, err
	}
	for n := 1; members[fmt.Sprint("session_", n)] != nil; n++ {
		var turns []turn
		var text string
		err := errors.Join(json.Unmarshal(members[fmt.Sprint("session_", n)], &turns),
			json.Unmarshal(members[fmt.Sprintf("session_%d_date_time", n)], &text))
		if err != nil {
			return nil, err
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", text)
		if err != nil {
			return nil, err
		}
		for i := range turns {
			turns[i].at = at.Add(time.Duration(i) * time.Second)
		}
		c.turns = append(c.turns, turns...)
	}
	return c, nil
}

var turnID = regexp.MustCompile(`D\d+:\d+`)

// method finds the turns for a question, and returns a text.
type method struct {
	name string
	find func(question string) (string, error)
}

// result is what a method found, by conversation and question: any of the turns that answer it, or all.
type result struct{ any, all [][]bool }

const (
	bm25 = "BM25, whole messages"
	ours = "assemble"
)

func run(w io.Writer, folder string, files []string, budget int) error {
	ctx := context.Background()
	results, order := map[string]*result{}, []string{}
	largest, prefix := 0, time.Duration(0)
	for i, name := range files {
		c, err := read(filepath.Join(folder, name+".json"))
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "locomo-")
		if err != nil {
			return err
		}
		err = c.measure(ctx, dir, budget, func(method string, any, all bool, tokens int, took time.Duration) {
			r := results[method]
			if r == nil {
				r = &result{make([][]bool, len(files)), make([][]bool, len(files))}
				results[method] = r
				order = append(order, method)
			}
			r.any[i], r.all[i] = append(r.any[i], any), append(r.all[i], all)
			largest, prefix = max(largest, tokens), prefix+took
		})
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
	}
	n := len(slices.Concat(results[ours].any...))
	fmt.Fprintf(w, "LoCoMo %s: %d questions, %d tokens; largest text %d tokens, %v each.\n\n",
		strings.Join(files, ", "), n, budget, largest, (prefix / time.Duration(n)).Round(100*time.Microsecond))
	table(w, files, order, results)
	return nil
}

// table writes what each method found, with intervals by question, and the lead over BM25 in each conversation and, by
// resampling them, in all.
func table(w io.Writer, files, order []string, results map[string]*result) {
	fmt.Fprintf(w, "| | any | lead of %[1]s, points | all | lead of %[1]s, points |\n| --- | --- | --- | --- | --- |\n", ours)
	for _, name := range order {
		r := results[name]
		fmt.Fprintf(w, "| %s |", name)
		for _, of := range [][2][][]bool{{results[ours].any, r.any}, {results[ours].all, r.all}} {
			lead := ""
			if name != ours {
				lead = leadByQuestion(of[0], of[1])
			}
			fmt.Fprintf(w, " %v | %s |", baseline.Estimate(baseline.Alone(slices.Concat(of[1]...))), lead)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n| lead of %s over BM25, points | any | all |\n| --- | --- | --- |\n", ours)
	r, base := results[ours], results[bm25]
	for i, name := range files {
		fmt.Fprintf(w, "| conversation %s, %d questions | %s | %s |\n", name, len(r.any[i]),
			leadByQuestion(r.any[i:i+1], base.any[i:i+1]), leadByQuestion(r.all[i:i+1], base.all[i:i+1]))
	}
	if len(files) >= 5 { // resampling fewer says little
		fmt.Fprintf(w, "| all, by conversation | %s | %s |\n", baseline.Lead(r.any, base.any).Points(), baseline.Lead(r.all, base.all).Points())
	}
}

func leadByQuestion(a, b [][]bool) string {
	return baseline.Lead(baseline.Alone(slices.Concat(a...)), baseline.Alone(slices.Concat(b...))).Points()
}

// measure asks the questions of a conversation.
func (c *conversation) measure(
	ctx context.Context, dir string, budget int, note func(method string, any, all bool, tokens int, took time.Duration),
) error {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	cc, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		return err
	}
	defer cc.Close()
	turns, err := c.store(ctx, cc)
	if err != nil {
		return err
	}
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // it was only read
	corpus, used := baseline.NewCorpus(turns), 0
	methods := []method{
		{"last N", func(string) (string, error) { return baseline.LastN(turns, budget), nil }},
		{"random", func(q string) (string, error) { return baseline.Random(turns, budget, uint64(len(q))), nil }},
		{bm25, func(q string) (string, error) { return corpus.BM25(len(turns), q, budget), nil }},
		{ours, func(q string) (string, error) {
			a, err := assemble.Build(ctx, s, assemble.Request{Context: cc.ID(), Query: q, MaxTokens: budget, Index: x, Weights: &weights})
			if err != nil {
				return "", err
			}
			if used = a.Tokens; used > budget {
				return "", fmt.Errorf("%d tokens of %d", used, budget)
			}
			return a.Text, nil
		}},
	}
	return c.ask(methods, &used, note)
}

// store appends the turns to a context.
func (c *conversation) store(ctx context.Context, cc *ctxdir.Context) (turns []baseline.Turn, err error) {
	var drafts []ctxdir.Draft
	tokens := assemble.O200k()
	for i := range c.turns {
		t := &c.turns[i]
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		body, err := json.Marshal(map[string]string{"role": role, "content": t.said()})
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, ctxdir.Draft{CreatedAt: t.at, Body: body})
		turns = append(turns, baseline.Turn{Text: t.said(), Role: role, Tokens: tokens.Count(t.said()) + 1})
	}
	_, err = cc.Active().AppendBatch(ctx, drafts)
	return turns, err
}

// ask asks the questions with each method. used is the number of tokens of a text, 0 for one of a baseline.
func (c *conversation) ask(
	methods []method, used *int, note func(method string, any, all bool, tokens int, took time.Duration),
) error {
	text := map[string]string{}
	for i := range c.turns {
		text[c.turns[i].ID] = c.turns[i].said()
	}
	for _, q := range c.questions {
		var wanted []string
		for _, e := range q.Evidence {
			for _, id := range turnID.FindAllString(e, -1) {
				if text[id] != "" {
					wanted = append(wanted, text[id])
				}
			}
		}
		if q.Category == unanswerable || len(wanted) == 0 {
			continue
		}
		for _, m := range methods {
			*used = 0
			began := time.Now()
			found, err := m.find(q.Question)
			if err != nil {
				return err
			}
			hits := 0
			for _, turn := range wanted {
				if strings.Contains(found, turn) {
					hits++
				}
			}
			took := time.Since(began)
			if *used == 0 {
				took = 0
			}
			note(m.name, hits > 0, hits == len(wanted), *used, took)
		}
	}
	return nil
}

var weights = assemble.DefaultWeights
