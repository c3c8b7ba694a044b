// Search measures the search index: its build, its size, updates and searches.
//
//	go run ./cmd/search [-out FILE] [-dir FOLDER] [-n MESSAGES] [-searches N] [-context MESSAGES] [-archive] [-store FOLDER]
//
// The messages are those of the test data, and of the folder that CTXDIR_TEST_DATA names, again and again. With -archive
// they have no files, which takes a tenth of the disk. With -store, the store is made once, stays, and is measured again.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/search"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// random chooses the same queries in each run.
var random = rand.New(rand.NewPCG(1, 0))

func main() {
	if len(os.Args) > 3 && os.Args[1] == "worker" {
		if err := work(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			fail(err)
		}
		return
	}
	out := flag.String("out", "", "write to this `FILE`")
	dir := flag.String("dir", "", "make the store in this `FOLDER`")
	n := flag.Int("n", 100_000, "messages")
	searches := flag.Int("searches", 1000, "searches of each kind")
	phases := flag.String("phases", "build,update,words,question,context,fresh", "measure these")
	archive := flag.Bool("archive", false, "archive the messages")
	each := flag.Int("context", 140, "messages of a context")
	store := flag.String("store", "", "make the store in this `FOLDER` unless it has one, and keep it")
	flag.Parse()
	var report bytes.Buffer
	err := run(&report, source{*dir, *store, *n, *each, *archive}, *searches, *phases)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "search:", err)
	os.Exit(1)
}

// source says which store is measured.
type source struct {
	dir, store string
	n, each    int // messages, and those of a context
	archive    bool
}

