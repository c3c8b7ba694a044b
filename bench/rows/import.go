package rows

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
)

// importRow imports a long session of another tool, in a process that does nothing else.
func importRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	path := filepath.Join(e.Dir, "history.jsonl")
	size, err := e.Corpus.WriteSession(path, n)
	if err != nil {
		return nil, err
	}
	cpu := &Result{Row: "import, processor time per message", At: Count(n), Unit: Nanoseconds, Goal: "≤ 105 µs",
		Notes: []string{"A separate process imports one session of Claude Code, of " + Count(size/n) + " bytes per message."}}
	written := &Result{Row: "import, bytes written per message", At: Count(n), Unit: Bytes, Goal: "≤ 9.2 KB",
		Notes: []string{"The kernel's count of the pages that the process wrote to (write_bytes in /proc/self/io)."}}
	var times, bytes []float64
	for range min(e.Rounds, 3) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir, err := e.folder("import")
		if err != nil {
			return nil, err
		}
		if err := machine.SyncAll(e.Dir); err != nil {
			return nil, err
		}
		out, err := job{Kind: "import", Dir: filepath.Join(dir, "store"), Corpus: path, N: n}.alone()
		if err != nil {
			return nil, err
		}
		times = append(times, float64(out.CPU)/float64(n))
		bytes = append(bytes, float64(out.Written)/float64(n))
	}
	for _, x := range []struct {
		r     *Result
		each  []float64
		limit float64
	}{{cpu, times, 105e3}, {written, bytes, 9200}} {
		x.r.Cells = append(x.r.Cells, &Cell{Name: engine.Ours, Value: median(x.each), N: len(x.each), Rounds: x.each})
		if x.r.Cells[0].Value > 0 { // only Linux counts the bytes
			x.r.Checks = append(x.r.Checks, Check{What: "median", Value: x.r.Cells[0].Value, Limit: x.limit, Unit: string(x.r.Unit)})
		}
	}
	return []*Result{cpu, written}, nil
}

// importing is the job of the process whose import is measured.
func (j *job) importing() (func(*outcome) error, error) {
	s, err := ctxdir.Init(j.Dir)
	if err != nil {
		return nil, err
	}
	return func(out *outcome) error {
		cpu, written := machine.CPUTime(), machine.Written()
		for r, err := range importer.Import(context.Background(), histories.Into(s), j.Corpus, importer.Options{Format: importer.ClaudeCode}) {
			if err == nil && (r.Added != j.N || r.Problems > 0) {
				err = fmt.Errorf("%d messages were added, and %d parts left out", r.Added, r.Problems)
			}
			if err != nil {
				return errors.Join(err, s.Close())
			}
			out.Done += r.Added
		}
		err := s.Close()
		out.CPU, out.Written = time.Duration(machine.CPUTime()-cpu), machine.Written()-written
		return err
	}, nil
}
