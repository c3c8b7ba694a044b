package engine

import (
	"errors"
	"fmt"
	"testing"
)

// TestWrap: an error of a package below is also each of those that callers distinguish, whatever is around it; one that says
// where it occurred stays as it is.
func TestWrap(t *testing.T) {
	for _, s := range sentinels {
		err := Wrap(Error{Op: "read"}, fmt.Errorf("around: %w", s.below))
		var at *Error
		if !errors.Is(err, s.below) || !errors.Is(err, s.here) || !errors.As(err, &at) || at.Op != "read" {
			t.Errorf("%v is not %v: %v", s.below, s.here, err)
		}
		if again := Wrap(Error{Op: "list"}, err); again != err {
			t.Errorf("%v became %v", err, again)
		}
	}
	both := Classify(fmt.Errorf("%w, %w", ErrMetadata, ErrGone))
	if !errors.Is(both, ErrDamaged) || !errors.Is(both, ErrNotExist) {
		t.Errorf("%v is not both", both)
	}
	if Wrap(Error{}, nil) != nil || Classify(nil) != nil {
		t.Error("no error became one")
	}
}
