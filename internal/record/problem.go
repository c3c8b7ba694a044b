package record

import (
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
)

// Problem is an error as one line; empty for none.
func Problem(err error) string {
	if err == nil {
		return ""
	}
	return plain.OneLine(err.Error())
}

// isPayload reports whether an error is about a payload that cannot be read.
func isPayload(err error) bool {
	var e *ctxdir.Error
	return errors.As(err, &e) && e.Op == "read the payload"
}

// payloadError is an error of reading a body, without the message.
func payloadError(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, payloadError(e))
		}
		return errors.Join(all...)
	}
	var e *ctxdir.Error
	if isPayload(err) && errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}
