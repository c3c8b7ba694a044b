package rows

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// workerEnv makes this program a worker: rows that need several processes, or one that holds nothing else,
// start it again.
const workerEnv = "CTXDIR_BENCH_WORKER"

// job is what a worker is to do.
type job struct {
	Kind    string // append, read, memory, import, idle
	Engine  string
	Dir     string
	Context string
	Corpus  string // file with bodies, or with the session to import
	Seed    uint64
	Count   int           // of messages to append
	N       int64         // messages there are to read, or to import
	Readers int           // goroutines
	For     time.Duration // to read
}

// outcome is what a worker found.
type outcome struct {
	Times      []time.Duration
	Start, End time.Time
	Errors     int
	Err        string
	Done       int64 // messages
	PeakRSS    int64
	CPU        time.Duration
	Written    int64 // bytes
}

// Worker does a worker's job and reports true, if this process is one. A program that runs rows calls it first.
func Worker() bool {
	spec := os.Getenv(workerEnv)
	if spec == "" {
		return false
	}
	if err := work(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func work(spec string) error {
	var j job
	if err := json.Unmarshal([]byte(spec), &j); err != nil {
		return err
	}
	do, err := j.prepare()
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	out := outcome{Start: time.Now()}
	err = do(&out)
	out.End = time.Now()
	out.PeakRSS = machine.PeakRSS()
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(out))
}

func (j *job) prepare() (func(*outcome) error, error) {
	switch j.Kind {
	case "append":
		return j.appending()
	case "read":
		return j.reading()
	case "memory":
		return j.remembering()
	case "import":
		return j.importing()
	case "idle":
		_, err := corpus.ReadFile(j.Corpus)
		return func(*outcome) error { return nil }, err
	}
	return nil, fmt.Errorf("no such job: %q", j.Kind)
}

// fixture is the context that the job is about, open.
func (j *job) fixture() (*Fixture, error) {
	c := corpus.Fixed("", []byte("{}"))
	if j.Corpus != "" {
		var err error
		if c, err = corpus.ReadFile(j.Corpus); err != nil {
			return nil, err
		}
	}
	f := &Fixture{Engine: engine.Named(j.Engine), Dir: j.Dir, ID: j.Context, N: j.N, Stream: c.Stream(j.Seed)}
	if f.Engine == nil {
		return nil, fmt.Errorf("no engine %q", j.Engine)
	}
	return f, f.Open(engine.Full)
}

func (j *job) appending() (func(*outcome) error, error) {
	f, err := j.fixture()
	if err != nil {
		return nil, err
	}
	return func(out *outcome) error {
		for range j.Count {
			start := time.Now()
			err := f.Append()
			out.Times = append(out.Times, time.Since(start))
			if err != nil {
				out.Errors++
				out.Err = err.Error()
				f.N++
			}
		}
		out.End = time.Now()
		return f.Close()
	}, nil
}

// worker is a process that waits for its start.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a worker and waits until it is ready.
func (j job) start() (*worker, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command(exe)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(spec))
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	pipe, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(pipe)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
		return nil, fmt.Errorf("worker: %w", errors.Join(err, w.cmd.Wait()))
	}
	return w, nil
}

func (w *worker) run() error {
	_, err := io.WriteString(w.in, "go\n")
	return err
}

func (w *worker) wait() (*outcome, error) {
	var out outcome
	err := json.NewDecoder(w.out).Decode(&out)
	return &out, errors.Join(err, w.in.Close(), w.cmd.Wait())
}

// here does jobs in this process, side by side: to profile them.
func here(jobs []job) measure.Lane {
	var dos []func(*outcome) error
	return measure.Lane{
		Name: "here",
		Before: func() error {
			dos = nil
			for i := range jobs {
				jobs[i].Seed += uint64(len(jobs)) // of messages that are not there yet
				do, err := jobs[i].prepare()
				if err != nil {
					return err
				}
				dos = append(dos, do)
			}
			return nil
		},
		Turn: func(*measure.Turn) error {
			errs := make([]error, len(dos))
			var group sync.WaitGroup
			for i, do := range dos {
				group.Go(func() { errs[i] = do(&outcome{}) })
			}
			group.Wait()
			return errors.Join(errs...)
		},
	}
}

// alone starts a worker and waits for what it finds.
func (j job) alone() (*outcome, error) {
	w, err := j.start()
	if err != nil {
		return nil, err
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	return w.wait()
}
