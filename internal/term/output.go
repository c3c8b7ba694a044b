package term

import (
	"bufio"
	"errors"
	"io"
	"os"
	"syscall"
)

// Output is stdout. It buffers results, and protects a terminal from what they hold. Its errors are [OutputError]s.
type Output struct {
	w         io.Writer // as given: it may be a terminal
	env       Env
	sanitiser *Sanitiser // nil unless w is a terminal
	buf       *bufio.Writer
	pager     *pager // nil if results go to w directly
}

// NewOutput returns an output to w.
func NewOutput(w io.Writer, env Env) *Output {
	o := &Output{w: w, env: env, buf: bufio.NewWriterSize(w, 64<<10)}
	if o.OnTerminal() {
		o.sanitiser = &Sanitiser{Colours: bool(o.Colours())}
	}
	return o
}

// OnTerminal reports whether results go to a terminal.
func (o *Output) OnTerminal() bool { return Is(o.w) }

// Colours returns the painter for results.
func (o *Output) Colours() Painter { return Colours(o.w, o.env) }

// Columns is the number of columns for results, 0 if unlimited.
func (o *Output) Columns() int { return o.env.columns(o.w) }

// Page sends results through a pager, if a user is there to use it. failed is called if $PAGER does not start, during a
// flush; results go to the screen then.
func (o *Output) Page(failed func(err error)) {
	screen, ok := o.w.(*os.File)
	if !ok || o.env.dumb() || !o.OnTerminal() {
		return
	}
	command := pagerCommand(o.env("PAGER"))
	columns, rows, err := file{screen}.Size()
	if err != nil || command == nil {
		return
	}
	if o.env("PAGER") == "" {
		failed = func(error) {}
	}
	o.pager = &pager{screen: screen, command: command, env: pagerEnv(o.env), columns: max(columns, 1), rows: rows, failed: failed}
	o.buf.Reset(o.pager)
}

func (o *Output) Write(p []byte) (int, error) {
	shown := p
	if o.sanitiser != nil {
		shown = o.sanitiser.Shown(p)
	}
	if _, err := o.buf.Write(shown); err != nil {
		return 0, OutputError{err}
	}
	return len(p), nil
}

// ExpectJSON announces that the results are JSON: the sanitiser escapes instead of dropping.
func (o *Output) ExpectJSON() {
	if o.sanitiser != nil {
		o.sanitiser.JSON = true
	}
}

// Flush writes buffered results.
func (o *Output) Flush() error {
	if err := o.buf.Flush(); err != nil {
		return OutputError{err}
	}
	return nil
}

// Close writes buffered results, and waits until the user leaves the pager.
func (o *Output) Close() error {
	err := o.Flush()
	if o.pager != nil {
		if cerr := o.pager.Close(); err == nil && cerr != nil {
			err = OutputError{cerr}
		}
	}
	return err
}

// OutputError marks an error of writing to stdout.
type OutputError struct{ Err error }

func (e OutputError) Error() string { return "cannot write the output: " + e.Err.Error() }
func (e OutputError) Unwrap() error { return e.Err }

// ReaderLeft reports whether the reader of stdout is gone, as in "ctxtool show … | head".
func ReaderLeft(err error) bool {
	var out OutputError
	return errors.As(err, &out) && errors.Is(out.Err, syscall.EPIPE)
}
