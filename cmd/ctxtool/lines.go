package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ctxdir/ctxdir"
	"golang.org/x/sync/semaphore"
)

// A batch is one commit, of at most so many lines and bytes.
const (
	batchLines = 1000
	batchBytes = 8 << 20
)

// inputLine is a line of the input, without its line break.
type inputLine struct {
	number int64 // from 1 on
	text   []byte
	err    error // the line is too long
}

// lineReader reads up to one batch of lines ahead of its consumer.
type lineReader struct {
	lines chan inputLine
	room  *semaphore.Weighted // in bytes
	err   error               // of reading, once lines is closed
}

func readLines(ctx context.Context, r io.Reader, limit int64) *lineReader {
	q := &lineReader{lines: make(chan inputLine, batchLines), room: semaphore.NewWeighted(batchBytes)}
	go func() {
		defer close(q.lines)
		q.err = q.read(ctx, bufio.NewReaderSize(r, 256<<10), limit)
	}()
	return q
}

func (q *lineReader) read(ctx context.Context, r *bufio.Reader, limit int64) error {
	for number := int64(1); ; number++ {
		text, err := readLine(r, limit)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, ctxdir.ErrTooLarge):
			return err
		case err == nil && len(bytes.TrimSpace(text)) == 0:
			continue
		}
		line := inputLine{number, text, err}
		if err := q.room.Acquire(ctx, line.weight()); err != nil {
			return err
		}
		select {
		case q.lines <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// weight is the room that a line takes: a longer line than a batch takes all of it.
func (l inputLine) weight() int64 { return min(int64(len(l.text)), batchBytes) }

// next waits for a line, and returns the lines that have arrived, at most a batch. It returns none after the last line.
func (q *lineReader) next(ctx context.Context) (lines []inputLine) {
	var line inputLine
	var ok bool
	select {
	case line, ok = <-q.lines:
	case <-ctx.Done():
	}
	weight := int64(0)
	for ok {
		lines, weight = append(lines, line), weight+line.weight()
		if len(lines) == batchLines {
			break
		}
		select {
		case line, ok = <-q.lines:
		default:
			ok = false
		}
	}
	q.room.Release(weight)
	return lines
}

// readLine reads a line of any length. It drops a line longer than limit bytes, and returns ErrTooLarge. It returns
// io.EOF only after the last line.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	size := int64(0)
	for {
		piece, err := r.ReadSlice('\n')
		if size += int64(len(piece)); size <= limit+1 {
			line = append(line, piece...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && size > 0, err == nil:
			line = bytes.TrimSuffix(line, []byte("\n"))
			if size > limit+1 || int64(len(line)) > limit {
				return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", ctxdir.ErrTooLarge, size, limit)
			}
			return line, nil
		default:
			return nil, err
		}
	}
}
