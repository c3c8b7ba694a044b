package writer

import (
	"errors"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir"
)

// TestParts: each part counts once, in order, and none hides another.
func TestParts(t *testing.T) {
	gone := &ctxdir.Error{Op: "collect", Err: errors.Join(ctxdir.ErrNotExist, ctxdir.ErrDamaged)}
	locked := &ctxdir.Error{Op: "collect", Err: ctxdir.ErrLocked}
	refused := errors.New("refused")
	for _, test := range []struct {
		err  error
		want []error
	}{
		{nil, nil},
		{gone, []error{gone}},
		{errors.Join(gone), []error{gone}},
		{errors.Join(errors.Join(errors.Join(nil, gone), locked), refused), []error{gone, locked, refused}},
	} {
		if got := Parts(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v instead of %v", test.err, got, test.want)
		}
	}
}
