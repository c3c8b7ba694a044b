package rows

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
	codec "github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

const (
	floorStat = "floor: list and stat"
	floorHash = "floor: read and hash"
)

// checkRow looks whether a context is in order.
func checkRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	f, err := e.Unchanged(e.named(engine.Ours)[0], n)
	if err != nil {
		return nil, err
	}
	var results []*Result
	for _, r := range []struct {
		name     string
		readData bool
		floor    measure.Lane
	}{
		{"check", false, e.bareCheckLane(f, floorStat, func(path string) error {
			_, err := os.Lstat(path)
			return err
		})},
		{"check --read-data", true, e.bareCheckLane(f, floorHash, hashed())},
	} {
		result := &Result{Row: r.name, At: Count(n), Unit: Nanoseconds}
		lanes := []measure.Lane{e.checkLane(ctx, f, r.readData), r.floor}
		samples, err := measure.Run(ctx, e.plan(), lanes)
		if err != nil {
			return nil, err
		}
		for k, s := range samples {
			result.Cells = append(result.Cells, cellOf(lanes[k].Name, s))
		}
		results = append(results, result)
	}
	results[0].Notes = append(results[0].Notes,
		"The floors list the folder, and stat or read one file after the other by its path. "+
			"The page cache is warm. The sum is XXH64, as for messages.")
	return results, nil
}

// hashed returns what reads and sums a file.
func hashed() func(path string) error {
	var buf []byte
	var sum uint64
	return func(path string) (err error) {
		buf, err = floor.Read(path, buf)
		sum ^= codec.Sum(buf)
		return err
	}
}

func (e *Env) checkLane(ctx context.Context, f *Fixture, readData bool) measure.Lane {
	once := func() error {
		s, err := ctxdir.Open(f.Dir, ctxdir.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		defer s.Close()
		id, err := uuid.Parse(f.ID)
		if err != nil {
			return err
		}
		for found, err := range s.Check(ctx, ctxdir.CheckOptions{Contexts: []uuid.UUID{id}, ReadData: readData}) {
			if err != nil {
				return err
			}
			return fmt.Errorf("check found %+v", found)
		}
		return nil
	}
	return measure.Lane{Name: engine.Ours, Before: once, Turn: e.someTimes(once)}
}

func (e *Env) bareCheckLane(f *Fixture, name string, look func(path string) error) measure.Lane {
	once := func() error {
		return filepath.WalkDir(filepath.Join(f.Dir, f.ID, "messages"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return look(path)
		})
	}
	return measure.Lane{Name: name, Before: once, Turn: e.someTimes(once)}
}

func (e *Env) someTimes(once func() error) func(t *measure.Turn) error {
	return func(t *measure.Turn) error {
		for range e.ops(20) {
			if t.Over() {
				break
			}
			if err := t.Time(once); err != nil {
				return err
			}
		}
		return nil
	}
}
