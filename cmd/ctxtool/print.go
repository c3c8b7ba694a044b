package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// encode returns a value as one line of JSON, without escaping for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("ctxtool: " + err.Error()) // records are plain structs
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// record prints a value as a line of JSON.
func (a *app) record(v any) error {
	_, err := a.out.Write(append(encode(v), '\n'))
	return err
}

// result prints a record with --json, else a line for people.
func (a *app) result(record any, format string, args ...any) error {
	if a.json {
		return a.record(record)
	}
	return a.printf(format+"\n", args...)
}

// recordWith prints a value as a line of JSON with one more member, whose value it does not check: encoding/json would
// parse every byte of it again.
func (a *app) recordWith(v any, key string, value json.RawMessage) error {
	b := encode(v)
	b = append(b[:len(b)-1], `,"`+key+`":`...)
	if _, err := a.out.Write(b); err != nil {
		return err
	}
	if _, err := a.out.Write(value); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, "}\n")
	return err
}

// printFitting prints a line for people. On a terminal, it cuts the end of a line that is too long.
func (a *app) printFitting(line string) error {
	if a.onTerminal() {
		line = shorten(line, max(a.width(), minWidth))
	}
	return a.printf("%s\n", line)
}

// printf prints text for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// withReport runs an operation that reports its steps to print. An error of print cancels the operation.
func withReport[T any](ctx context.Context, print func(T) error, run func(ctx context.Context, report func(T)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	err := run(ctx, func(x T) {
		if failed != nil {
			return
		}
		if failed = print(x); failed != nil {
			cancel()
		}
	})
	return cmp.Or(failed, err)
}

// note prints a note on stderr, after the results so far.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_ = a.out.Flush() // an error returns when the verb ends
		fmt.Fprintln(a.stderr, "ctxtool: "+oneLine(fmt.Sprintf(format, args...)))
	}
}

// detail prints a note that only --verbose asks for.
func (a *app) detail(format string, args ...any) {
	if a.verbose {
		a.note(format, args...)
	}
}
