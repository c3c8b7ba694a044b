package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestReadLines reads more than the queue holds: batches stay within their bounds, and every line arrives once. A queue
// that does not make room again blocks for ever, which the bubble reports.
func TestReadLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 3000
		longest := strings.Repeat("x", batchBytes+1)
		input := longest + "\n" + strings.Repeat(strings.Repeat("x", 10<<10)+"\n\n", lines/2) + strings.Repeat("x\n", lines/2)
		q := readLines(t.Context(), strings.NewReader(input), 1<<30)
		read, last := 0, int64(0)
		for batch := q.next(t.Context()); len(batch) > 0; batch = q.next(t.Context()) {
			size := 0
			for _, line := range batch {
				if line.number <= last {
					t.Errorf("line %d after %d", line.number, last)
				}
				last, size = line.number, size+len(line.text)
			}
			if len(batch) > batchLines || len(batch) > 1 && size > batchBytes {
				t.Errorf("a batch of %d lines and %d bytes", len(batch), size)
			}
			read += len(batch)
			synctest.Wait() // the reader fills the queue
		}
		if read != lines+1 || q.err != nil {
			t.Errorf("%d lines, wanted %d: %v", read, lines+1, q.err)
		}
	})
}
