package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ctxdir/ctxdir"
)

// errEnd marks the end of the input.
var errEnd = errors.New("end of input")

// inputLine is a line of the input, without its line break.
type inputLine struct {
	number int64 // from 1 on
	text   []byte
	err    error // the line is too long
}

// lineQueue reads up to one batch of lines ahead of its consumer.
type lineQueue struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   []inputLine
	bytes   int
	end     error // ends the queue
}

func newLineQueue(r io.Reader, limit int64) *lineQueue {
	q := &lineQueue{}
	q.changed = sync.NewCond(&q.mu)
	go q.read(bufio.NewReaderSize(r, 256<<10), limit)
	return q
}

// take waits for lines and returns those that have arrived, at most a batch. At the end it returns errEnd, or the
// error of reading.
func (q *lineQueue) take() ([]inputLine, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && q.end == nil {
		q.changed.Wait()
	}
	if len(q.lines) == 0 {
		return nil, q.end
	}
	lines := q.lines
	q.lines, q.bytes = nil, 0
	q.changed.Broadcast()
	return lines, nil
}

// cancel ends the queue.
func (q *lineQueue) cancel() { q.finish(errEnd) }

func (q *lineQueue) finish(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end == nil {
		q.end = err
	}
	q.changed.Broadcast()
}

// put waits for room, and reports whether the queue still accepts lines.
func (q *lineQueue) put(l inputLine) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.end == nil && len(q.lines) > 0 && (len(q.lines) >= batchLines || q.bytes+len(l.text) > batchBytes) {
		q.changed.Wait()
	}
	if q.end != nil {
		return false
	}
	q.lines = append(q.lines, l)
	q.bytes += len(l.text)
	q.changed.Broadcast()
	return true
}

func (q *lineQueue) read(r *bufio.Reader, limit int64) {
	for number := int64(1); ; number++ {
		text, err := readLine(r, limit)
		if err != nil && !errors.Is(err, ctxdir.ErrTooLarge) {
			if errors.Is(err, io.EOF) {
				err = errEnd
			}
			q.finish(err)
			return
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if !q.put(inputLine{number, text, err}) {
			return
		}
	}
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
				return nil, fmt.Errorf("%w: %d bytes, more than %d", ctxdir.ErrTooLarge, size, limit)
			}
			return line, nil
		default:
			return nil, err
		}
	}
}
