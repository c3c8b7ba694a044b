// Replica measures how two stores are brought together, beside cp, rsync and git with the same data in the same run.
//
//	go run ./cmd/replica [-out FILE] [-dir FOLDER] [-rounds N] [-rows REGEXP] [-quick] [-data FOLDER]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/replica"
)

// row is a figure of the report.
type row struct {
	what, goal, got string
	met             bool
}

// options say how much is measured.
type options struct {
	dir      string
	corpus   *corpus.Corpus
	rounds   int
	long     int // messages of a long context
	contexts int // of a store with many
	copied   int // messages of a first copy
	most     int // messages of the context that memory is measured with
}

func main() {
	if isChild() {
		return
	}
	out := flag.String("out", "", "write to this `FILE`")
	dir := flag.String("dir", "", "make stores in this `FOLDER`")
	rounds := flag.Int("rounds", 3, "of first copies")
	quick := flag.Bool("quick", false, "only show that everything works")
	rows := flag.String("rows", ".", "measure only what matches `REGEXP`: long, many, link, first, memory")
	data := flag.String("data", "../testdata", "sample messages from the conversations in this `FOLDER`")
	flag.Parse()
	o := options{dir: *dir, rounds: *rounds, long: 20_000, contexts: 1000, copied: 100_000, most: 1_000_000}
	if *quick {
		o.rounds, o.long, o.contexts, o.copied, o.most = 1, 500, 40, 2000, 2000
	}
	err := report(o, *data, *rows, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// report writes the report before it removes the stores, which takes a while.
func report(o options, data, rows, out string) (err error) {
	which, err := regexp.Compile(rows)
	if err != nil {
		return err
	}
	if o.corpus, err = corpus.Load(data); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp(o.dir, "replica-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	var text bytes.Buffer
	if err := run(context.Background(), &text, o, which); err != nil {
		return err
	}
	if out != "" {
		return os.WriteFile(out, text.Bytes(), 0o600)
	}
	_, err = os.Stdout.Write(text.Bytes())
	return err
}

func run(ctx context.Context, out io.Writer, o options, which *regexp.Regexp) error {
	var rows []row
	for _, m := range []struct {
		name    string
		measure func(context.Context, options) ([]row, error)
	}{{"long", long}, {"many", many}, {"link", link}, {"first", first}, {"memory", memory}} {
		if !which.MatchString(m.name) {
			continue
		}
		some, err := m.measure(ctx, o)
		if err != nil {
			return err
		}
		rows = append(rows, some...)
	}
	fmt.Fprintf(out, "# Bringing stores together\n\nMessages are sampled from %s. Copies are durable: each lane ends with a sync of its "+
		"file system. Times are medians\nof %d rounds, in turns. Trips and bytes are those of the protocol, over a pipe.\n\n",
		o.corpus.About, o.rounds)
	fmt.Fprint(out, "| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, r := range rows {
		verdict := "met"
		switch {
		case r.goal == "":
			verdict = ""
		case !r.met:
			verdict = "missed"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", r.what, r.goal, r.got, verdict)
	}
	return nil
}

// rounded is a duration for the report.
func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// plain is a number with commas.
func plain(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", plain(n/1000), n%1000)
}

func trips(c *replica.Client) string {
	if c.Trips == 1 {
		return "1 trip"
	}
	return fmt.Sprintf("%d trips", c.Trips)
}
