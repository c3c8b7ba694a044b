// Follow measures how long it takes from a commit in one process to the event in another one.
//
//	go run ./cmd/follow [-out FILE] [-dir FOLDER] [-n N]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/fsnotify/fsnotify"
	"github.com/google/uuid"
)

const (
	rounds = 5
	pause  = 3 * time.Millisecond // between two appends that do not come in a burst
	others = 1000                 // contexts in the store that is followed whole
)

func main() {
	if len(os.Args) == 6 && os.Args[1] == "write" {
		if err := write(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
			fail(err)
		}
		return
	}
	out := flag.String("out", "", "write to this `FILE`")
	dir := flag.String("dir", "", "make stores in this `FOLDER`")
	n := flag.Int("n", 1000, "appends in a round")
	flag.Parse()
	var report bytes.Buffer
	err := run(&report, *dir, *n)
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
	fmt.Fprintln(os.Stderr, "follow:", err)
	os.Exit(1)
}

// stamp is the body of a message: when its append was called for.
type stamp struct {
	At int64 `json:"at"` // nanoseconds since 1970
}

// write appends n messages to a context, and prints how long each append took.
func write(store, id, n, wait string) error {
	ctx := context.Background()
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	between, err := time.ParseDuration(wait)
	if err != nil {
		return err
	}
	s, err := ctxdir.Open(store)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Open(ctx, uuid.MustParse(id))
	if err != nil {
		return err
	}
	defer c.Close()
	var took []time.Duration
	for range count {
		time.Sleep(between)
		began := time.Now()
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: fmt.Appendf(nil, `{"role":"user","at":%d}`, began.UnixNano())}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

// lane is a way to learn of commits.
type lane struct {
	name  string
	watch func(ctx context.Context, s *ctxdir.Store, c *ctxdir.Context) (*ctxdir.Watcher, error)
	many  bool // in a store of many contexts
	burst bool
	took  []time.Duration // from the call to the event
	call  []time.Duration // of the appends themselves
}

func run(out io.Writer, dir string, n int) error {
	dir, err := os.MkdirTemp(dir, "follow-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	one := func(ctx context.Context, _ *ctxdir.Store, c *ctxdir.Context) (*ctxdir.Watcher, error) {
		return c.Watch(ctx, c.Summary().Sequence)
	}
	all := func(ctx context.Context, s *ctxdir.Store, _ *ctxdir.Context) (*ctxdir.Watcher, error) {
		return s.Watch(ctx)
	}
	lanes := []*lane{
		{name: "one context", watch: one},
		{name: "one context, in a burst", watch: one, burst: true},
		{name: fmt.Sprintf("a store of %d contexts", others), watch: all, many: true},
		{name: fmt.Sprintf("a store of %d contexts, in a burst", others), watch: all, many: true, burst: true},
	}
	var floor []time.Duration
	for range rounds {
		for _, l := range lanes {
			if err := l.round(dir, n); err != nil {
				return err
			}
		}
		took, err := bare(dir, n)
		if err != nil {
			return err
		}
		floor = append(floor, took...)
	}
	report(out, lanes, floor, n)
	return nil
}

// round follows what another process appends.
func (l *lane) round(dir string, n int) error {
	ctx := context.Background()
	path := filepath.Join(dir, strconv.FormatBool(l.many))
	s, err := ctxdir.Init(path)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := fill(ctx, s, map[bool]int{false: 0, true: others}[l.many]); err != nil {
		return err
	}
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := l.watch(ctx, s, c)
	if err != nil {
		return err
	}
	defer w.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	wait := pause
	if l.burst {
		wait = 0
	}
	writer := exec.Command(self, "write", path, c.ID().String(), strconv.Itoa(n), wait.String())
	var printed bytes.Buffer
	writer.Stdout, writer.Stderr = &printed, os.Stderr
	if err := writer.Start(); err != nil {
		return err
	}
	if err := l.take(w.Events(ctx), n); err != nil {
		return errors.Join(err, writer.Wait())
	}
	if err := writer.Wait(); err != nil {
		return err
	}
	var call []time.Duration
	if err := json.Unmarshal(printed.Bytes(), &call); err != nil {
		return err
	}
	l.call = append(l.call, call...)
	return nil
}

// take notes how long each of n messages was under way.
func (l *lane) take(events iter.Seq[ctxdir.Event], n int) error {
	for e := range events {
		if e.Kind != ctxdir.EventMessage || e.Op != ctxdir.OpAppended {
			return fmt.Errorf("an unexpected event: %s %s: %w", e.Kind, e.Op, e.Problem)
		}
		now := time.Now()
		var told stamp
		if err := json.Unmarshal(e.Message.Stored, &told); err != nil {
			return err
		}
		l.took = append(l.took, now.Sub(time.Unix(0, told.At)))
		if n--; n == 0 {
			break
		}
	}
	return nil
}

// fill makes contexts until there are n.
func fill(ctx context.Context, s *ctxdir.Store, n int) error {
	there := 0
	for _, err := range s.IDs() {
		if err != nil {
			return err
		}
		there++
	}
	for ; there < n; there++ {
		c, err := s.Create(ctx, ctxdir.Metadata{})
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// bare is how long the system takes from a write to a file to telling of it, in one process.
func bare(dir string, n int) (took []time.Duration, err error) {
	folder, err := os.MkdirTemp(dir, "bare-")
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(folder, "file"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.Add(folder); err != nil {
		return nil, err
	}
	for range n {
		time.Sleep(pause)
		began := time.Now()
		if _, err := f.WriteAt([]byte("x"), 0); err != nil {
			return nil, err
		}
		select {
		case <-w.Events:
		case err := <-w.Errors:
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

func report(out io.Writer, lanes []*lane, floor []time.Duration, n int) {
	fmt.Fprintf(out, `# Following a store

Generated by `+"`go run ./cmd/follow`"+` in `+"`bench/`"+`; do not edit. One process appends and another one
follows, in %d rounds of %d appends that alternate between the rows of the table. *Append* is the
time of the call. *To the event* is the time from the call to the event with the message, so it
includes the append with its fdatasync. It can be shorter than the append, since a follower reports
a commit when it is written, shortly before it is durable. The pause between two appends is %s,
except in bursts.

| followed | append, median | to the event, median | 99th percentile | as a multiple of the append |
| --- | --- | --- | --- | --- |
`, rounds, n, pause)
	for _, l := range lanes {
		took, call := measure.Quantile(l.took, 0.5), measure.Quantile(l.call, 0.5)
		slow := measure.Quantile(l.took, 0.99)
		fmt.Fprintf(out, "| %s | %s | %s | %s | %.2f |\n", l.name, short(call), short(took), short(slow), float64(took)/float64(call))
	}
	fmt.Fprintf(out, "\nIn one process, the time from a plain write to the hint of the system is %s, 99th percentile %s.\n",
		short(measure.Quantile(floor, 0.5)), short(measure.Quantile(floor, 0.99)))
	worst := time.Duration(0)
	for _, l := range lanes {
		if !l.burst {
			worst = max(worst, measure.Quantile(l.took, 0.5))
		}
	}
	met := map[bool]string{true: "met", false: "missed"}[worst < goal]
	fmt.Fprintf(out, "\nGoal: a median below %s from commit to event. Result: %s.\n", goal, met)
}

const goal = 10 * time.Millisecond

func short(d time.Duration) string { return d.Round(time.Microsecond).String() }
