package place

import (
	"strings"
	"testing"
)

func TestLockHeld(t *testing.T) {
	x := lockHeld(Holder{Name: "gc", Process: 4711})
	if x.Severity != Info || x.Path != "locks/gc" || x.Detail != "held by process 4711" {
		t.Errorf("%+v", x)
	}
	if x := lockHeld(Holder{Name: "gc"}); x.Severity != Warning || !strings.Contains(x.Detail, "hidden process") || x.Hint == "" {
		t.Errorf("%+v", x)
	}
}
