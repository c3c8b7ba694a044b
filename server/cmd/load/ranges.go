package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ranges reads 50 messages of an open context, at random places of its log and of its segments.
func (l *load) ranges(ctx context.Context) error {
	u, err := l.open(ctx, uuid.New())
	if err != nil {
		return err
	}
	if u.c, err = u.s.Create(ctx, ctxdir.Metadata{}); err != nil {
		return err
	}
	const messages = 4000
	row := make([]byte, l.size)
	for n := int64(0); n < messages; {
		drafts := make([]ctxdir.Draft, 1)
		if n < messages-400 {
			drafts = make([]ctxdir.Draft, 50)
		}
		var b pgx.Batch
		for i := range drafts {
			drafts[i].Body = message()
			b.Queue(`INSERT INTO bare VALUES ($1, $2, $3)`, u.id, -n, row)
			n++
		}
		if _, err := u.c.Active().AppendBatch(ctx, drafts); err != nil {
			return err
		}
		if err := l.pool.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
	}
	if err := l.rangesOf(ctx, u, messages-400, messages, "log", u.rangeOf); err != nil {
		return err
	}
	if err := u.c.Admin().Seal(ctx); err != nil {
		return err
	}
	if err := l.rangesOf(ctx, u, 0, messages, "segments", u.rangeOf); err != nil {
		return err
	}
	file, err := u.fsys.OpenFile("raw", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	size := int64(l.size)
	for n := range int64(messages) {
		_, _ = rand.Read(row)
		if _, err := file.WriteAt(row, n*size); err != nil {
			return err
		}
		if err := file.Datasync(); err != nil {
			return err
		}
	}
	b := make([]byte, 50*size)
	return errors.Join(l.rangesOf(ctx, u, 0, messages, "file without cached extents", func(_ context.Context, place int64) error {
		_, err := file.ReadAt(b, place*size)
		return err
	}), file.Close(), u.close())
}

func (u *user) rangeOf(ctx context.Context, place int64) error {
	ms, err := u.c.Active().Range(ctx, place, place+50)
	if err == nil && len(ms) != 50 {
		err = fmt.Errorf("%d messages", len(ms))
	}
	return err
}

// rangesOf times reads of 50 messages between two positions, in turns with selects of 50 rows.
func (l *load) rangesOf(ctx context.Context, u *user, from, to int64, where string, read func(context.Context, int64) error) error {
	var ours, bare []float64
	before, reads := u.fsys.Statements(), int64(0)
	place := from
	for range *turns {
		rate, err := during(1, func(int) error {
			place = from + (place-from+97)%(to-from-50)
			reads++
			return read(ctx, place)
		})
		if err != nil {
			return err
		}
		ours = append(ours, 1e6/rate)
		rate, err = during(1, func(int) error {
			place = from + (place-from+97)%(to-from-50)
			rows, err := l.pool.Query(ctx, `SELECT id, data FROM bare WHERE user_id = $1 AND id > $2 AND id <= $3`, u.id, -place-50, -place)
			if err != nil {
				return err
			}
			list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
				ID   int64
				Data []byte
			}])
			if err == nil && len(list) != 50 {
				err = fmt.Errorf("%d rows", len(list))
			}
			return err
		})
		if err != nil {
			return err
		}
		bare = append(bare, 1e6/rate)
	}
	fmt.Printf("range of 50, %s: %.0f us, bare select %.0f us, ratio %.2f; %.2f statements for each\n",
		where, median(ours), median(bare), median(ours)/median(bare), float64(u.fsys.Statements()-before)/float64(reads))
	return nil
}

// idle opens users that do nothing.
func (l *load) idle(ctx context.Context) error {
	ids := make([]uuid.UUID, *idle)
	for i := range ids {
		ids[i] = uuid.New()
		u, err := l.open(ctx, ids[i])
		if err != nil {
			return err
		}
		if u.c, err = u.s.Create(ctx, ctxdir.Metadata{}); err != nil {
			return err
		}
		if _, err := u.c.Active().Append(ctx, ctxdir.Draft{Body: message()}); err != nil {
			return err
		}
		if err := u.close(); err != nil {
			return err
		}
	}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	files := make([]*pgfs.FS, len(ids))
	begin := time.Now()
	for i, id := range ids {
		f, err := pgfs.Open(ctx, l.pool, id, pgfs.Options{Owner: "load", Keys: l.keys})
		if err != nil {
			return err
		}
		files[i] = f
	}
	took := time.Since(begin) / time.Duration(len(ids))
	fmt.Printf("opening a user: %v, %d statements, %.1f KB\n", took, files[0].Statements(), (heap()-before)/1e3/float64(len(ids)))
	stores := make([]*ctxdir.Store, len(ids))
	begin = time.Now()
	for i := range ids {
		s, err := ctxdir.Open("database", knobs.Options(engine.WithFS(files[i])))
		if err != nil {
			return err
		}
		for _, err := range s.List(ctx, ctxdir.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		stores[i] = s
	}
	took = time.Since(begin) / time.Duration(len(ids))
	fmt.Printf("and its store, listed: %v, %d statements in all, %.1f KB in all\n", took, files[0].Statements(),
		(heap()-before)/1e3/float64(len(ids)))
	runtime.KeepAlive(stores)
	return nil
}
