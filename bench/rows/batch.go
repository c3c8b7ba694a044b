package rows

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const (
	floorBatch    = "floor: sync + files, one by one"
	floorParallel = "floor: sync + files, side by side"
	withFiles     = engine.Ours + ", with its files"
	batchSize     = 1_000
)

// batchRow appends a thousand messages with one sync.
func batchRow(ctx context.Context, e *Env) ([]*Result, error) {
	n, size := e.size(10_000), batchSize
	if e.Quick {
		size = 50
	}
	r := &Result{Row: fmt.Sprintf("durable batch of %s", Count(int64(size))), At: Count(n), Unit: Nanoseconds,
		Goal: "≤ 1.0 × SQLite; with its files ≤ 1.3 × floor of creating the files",
		Notes: []string{"The lane \"" + withFiles + "\" appends a batch and waits until all its message files are there. " +
			"The floor is one pwrite of all messages and one fdatasync, and then openat, write, close, renameat for each file. " +
			"One thread does this, or twice as many threads as cores. The goal compares with the faster of the two."}}
	var lanes []measure.Lane
	var explained measure.Lane
	for _, eng := range e.able(n) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lanes = append(lanes, e.batchLane(f, size))
		if eng.Name == engine.Ours {
			explained = e.flushedBatchLane(f, size)
			lanes = append(lanes, explained)
		}
	}
	for _, parallel := range []bool{false, true} {
		lane, err := e.floorBatchLane(parallel, size)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, lane)
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	faster := floorBatch
	if r.Cell(floorParallel).Value < r.Cell(floorBatch).Value {
		faster = floorParallel
	}
	r.atMost(1, value, "p50 / ", engine.Ours, sqlites...)
	r.atMost(1.3, value, "with its files, p50 / ", withFiles, faster)
	return []*Result{r}, e.explain(r, explained)
}

// batches is how many batches a lane appends in a turn.
func (e *Env) batches(eng *engine.Engine) int {
	if e.Quick || eng != nil && eng.Largest > 0 {
		return 1
	}
	return 4
}

// batchLane appends batches.
func (e *Env) batchLane(f *Fixture, size int) measure.Lane {
	return e.batchesLane(f, f.Engine.Name, size, func(ms []engine.Message) error { return f.c.AppendBatch(ms) })
}

// flushedBatchLane appends batches and waits for the message files of each.
func (e *Env) flushedBatchLane(f *Fixture, size int) measure.Lane {
	return e.batchesLane(f, withFiles, size, func(ms []engine.Message) error {
		if err := f.c.AppendBatch(ms); err != nil {
			return err
		}
		return f.c.(engine.Flusher).Flush()
	})
}

func (e *Env) batchesLane(f *Fixture, name string, size int, appendBatch func([]engine.Message) error) measure.Lane {
	return measure.Lane{
		Name: name,
		Before: func() error {
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			if err := f.Append(); err != nil { // the handle's first write opens files
				return err
			}
			return f.Settle()
		},
		Turn: func(t *measure.Turn) error {
			for range e.batches(f.Engine) {
				ms := make([]engine.Message, size)
				for i := range ms {
					ms[i] = f.Message(f.N)
					f.N++
				}
				if err := t.Time(func() error { return appendBatch(ms) }); err != nil {
					return err
				}
				// The next batch is not to wait for this one's seal.
				if err := f.Settle(); err != nil {
					return err
				}
			}
			return nil
		},
		After: f.Settle,
	}
}

func (e *Env) floorBatchLane(parallel bool, size int) (measure.Lane, error) {
	dir, err := e.folder("floor")
	if err != nil {
		return measure.Lane{}, err
	}
	name, atOnce := floorBatch, 1
	if parallel {
		name, atOnce = floorParallel, 2*runtime.GOMAXPROCS(0)
	}
	a, err := floor.NewAppender(filepath.Join(dir, "context"), true)
	if err != nil {
		return measure.Lane{}, err
	}
	s := e.Corpus.Stream(seed)
	next := int64(0)
	return measure.Lane{
		Name:   name,
		Before: func() error { return a.Lay(space(s, next, e.batches(nil)*size)) },
		Turn: func(t *measure.Turn) error {
			for range e.batches(nil) {
				names, records := make([]string, size), make([][]byte, size)
				for i := range names {
					names[i], records[i] = floorRecord(s, next)
					next++
				}
				if err := t.Time(func() error { return a.Batch(names, records, atOnce) }); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// fiveKRow compares a long tool result with a short text.
func fiveKRow(ctx context.Context, e *Env) ([]*Result, error) {
	const short = ", short text"
	n := e.size(10_000)
	r := &Result{Row: "durable append with a 5 KB tool result", At: Count(n), Unit: Nanoseconds}
	text := []byte(`{"type":"user","message":{"role":"user","content":"Run the tests again, please, and tell me which of them fail."}}`)
	// No two are equal.
	results := make([][]byte, 8192)
	for i := range results {
		results[i] = fmt.Appendf(nil,
			`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"%d\\n%s"}]}}`,
			i, bytes.Repeat([]byte("ok  \\tpackage/of/the/project\\t0.123s\\n"), 5*1024/37))
	}
	var lanes []measure.Lane
	for _, eng := range e.named(engine.Ours, engine.Modernc, engine.Mattn) {
		for _, bodies := range [][][]byte{{text}, results} {
			f, err := e.Fresh(eng, n)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			f.Stream = corpus.Fixed("", bodies...).Stream(seed)
			lane := e.appendLane(f, 0, engine.Full)
			if len(bodies) == 1 {
				lane.Name += short
			}
			lanes = append(lanes, lane)
		}
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	return []*Result{r}, nil
}
