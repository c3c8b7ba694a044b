// Api measures the API over HTTP beside the library in the same run.
//
//	go run ./cmd/api [-out FILE] [-dir FOLDER] [-quick] [-idle DURATION]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// row is a figure of the report.
type row struct {
	what, goal, got string
	met             bool
}

// options say how much is measured.
type options struct {
	dir       string
	rounds    int
	ops       int // in a round
	contexts  int
	followers int
	large     int // bytes of a message
	idle      time.Duration
}

func main() {
	if served() || appended() {
		return
	}
	out := flag.String("out", "", "write to this `FILE`")
	dir := flag.String("dir", "", "make stores in this `FOLDER`")
	quick := flag.Bool("quick", false, "only show that everything works")
	idle := flag.Duration("idle", 0, "measure only what a server costs that is idle for so long, beside import --follow")
	flag.Parse()
	o := options{*dir, 5, 400, 10_000, 5_000, 64 << 20, *idle}
	if *quick {
		o.rounds, o.ops, o.contexts, o.followers, o.large = 1, 20, 100, 50, 8<<20
	}
	var report bytes.Buffer
	err := run(context.Background(), &report, o)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	dir, err := os.MkdirTemp(o.dir, "api-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	var rows []row
	measures := []func(context.Context, options) ([]row, error){beside, list, follow, followers, large}
	if o.idle > 0 {
		measures = []func(context.Context, options) ([]row, error){quiet}
	}
	for _, measure := range measures {
		some, err := measure(ctx, o)
		if err != nil {
			return err
		}
		rows = append(rows, some...)
	}
	fmt.Fprintf(out, "# The API beside the library\n\nThe library is in the process that measures, the server in another one, on loopback.\n"+
		"%d rounds of %d operations, in turns.\n\n", o.rounds, o.ops)
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
