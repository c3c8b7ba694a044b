package pgfs

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// beforeFetch does something before each query for the data of extents.
type beforeFetch struct{ do func() }

func (b *beforeFetch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == selectRun || q.SQL == selectData {
		b.do()
	}
	return ctx
}

func (b *beforeFetch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestReadBesideOverwrites overwrites a part of a file each time that a reader is about to fetch it, so that its rows are
// gone. They are not damaged: the reader looks again, until it is faster.
func TestReadBesideOverwrites(t *testing.T) {
	const times, size = 10, 600
	overwritten := -1 // until the file is there
	var h *file
	overwrite := func() {
		if overwritten < 0 || overwritten == times {
			return
		}
		overwritten++
		_, err := h.WriteAt(bytes.Repeat([]byte{byte(overwritten), 1}, size/2), 0)
		check(t, err)
		check(t, h.Sync())
	}
	d := newDisk(t)
	config := d.pool.Config()
	config.ConnConfig.Tracer = &beforeFetch{overwrite}
	var err error
	d.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	check(t, err)
	t.Cleanup(d.pool.Close)
	f := d.open()
	opened, err := f.OpenFile("file", os.O_RDWR|os.O_CREATE)
	check(t, err)
	h = opened.(*file)
	_, err = h.Write(bytes.Repeat([]byte{1, 2, 3}, 2*maxSmall)) // in memory are only small files
	check(t, err)
	check(t, h.Sync())
	overwritten = 1 // the block of ones would be a run, which stays in memory
	overwrite()     // an extent of its own
	b := make([]byte, size)
	_, err = h.ReadAt(b, 0)
	check(t, err)
	if overwritten != times || !bytes.Equal(b, bytes.Repeat([]byte{times, 1}, size/2)) {
		t.Errorf("after %d overwrites it reads %x…", overwritten, b[:8])
	}
	if len(d.damages) > 0 {
		t.Errorf("%d damages, such as %v", len(d.damages), d.damages[0])
	}
	check(t, h.Close())
	check(t, f.Close())
}
