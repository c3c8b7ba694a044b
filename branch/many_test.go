package branch_test

import (
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// TestMany: many branches are what as many single ones are.
func TestMany(t *testing.T) {
	t.Parallel()
	var one, many ctxfolder.Metadata
	a := branch.AddMany(&many)
	for i, name := range []string{"main", "Main", "", "a/b", "A/B", "a%2Fb", "\u00e9", "e\u0301", "MAIN ", "x\x00", "x"} {
		id := uuid.UUID{byte(i + 1)}
		_, err := branch.New(&one, name, id)
		if free := a.Free(name); free != (err == nil) {
			t.Errorf("%q is free: %v; %v", name, free, err)
			continue
		}
		if err != nil {
			continue
		}
		if _, err := a.Add(name, id); err != nil {
			t.Error(err)
		}
	}
	if fmt.Sprint(one.Branches, one.Lines) != fmt.Sprint(many.Branches, many.Lines) {
		t.Errorf("%+v\n%+v", one, many)
	}
}