func run(w io.Writer, from source, searches int, phases string) error {
	c, err := corpus.Load(filepath.Join("..", "testdata"))
	if err != nil {
		return err
	}
	dir, text, err := from.open(c)
	if err != nil {
		return err
	}
	if from.store == "" {
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	}
	fmt.Fprintf(w, "%d messages from %s, %d in a context, %.1f MB of text.\n\n", from.n, c.About, from.each, float64(text)/1e6)
	fmt.Fprint(w, "| | |\n| --- | --- |\n")
	for phase := range strings.SplitSeq(phases, ",") {
		switch phase {
		case "build":
			err = errors.Join(os.RemoveAll(filepath.Join(dir, "derived")), worker(w, dir, phase, fmt.Sprint(text)))
		case "fresh":
			err = fresh(w, dir)
		default:
			err = worker(w, dir, phase, fmt.Sprint(searches))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open returns the folder of the store, and the size of its text.
func (f *source) open(c *corpus.Corpus) (dir string, text int64, err error) {
	if dir = f.store; dir == "" {
		if dir, err = os.MkdirTemp(f.dir, "search-"); err != nil {
			return "", 0, err
		}
	}
	note := filepath.Join(dir, "text-size")
	if b, err := os.ReadFile(note); err == nil {
		_, err = fmt.Sscan(string(b), &text)
		return dir, text, err
	}
	if text, err = f.fill(dir, c.Stream(1)); err == nil && f.store != "" {
		err = os.WriteFile(note, fmt.Append(nil, text), 0o600)
	}
	return dir, text, err
}

// fill makes the store, and returns the size of its text: each string of a message once.
func (f *source) fill(dir string, from *corpus.Stream) (text int64, err error) {
	ctx := context.Background()
	s, err := ctxdir.Init(dir, ctxdir.Options{RelaxedDurability: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for at := 0; at < f.n; at += f.each {
		c, err := s.Create(ctx, ctxdir.Metadata{Title: fmt.Sprint("context ", at/f.each)})
		if err != nil {
			return 0, err
		}
		var drafts []ctxdir.Draft
		for i := at; i < min(at+f.each, f.n); i++ {
			body := from.Body(int64(i))
			text += textSize(body)
			drafts = append(drafts, ctxdir.Draft{ID: from.ID(int64(i)), Body: body})
		}
		if _, err = c.Active().AppendBatch(ctx, drafts); err == nil {
			err = c.Close()
		}
		if err == nil && f.archive {
			_, err = s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{c.ID()}, All: true})
		}
		if err != nil {
			return 0, err
		}
	}
	return text, nil
}

// textSize returns the size of the strings of a message, equal ones once.
func textSize(body []byte) (size int64) {
	seen := map[string]bool{}
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return size
		}
		kind, length := d.StackIndex(d.StackDepth())
		if t.Kind() != '"' || kind == '{' && length%2 == 1 || seen[t.String()] {
			continue
		}
		seen[t.String()] = true
		size += int64(len(t.String()))
	}
}

// worker runs a phase in a process of its own.
func worker(w io.Writer, dir string, args ...string) error {
	cmd := exec.Command(os.Args[0], append([]string{"worker", dir}, args...)...)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	return cmd.Run()
}

func work(dir, phase string, args []string) error {
	ctx := context.Background()
	s, err := ctxdir.Open(dir, ctxdir.Options{CacheSize: 8 << 20})
	if err != nil {
		return err
	}
	defer s.Close()
	began, cpu := time.Now(), machine.CPUTime()
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // it was only measured
	if _, err = x.Update(ctx, search.UpdateOptions{}); err != nil {
		return err
	}
	took, used := time.Since(began), machine.CPUTime()-cpu
	var n int64
	if phase != "fresh" {
		if _, err := fmt.Sscan(args[0], &n); err != nil {
			return err
		}
	}
	switch phase {
	case "build":
		is, err := x.Stats(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("| build | %.1f s, %.1f s of processor time, %d MB of memory |\n", took.Seconds(), used.Seconds(), machine.PeakRSS()>>20)
		share := 100 * float64(is.Bytes) / float64(n)
		fmt.Printf("| index | %.1f MB, %.0f %% of the text, %d messages |\n", float64(is.Bytes)/1e6, share, is.Messages)
		return nil
	case "update":
		return updates(ctx, s, x, int(n))
	case "fresh":
		_, err := one(ctx, x, search.Query{Text: strings.Join(args, " "), Limit: 20})
		fmt.Printf("| the same, memory | %d MB |\n", machine.PeakRSS()>>20)
		return err
	}
	return searches(ctx, s, x, phase, int(n))
}

// updates measures the update after one message.
func updates(ctx context.Context, s *ctxdir.Store, x *search.Index, n int) error {
	words, ids, err := sample(ctx, s)
	if err != nil {
		return err
	}
	var all, own, used []time.Duration
	for range n {
		id := ids[random.IntN(len(ids))]
		text := strings.Join([]string{pick(words), pick(words), pick(words)}, " ")
		err := s.Use(ctx, id, func(c *ctxdir.Context) error {
			_, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"` + text + `"}`)})
			return err
		})
		if err != nil {
			return err
		}
		began, cpu := time.Now(), machine.CPUTime()
		if err := x.UpdateContext(ctx, id); err != nil {
			return err
		}
		own, used = append(own, time.Since(began)), append(used, machine.CPUTime()-cpu)
	}
	for range min(n, 100) {
		began := time.Now()
		if _, err := x.Update(ctx, search.UpdateOptions{}); err != nil {
			return err
		}
		all = append(all, time.Since(began))
	}
	row("update of a context by one message", own)
	row("the same, processor time", used)
	row("look at all contexts, nothing new", all)
	return nil
}

func row(name string, times []time.Duration) {
	fmt.Printf("| %s | p50 %.2f ms, p99 %.2f ms |\n", name, ms(measure.Quantile(times, 0.5)), ms(measure.Quantile(times, 0.99)))
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func pick(words []string) string { return words[random.IntN(len(words))] }

// maxSample bounds the words to search for.
const maxSample = 20_000

// sample returns words of random messages, and the contexts.
func sample(ctx context.Context, s *ctxdir.Store) (words []string, ids []uuid.UUID, err error) {
	seen := 0
	for id, err := range s.IDs() {
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	for range min(50, len(ids)) {
		err := s.Use(ctx, ids[random.IntN(len(ids))], func(c *ctxdir.Context) error {
			for m, err := range c.Active().Messages(ctx, 0, ctxdir.End) {
				if err != nil {
					return err
				}
				for _, w := range strings.FieldsFunc(string(m.Stored), func(r rune) bool { return r < 'a' || r > 'z' }) {
					if len(w) <= 3 || len(w) >= 15 {
						continue
					}
					if seen++; len(words) < maxSample {
						words = append(words, strings.Clone(w))
					} else if i := random.IntN(seen); i < maxSample {
						words[i] = strings.Clone(w)
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return words, ids, nil
}

// searches measures searches of one kind.
func searches(ctx context.Context, s *ctxdir.Store, x *search.Index, kind string, n int) error {
	words, ids, err := sample(ctx, s)
	if err != nil {
		return err
	}
	var times, used []time.Duration
	hits := 0
	for range n {
		q := search.Query{Limit: 20}
		count := 1 + random.IntN(3)
		switch kind {
		case "question":
			count = 8 + random.IntN(5)
		case "context":
			q.Contexts = []uuid.UUID{ids[random.IntN(len(ids))]}
		}
		var text []string
		for range count {
			text = append(text, pick(words))
		}
		q.Text = strings.Join(text, " ")
		began, cpu := time.Now(), machine.CPUTime()
		found, err := one(ctx, x, q)
		if err != nil {
			return err
		}
		times, used = append(times, time.Since(began)), append(used, machine.CPUTime()-cpu)
		hits += found
	}
	name := map[string]string{
		"words": "1 to 3 words", "question": "question of 8 to 12 words", "context": "1 to 3 words in one context",
	}[kind]
	row(fmt.Sprintf("%s, %.1f hits", name, float64(hits)/float64(n)), times)
	row("the same, processor time", used)
	fmt.Printf("| memory | %d MB |\n", machine.PeakRSS()>>20)
	return nil
}

func one(ctx context.Context, x *search.Index, q search.Query) (hits int, err error) {
	for _, err := range x.Search(ctx, q) {
		if err != nil {
			return hits, err
		}
		hits++
	}
	return hits, nil
}

// fresh measures a search in a new process.
func fresh(w io.Writer, dir string) error {
	var times []time.Duration
	var memory bytes.Buffer
	for range 20 {
		memory.Reset()
		began := time.Now()
		if err := worker(&memory, dir, "fresh", "release", "notes"); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	p50, p99 := measure.Quantile(times, 0.5), measure.Quantile(times, 0.99)
	fmt.Fprintf(w, "| a search in a new process | p50 %.0f ms, p99 %.0f ms |\n", ms(p50), ms(p99))
	_, err := w.Write(memory.Bytes())
	return err
}
