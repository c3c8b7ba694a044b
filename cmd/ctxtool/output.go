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

// recordWith prints a line of JSON to which one more member is added, its value as it is: encoding/json would
// check every byte of it again.
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

// printFitting prints a line for people, on a terminal no more than fits: what matters least stands at its end.
func (a *app) printFitting(line string) error {
	if a.onTerminal() {
		line = shorten(line, max(a.width(), narrowest))
	}
	return a.printf("%s\n", line)
}

// printf prints text for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// printing runs an operation that reports each thing it did, for print. An error of print ends the operation.
func printing[T any](ctx context.Context, print func(T) error, run func(ctx context.Context, report func(T)) error) error {
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
