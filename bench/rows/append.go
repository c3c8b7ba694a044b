package rows

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const appendGoal = "p50 and p99 ≤ 1.0 × SQLite (modernc, FULL); flat within 1.1 ×"

// few bounds the appends of engines that replace a file with each: it frees an inode each time, and too many of
// those slow the making of files down for the lanes that follow.
const few = 30

func appendRow(ctx context.Context, e *Env) ([]*Result, error) {
	sizes := e.sizes(1_000, 100_000, 1_000_000)
	var results []*Result
	var lanes []measure.Lane
	var at []int // the result a lane belongs to
	var open []*Fixture
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	for i, n := range sizes {
		r := &Result{Row: "durable append, one message, long-lived handle", At: Count(n), Goal: appendGoal, Unit: Nanoseconds}
		results = append(results, r)
		for _, eng := range e.able(n) {
			// Where n is small, a turn's appends would make it another size: each turn then begins with a new context.
			renew := n
			get, filled := e.Fresh, int64(0)
			if n > 1_000 {
				renew, get, filled = 0, e.Shared, n
			}
			f, err := get(eng, filled)
			if err != nil {
				return nil, err
			}
			open = append(open, f)
			lanes, at = append(lanes, e.appendLane(f, renew, engine.Full)), append(at, i)
		}
		for _, files := range []bool{false, true} {
			lane, err := e.floorLane(files)
			if err != nil {
				return nil, err
			}
			lanes, at = append(lanes, lane), append(at, i)
		}
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		results[at[k]].Cells = append(results[at[k]].Cells, cellOf(lanes[k].Name, s))
	}
	for _, r := range results {
		r.atMost(1, value, "p50 / ", engine.Ours, engine.Modernc)
		r.atMost(1, p99, "p99 / ", engine.Ours, engine.Modernc)
	}
	flat(results, 1.1, engine.Ours)
	results[0].Notes = append(results[0].Notes,
		"\""+floorSync+"\" is a pwrite to a preallocated file, and an fdatasync. \""+floorFiles+"\" also creates the message "+
			"file: openat(O_CREAT|O_EXCL) of a temporary name, write, close, renameat, in a folder that is empty at first. "+
			"Neither takes a lock or preallocates space during the measurement.",
		"Message files are made when appends pause for 20 ms, after 250 ms, or when 1,024 wait. So a turn may end before "+
			"its files are made; the row of appends one by one and a flush has the whole cost.",
		"At the smallest size, each turn uses a new context. At larger sizes, the measured appends make the context longer. "+
			"p99 and mean include appends that wait for a background seal or a burst of files.")
	for i, r := range results {
		for k, lane := range lanes {
			if at[k] == i && lane.Name == engine.Ours {
				if err := e.explain(r, lane); err != nil {
					return nil, err
				}
			}
		}
	}
	return results, nil
}

// appendLane appends to a context; with renew, to a new one of so many messages in each turn.
func (e *Env) appendLane(f *Fixture, renew int64, d engine.Durability) measure.Lane {
	ops := e.ops(500)
	if f.Engine.Largest > 0 {
		ops = min(ops, few)
	}
	turns := uint64(0)
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Open(d); err != nil {
				return err
			}
			if renew > 0 {
				turns++
				f.Stream = e.Corpus.Stream(seed + turns<<32)
				if err := f.CloseContext(); err != nil {
					return err
				}
				if err := f.fill(renew); err != nil {
					return err
				}
			}
			// What a handle does at its first write, opening files, is not what a long-lived one does.
			if err := f.Append(); err != nil {
				return err
			}
			return f.Settle()
		},
		Turn: func(t *measure.Turn) error {
			for range ops {
				if t.Over() {
					break
				}
				if err := t.Time(f.Append); err != nil {
					return err
				}
			}
			return nil
		},
		After: f.Settle,
	}
}

// envelope is how many bytes more than the body a record of ours has, so that the floor writes as much.
const envelope = 143 + 380

// floorLane appends with bare system calls.
func (e *Env) floorLane(files bool) (measure.Lane, error) {
	name := floorSync
	if files {
		name = floorFiles
	}
	dir, err := e.folder("floor")
	if err != nil {
		return measure.Lane{}, err
	}
	s := e.Corpus.Stream(seed)
	var a *floor.Appender
	ops, next, turn := e.ops(500), int64(0), 0
	return measure.Lane{
		Name: name,
		Before: func() error {
			if a != nil {
				a.Close()
			}
			turn++
			var err error
			if a, err = floor.NewAppender(filepath.Join(dir, fmt.Sprint(turn)), files); err != nil {
				return err
			}
			return a.Lay(space(s, next, ops))
		},
		Turn: func(t *measure.Turn) error {
			for range ops {
				name, record := floorRecord(s, next)
				next++
				if err := t.Time(func() error { return a.Append(name, record) }); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func floorRecord(s *corpus.Stream, i int64) (name string, record []byte) {
	return s.ID(i).String() + ".json", append(make([]byte, envelope, envelope+len(s.Body(i))), s.Body(i)...)
}

func space(s *corpus.Stream, from int64, n int) int64 {
	var sum int64
	for i := range int64(n) {
		sum += envelope + int64(len(s.Body(from+i)))
	}
	return sum
}

// relaxedRow says what giving up durability buys.
func relaxedRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(10_000)
	r := &Result{
		Row:  "relaxed append, one message, long-lived handle",
		At:   Count(n),
		Unit: Nanoseconds,
		Goal: "≤ 1.0 × SQLite NORMAL",
		Notes: []string{
			"A relaxed append survives the end of the process, but not a power cut. SQLite runs with synchronous=NORMAL, bbolt " +
				"with NoSync, and the others without fsync.",
		},
	}
	var lanes []measure.Lane
	for _, eng := range e.able(n) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lanes = append(lanes, e.appendLane(f, 0, engine.Relaxed))
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(1, value, "p50 / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, lanes[0])
}
