// Replica measures how two stores are brought together, beside cp, rsync and git with the same data in the same run.
//
//	go run ./cmd/replica [-out FILE] [-dir FOLDER] [-rounds N] [-quick] [-data FOLDER]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
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
	data := flag.String("data", "../testdata", "sample messages from the conversations in this `FOLDER`")
	flag.Parse()
	o := options{dir: *dir, rounds: *rounds, long: 20_000, contexts: 1000, copied: 100_000, most: 1_000_000}
	if *quick {
		o.rounds, o.long, o.contexts, o.copied, o.most = 1, 500, 40, 2000, 2000
	}
	var report bytes.Buffer
	all, err := corpus.Load(*data)
	if err == nil {
		o.corpus = all
		err = run(context.Background(), &report, o)
	}
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	dir, err := os.MkdirTemp(o.dir, "replica-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	var rows []row
	for _, measure := range []func(context.Context, options) ([]row, error){long, many, link, first, memory} {
		some, err := measure(ctx, o)
		if err != nil {
			return err
		}
		rows = append(rows, some...)
	}
	fmt.Fprintf(out, "# Bringing stores together\n\nMessages are sampled from %s. Copies are durable: each lane ends with a sync of its file "+
		"system. Times are medians\nof %d rounds, in turns. Trips and bytes are those of the protocol, over a pipe.\n\n", o.corpus.About, o.rounds)
	fmt.Fprint(out, "| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, r := range rows {
		verdict := "met"
		if !r.met {
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
