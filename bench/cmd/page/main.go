// Page measures the page of ctxtool serve in Chromium, with a conversation of a million messages and a store of ten
// thousand contexts.
//
//	go run ./cmd/page [-out FILE] [-dir FOLDER] [-messages N] [-contexts N] [-seconds N]
//
// It needs node, and the packages of web (npm ci there). web/bench/page.mjs drives the browser.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ctxdir/ctxdir/bench/machine"
)

type options struct {
	dir      string
	web      string
	messages int
	contexts int
	seconds  int
}

// row is a figure of the report.
type row struct {
	What string `json:"what"`
	Goal string `json:"goal"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

func main() {
	o := options{}
	out := flag.String("out", "", "write to this `FILE`")
	flag.StringVar(&o.dir, "dir", "", "make stores in this `FOLDER`")
	flag.StringVar(&o.web, "web", "../web", "the `FOLDER` of the page")
	flag.IntVar(&o.messages, "messages", 1_000_000, "messages of the large conversation")
	flag.IntVar(&o.contexts, "contexts", 10_000, "contexts of the large store")
	flag.IntVar(&o.seconds, "seconds", 60, "seconds of scrolling and of quiet")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var report bytes.Buffer
	err := run(ctx, &report, o)
	stop()
	if err == nil && *out != "" {
		err = os.WriteFile(*out, report.Bytes(), 0o600)
	} else if err == nil {
		_, err = os.Stdout.Write(report.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "page-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	id, err := conversation(ctx, filepath.Join(dir, "long"), o.messages)
	if err != nil {
		return err
	}
	if err := contexts(ctx, filepath.Join(dir, "many"), o.contexts); err != nil {
		return err
	}
	tool := filepath.Join(dir, "ctxtool")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", tool, "./cmd/ctxtool")
	build.Dir, build.Stderr = filepath.Dir(o.web), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	long, err := start(ctx, tool, filepath.Join(dir, "long"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, long.close()) }()
	many, err := start(ctx, tool, filepath.Join(dir, "many"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.close()) }()
	rows, browser, err := measure(ctx, o, long.address, many.address, id)
	if err != nil {
		return err
	}
	m := machine.Describe(dir)
	fmt.Fprintf(out, "# The page in a browser\n\n%s, %d cores, %s on %s. %s, on the same machine as the server. A conversation of\n"+
		"%d messages, a store of %d contexts. Medians of five rounds where nothing else is said.\n\n",
		m.CPU, m.Cores, m.FileSystem, m.OS, browser, o.messages, o.contexts)
	fmt.Fprint(out, "| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, r := range rows {
		verdict := "met"
		if !r.Met {
			verdict = "missed"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", r.What, r.Goal, r.Got, verdict)
	}
	return nil
}

// measure drives a browser, which prints a figure a line.
func measure(ctx context.Context, o options, long, many, id string) (rows []row, browser string, err error) {
	cmd := exec.CommandContext(ctx, "node", filepath.Join("bench", "page.mjs"))
	cmd.Dir = o.web
	cmd.Env = append(os.Environ(), "PAGE_LONG="+long, "PAGE_MANY="+many, "PAGE_CONTEXT="+id, "PAGE_SECONDS="+strconv.Itoa(o.seconds),
		"PAGE_MESSAGES="+strconv.Itoa(o.messages))
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	scan := bufio.NewScanner(lines)
	for scan.Scan() {
		var r row
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			browser = scan.Text()
			continue
		}
		rows = append(rows, r)
	}
	return rows, browser, errors.Join(scan.Err(), cmd.Wait())
}
