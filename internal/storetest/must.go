package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Must returns a function that passes a value on, and fails the test if there is an error.
func Must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Check fails the test if one of the errors is not nil.
func Check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// NothingFound fails for what a check of a whole store finds.
func NothingFound(t *testing.T, when string, s *engine.Store, o checking.Options) {
	t.Helper()
	for f, err := range checking.Check(context.Background(), s, nil, o) {
		t.Errorf("%s: %+v, %v", when, f, err)
	}
}

// Finish runs an iteration to its end, and fails the test on an error.
func Finish[T any](t *testing.T, all iter.Seq2[T, error]) {
	t.Helper()
	for _, err := range all {
		Check(t, err)
	}
}

// IterationError returns the error that ends an iteration.
func IterationError[T any](seq func(yield func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return e == nil })
	return err
}
