// Package rows holds what is measured: one file per subject.
package rows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// Env is what rows run in.
type Env struct {
	Dir      string // where the stores are made; deleted by who made it, when everything is over
	Corpus   *corpus.Corpus
	Engines  []*engine.Engine // ours first
	Rounds   int
	Quick    bool  // small sizes and few operations, to see that everything works
	Scale    int64 // the largest number of messages in a context
	Profiles string
	Logf     func(format string, args ...any)

	shared map[fixtureKey]*Fixture
	made   int
	Builds []Build
}

// Build says how long it took to fill a context.
type Build struct {
	Engine   string        `json:"engine"`
	Messages int64         `json:"messages"`
	Took     time.Duration `json:"took"`
}

// Row is a subject; it gives a result for each size it is measured at.
type Row struct {
	Name string
	Run  func(ctx context.Context, e *Env) ([]*Result, error)
}

// All are the rows in the order they run. Those that change a large context come after those that read it: engines
// append different numbers of messages, and a read of the newest or of all would then be of other messages for each.
var All = []Row{
	{"open", openRow},
	{"open-bare", viewsRow},
	{"resume", resumeRow},
	{"range", rangeRow},
	{"whole", wholeRow},
	{"id", idRow},
	{"check", checkRow},
	{"append", appendRow},
	{"append-relaxed", relaxedRow},
	{"append-many", manyRow},
	{"append-5k", fiveKRow},
	{"content", contentRow},
	{"batch", batchRow},
	{"goroutines", goroutinesRow},
	{"processes", processesRow},
	{"readers", readersRow},
	{"list", listRow},
	{"create", createRow},
	{"state", stateRow},
	{"fork", forkRow},
	{"seal", sealRow},
	{"erase", eraseRow},
	{"archive", archiveRow},
	{"import", importRow},
	{"memory", memoryRow},
	{"disk", diskRow},
}

// Run runs the rows whose name matches.
func (e *Env) Run(ctx context.Context, match *regexp.Regexp) ([]*Result, error) {
	var out []*Result
	for _, row := range All {
		if !match.MatchString(row.Name) {
			continue
		}
		e.Logf("%s …", row.Name)
		start := time.Now()
		results, err := row.Run(ctx, e)
		if err != nil {
			return out, fmt.Errorf("row %s: %w", row.Name, err)
		}
		for _, r := range results {
			r.Key = row.Name
			r.Took = time.Since(start)
		}
		e.Logf("%s: %.1f s", row.Name, time.Since(start).Seconds())
		out = append(out, results...)
	}
	return out, nil
}

// size is n, or what stands for it in a smoke test, within the scale.
func (e *Env) size(n int64) int64 {
	if e.Quick {
		n = map[int64]int64{1_000: 200, 10_000: 600, 100_000: 1_500, 1_000_000: 3_000}[n]
	}
	return min(n, e.Scale)
}

// sizes are the sizes that are left after scaling, each once.
func (e *Env) sizes(ns ...int64) []int64 {
	var out []int64
	for _, n := range ns {
		if n = e.size(n); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// ops is a number of operations in a turn.
func (e *Env) ops(n int) int {
	if e.Quick {
		return max(n/20, 3)
	}
	return n
}

func (e *Env) plan() measure.Plan {
	p := measure.Plan{
		Rounds: e.Rounds, Turn: 2 * time.Second, Total: 20 * time.Second,
		Quiet: func() error { return machine.SyncAll(e.Dir) },
	}
	if e.Scale <= 100_000 { // a look at some rows, not a report
		p.Turn, p.Total = p.Turn/2, p.Total/2
	}
	if e.Quick {
		p.Turn, p.Total = 200*time.Millisecond, time.Second
	}
	return p
}

// folder makes a new folder. Nothing is deleted while rows run: ext4 avoids the inodes of files that were deleted
// shortly before, and making files would be slow for whoever comes next.
func (e *Env) folder(name string) (string, error) {
	e.made++
	// The name is random: ext4 chooses a folder's part of the disk by it, and the last run's was deleted there.
	return os.MkdirTemp(e.Dir, fmt.Sprintf("%03d-%s-", e.made, name))
}

// Canary is how long it takes to make a file bare, in the median. Far above 50 µs something slows everybody down
// who makes files: see machine.Spread.
func (e *Env) Canary(ctx context.Context) (time.Duration, error) {
	dir, err := e.folder("canary")
	if err != nil {
		return 0, err
	}
	a, err := floor.NewAppender(dir, true)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	s := e.Corpus.Stream(seed)
	samples, err := measure.Run(ctx, measure.Plan{Rounds: 1, Turn: time.Minute}, []measure.Lane{{
		Name: "canary",
		Turn: func(t *measure.Turn) error {
			for i := range int64(1_000) {
				name, record := floorRecord(s, i)
				if err := t.Time(func() error { return a.Create(name, record) }); err != nil {
					return err
				}
			}
			return nil
		},
	}})
	if err != nil {
		return 0, err
	}
	return samples[0].Median(), nil
}

// able returns the engines that a context of n messages is measured with.
func (e *Env) able(n int64) []*engine.Engine {
	var out []*engine.Engine
	for _, eng := range e.Engines {
		if eng.Largest == 0 || n <= eng.Largest {
			out = append(out, eng)
		}
	}
	return out
}

// reading returns the engines that a row reads a context of n messages with. The lane with blobs shows what the default
// costs; it needs no context of a million.
func (e *Env) reading(n int64) []*engine.Engine {
	out := e.able(n)
	if n <= 100_000 {
		out = append(out, engine.Named(engine.Blobs))
	}
	return out
}

// named returns those of the engines that bear one of the names.
func (e *Env) named(names ...string) []*engine.Engine {
	var out []*engine.Engine
	for _, eng := range e.Engines {
		if slices.Contains(names, eng.Name) {
			out = append(out, eng)
		}
	}
	return out
}

// explain profiles our lane when a check of the result is missed.
func (e *Env) explain(r *Result, lane measure.Lane) error {
	if r.Met() {
		return nil
	}
	length, path := e.plan().Turn*3/2, ""
	if e.Profiles != "" {
		e.made++
		path = filepath.Join(e.Profiles, fmt.Sprintf("%03d-%s.pprof", e.made, slug(r.Row+" "+r.At)))
	}
	runtime.GC()
	var err error
	r.Profile, err = measure.Profiled(lane, e.plan(), length, path)
	return err
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

func slug(s string) string { return notPlain.ReplaceAllString(s, "-") }
