package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// fill makes a store with a context, and returns the context open.
func fill(ctx context.Context, dir string, messages int) (*ctxdir.Store, *ctxdir.Context, error) {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	var drafts []ctxdir.Draft
	for i := range messages {
		drafts = append(drafts, ctxdir.Draft{Body: []byte(text(i))})
	}
	if _, err := c.Active().AppendBatch(ctx, drafts); err != nil {
		return nil, nil, errors.Join(err, c.Close(), s.Close())
	}
	return s, c, nil
}

// text is a message of about 1 KiB.
func text(i int) string {
	return fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("some words of a message ", 40))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// beside compares appends and ranges with those of the library, in turns.
func beside(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "beside")
	s, c, err := fill(ctx, dir, 2000)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close(), s.Close()) }()
	other, err := s.Create(ctx, ctxdir.Metadata{}) // for the server
	if err != nil {
		return nil, err
	}
	if err := other.Close(); err != nil {
		return nil, err
	}
	x, err := start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	appends := "/v1/contexts/" + other.ID().String() + "/branches/main/messages"
	ranges := "/v1/contexts/" + c.ID().String() + "/branches/main/messages?from=%d&to=%d"
	var library, server, libraryRange, serverRange []time.Duration
	timed := func(into *[]time.Duration, f func(i int) error) error {
		for i := range o.ops {
			began := time.Now()
			if err := f(i); err != nil {
				return err
			}
			*into = append(*into, time.Since(began))
		}
		return nil
	}
	for range o.rounds {
		err := errors.Join(
			timed(&library, func(i int) error { _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(text(i))}); return err }),
			timed(&server, func(i int) error { _, err := x.do("POST", appends, text(i)); return err }),
			timed(&libraryRange, func(i int) error {
				from := int64(i * 50 % 1900)
				// As the server does, for what other processes committed.
				return s.Use(ctx, c.ID(), func(c *ctxdir.Context) error {
					for m, err := range c.Active().Messages(ctx, from, from+50) {
						if err != nil {
							return err
						}
						if _, err := m.Body(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			}),
			timed(&serverRange, func(i int) error {
				from := i * 50 % 1900
				_, err := x.do("GET", fmt.Sprintf(ranges, from, from+50), "")
				return err
			}),
		)
		if err != nil {
			return nil, err
		}
	}
	compare := func(what string, most float64, ours, theirs []time.Duration) row {
		a, b := measure.Quantile(ours, 0.5), measure.Quantile(theirs, 0.5)
		ratio := float64(a) / float64(b)
		return row{
			what, fmt.Sprintf("≤ %.1f x the library", most),
			fmt.Sprintf("%.2f x: %s, library %s (p50)", ratio, milliseconds(a), milliseconds(b)), ratio <= most,
		}
	}
	return []row{
		compare("durable append of 1 KiB", 1.5, server, library),
		compare("range of 50 messages", 2, serverRange, libraryRange),
	}, nil
}

// list asks for the first page of a store with many contexts.
func list(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "list")
	s, err := ctxdir.Init(dir)
	if err != nil {
		return nil, err
	}
	for i := range o.contexts {
		c, err := s.Create(ctx, ctxdir.Metadata{Title: fmt.Sprint("context ", i)})
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	for _, err := range s.List(ctx, ctxdir.ListOptions{}) { // writes the cache of lists
		if err != nil {
			return nil, err
		}
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	x, err := start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	var took []time.Duration
	for range 20 {
		began := time.Now()
		if _, err := x.do("GET", "/v1/contexts?limit=200", ""); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	first, p50 := took[0], measure.Quantile(took, 0.5)
	return []row{{
		fmt.Sprintf("first 200 of %d contexts", o.contexts), "≤ 50 ms",
		fmt.Sprintf("%s (p50); the first time %s", milliseconds(p50), milliseconds(first)), p50 <= 50*time.Millisecond,
	}}, nil
}

// large reads one large message.
func large(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "large")
	s, c, err := fill(ctx, dir, 1)
	if err != nil {
		return nil, err
	}
	body := `{"role":"user","content":"` + strings.Repeat("some words ", o.large/11) + `"}`
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: []byte(body)})
	if err := errors.Join(err, c.Close(), s.Close()); err != nil {
		return nil, err
	}
	x, err := start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	path := "/v1/contexts/" + c.ID().String() + "/branches/main/messages"
	if _, err := x.do("GET", path+"?from=0&to=1", ""); err != nil {
		return nil, err
	}
	before, _, err := x.memory()
	if err != nil {
		return nil, err
	}
	if err := x.resetPeak(); err != nil {
		return nil, err
	}
	b, err := x.do("GET", path+"?last=1", "")
	if err != nil {
		return nil, err
	}
	_, peak, err := x.memory()
	if err != nil {
		return nil, err
	}
	if len(b) < len(body) {
		return nil, fmt.Errorf("a message of %d bytes came with %d", len(body), len(b))
	}
	return []row{{
		fmt.Sprintf("memory while a message of %s is read", mebibytes(int64(o.large))), "≤ 32 MiB",
		fmt.Sprintf("%s more than before (%s in all)", mebibytes(peak-before), mebibytes(peak)), peak-before <= 32<<20,
	}}, nil
}
