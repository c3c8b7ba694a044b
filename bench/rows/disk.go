package rows

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/machine"
)

const bodiesAlone = "bodies alone"

// diskRow measures the disk space of each engine.
func diskRow(_ context.Context, e *Env) ([]*Result, error) {
	n := e.size(10_000)
	r := &Result{Row: "disk used", At: Count(n), Unit: Bytes, Goal: "≤ 2.3 × the bodies; archived ≤ 0.3 ×",
		Notes: []string{"The figure counts the blocks of all files and folders after the store is closed."}}
	for _, eng := range append(e.able(n), engine.Named(engine.Archived)) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		if len(r.Cells) == 0 {
			var sum int64
			for i := range f.N {
				sum += int64(len(f.Stream.Body(i)))
			}
			r.Cells = append(r.Cells, &Cell{Name: bodiesAlone, Value: float64(sum), N: 1})
		}
		cell, err := blocksCell(eng.Name, f.Dir)
		if err != nil {
			return nil, err
		}
		r.Cells = append(r.Cells, cell)
	}
	r.atMost(2.3, value, "blocks / ", engine.Ours, bodiesAlone)
	r.atMost(0.3, value, "archived, blocks / ", engine.Archived, bodiesAlone)
	return []*Result{r}, nil
}

// blocksCell measures the blocks of a folder.
func blocksCell(name, dir string) (*Cell, error) {
	if err := machine.SyncAll(dir); err != nil {
		return nil, err
	}
	var sum int64
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b, err := machine.Blocks(path)
		sum += b
		if !d.IsDir() {
			files++
		}
		return err
	})
	return &Cell{Name: name, Value: float64(sum), N: 1, Note: Count(int64(files)) + " files"}, err
}
