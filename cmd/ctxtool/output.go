package main

import (
	"bufio"
	"io"
)

// output is stdout. It marks its errors as errOutput.
type output struct {
	w         io.Writer  // as given: it may be a terminal
	sanitiser *sanitiser // nil unless w is a terminal
	buf       *bufio.Writer
	pager     *pager // nil if results go to w directly
}

func newOutput(w io.Writer) *output { return &output{w: w, buf: bufio.NewWriterSize(w, 64<<10)} }

func (o *output) Write(p []byte) (int, error) {
	shown := p
	if o.sanitiser != nil {
		shown = o.sanitiser.shown(p)
	}
	if _, err := o.buf.Write(shown); err != nil {
		return 0, errOutput{err}
	}
	return len(p), nil
}

// expectJSON announces that the results are JSON, so that the sanitiser escapes instead of dropping.
func (o *output) expectJSON() {
	if o.sanitiser != nil {
		o.sanitiser.json = true
	}
}

// Flush writes buffered results.
func (o *output) Flush() error {
	if err := o.buf.Flush(); err != nil {
		return errOutput{err}
	}
	return nil
}

// Close writes buffered results, and waits until the user leaves the pager.
func (o *output) Close() error {
	err := o.Flush()
	if o.pager != nil {
		if cerr := o.pager.Close(); err == nil && cerr != nil {
			err = errOutput{cerr}
		}
	}
	return err
}
