package rows

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/klauspost/compress/zstd"
)

// thresholds are those of the table that the default was chosen by.
var thresholds = []struct {
	name  string
	bytes int64
}{{"1", 1}, {"1 KiB", 1 << 10}, {"4 KiB", 4 << 10}, {"16 KiB", 16 << 10}, {"none", -1}}

// contentRow says what moving texts to blobs costs, and saves, by threshold. Each body of the corpus is stored once:
// repeated ones would be shared.
func contentRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.Corpus.Len()
	if e.Quick {
		n = min(n, 50)
	}
	at := Count(int64(n)) + " real messages"
	size := &Result{Row: "store size", At: at, Unit: Bytes, Notes: []string{
		"Each store holds each message once, and is sealed and closed. The figure counts the blocks of all files and folders; " +
			"the bytes of the files are next to the name."}}
	write := &Result{Row: "durable append, by threshold", At: at, Unit: Nanoseconds}
	read := &Result{
		Row:   "whole branch decoded, by threshold",
		At:    at,
		Unit:  Nanoseconds,
		Notes: []string{"Time per message, read from segments and blobs after the logs are sealed."},
	}
	bodies := make([][]byte, n)
	s := e.Corpus.Once()
	for i := range bodies {
		bodies[i] = s.Body(int64(i))
	}
	if err := e.plainSizes(size, bodies); err != nil {
		return nil, err
	}
	var writes, reads []measure.Lane
	var stores []*contentStore
	defer func() {
		for _, c := range stores {
			c.close()
		}
	}()
	for _, t := range thresholds {
		c, err := e.newContentStore(ctx, t.bytes, bodies)
		if err != nil {
			return nil, err
		}
		stores = append(stores, c)
		name := engine.Ours + ", " + t.name
		cell, err := sizeCell(name, c.dir)
		if err != nil {
			return nil, err
		}
		size.Cells = append(size.Cells, cell)
		w, err := e.writeLane(ctx, name, t.bytes, bodies)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
		reads = append(reads, measure.Lane{Name: name, Turn: func(turn *measure.Turn) error { return c.read(ctx, turn) }})
	}
	for r, lanes := range map[*Result][]measure.Lane{write: writes, read: reads} {
		samples, err := measure.Run(ctx, e.plan(), lanes)
		if err != nil {
			return nil, err
		}
		for k, s := range samples {
			r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
		}
	}
	return []*Result{size, write, read}, nil
}

// plainSizes adds what the same messages take elsewhere.
func (e *Env) plainSizes(r *Result, bodies [][]byte) error {
	dir, err := e.folder("content")
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, b := range bodies {
		lines.Write(b)
		lines.WriteByte('\n')
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{"JSON Lines", lines.Bytes()}, {"JSON Lines, zstd", enc.EncodeAll(lines.Bytes(), nil)}} {
		sub := filepath.Join(dir, slug(f.name))
		if err := os.Mkdir(sub, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(sub, "messages"), f.content, 0o600); err != nil {
			return err
		}
		cell, err := sizeCell(f.name, sub)
		if err != nil {
			return err
		}
		r.Cells = append(r.Cells, cell)
	}
	for _, eng := range e.named(engine.Modernc) {
		f, err := e.Fresh(eng, int64(len(bodies)))
		if err != nil {
			return err
		}
		cell, err := sizeCell(eng.Name, f.Dir)
		if err != nil {
			return err
		}
		r.Cells = append(r.Cells, cell)
	}
	return nil
}

func sizeCell(name, dir string) (*Cell, error) {
	if err := machine.SyncAll(dir); err != nil {
		return nil, err
	}
	var blocks, size int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b, err := machine.Blocks(path)
		blocks += b
		if info, ierr := d.Info(); ierr == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	return &Cell{Name: name, Value: float64(blocks), N: 1, Note: Count(size) + " bytes"}, err
}

// contentStore is a store with one context of all bodies.
type contentStore struct {
	dir string
	s   *ctxdir.Store
	c   *ctxdir.Context
	n   int
}

func (e *Env) newContentStore(ctx context.Context, threshold int64, bodies [][]byte) (*contentStore, error) {
	dir, err := e.folder("content")
	if err != nil {
		return nil, err
	}
	build, err := ctxdir.Init(dir, ctxdir.Options{TextThreshold: threshold, RelaxedDurability: true})
	if err != nil {
		return nil, err
	}
	c, err := build.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		return nil, err
	}
	drafts := make([]ctxdir.Draft, len(bodies))
	for i, b := range bodies {
		drafts[i].Body = b
	}
	if _, err := c.Active().AppendBatch(ctx, drafts); err != nil {
		return nil, err
	}
	if err := c.Admin().Seal(ctx); err != nil {
		return nil, err
	}
	id := c.ID()
	if err := c.Close(); err != nil {
		return nil, err
	}
	s, err := ctxdir.Open(dir, ctxdir.Options{CacheSize: -1})
	if err != nil {
		return nil, err
	}
	if c, err = s.Open(ctx, id); err != nil {
		return nil, err
	}
	return &contentStore{dir, s, c, len(bodies)}, nil
}

func (c *contentStore) close() {
	_ = c.c.Close()
	_ = c.s.Close()
}

// read times the whole branch and records it per message.
func (c *contentStore) read(ctx context.Context, t *measure.Turn) error {
	for range 5 {
		start := time.Now()
		if err := func() error {
			ms, err := c.c.Active().Range(ctx, 0, ctxdir.End)
			if err != nil {
				return err
			}
			all, err := ctxdir.ResolveAll(ctx, ms)
			for _, b := range all {
				if err == nil {
					_, err = corpus.Decode(b)
				}
			}
			return err
		}(); err != nil {
			return err
		}
		t.Add(time.Since(start) / time.Duration(c.n))
		if t.Over() {
			break
		}
	}
	return nil
}

// writeLane appends the bodies one by one to a context of its own in each turn.
func (e *Env) writeLane(ctx context.Context, name string, threshold int64, bodies [][]byte) (measure.Lane, error) {
	dir, err := e.folder("content")
	if err != nil {
		return measure.Lane{}, err
	}
	next := 0
	var s *ctxdir.Store
	var c *ctxdir.Context
	return measure.Lane{
		Name: name,
		Before: func() (err error) {
			next++
			if s, err = ctxdir.Init(filepath.Join(dir, fmt.Sprint(next)), ctxdir.Options{TextThreshold: threshold}); err == nil {
				c, err = s.Create(ctx, ctxdir.Metadata{})
			}
			return err
		},
		Turn: func(t *measure.Turn) error {
			for i := range min(e.ops(500), len(bodies)) {
				if t.Over() {
					break
				}
				if err := t.Time(func() error {
					_, err := c.Active().Append(ctx, ctxdir.Draft{Body: bodies[i]})
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		},
		After: func() error {
			if err := c.Close(); err != nil {
				return err
			}
			return s.Close()
		},
	}, nil
}
