package baseline

import "testing"

func TestLead(t *testing.T) {
	easy := [][]bool{{true, false, true}, {true, true}, {false}, {true}, {false, true}}
	none := [][]bool{{false, false, false}, {false, false}, {false}, {false}, {false, false}}
	if got := Lead(easy, easy); got != (Share{}) {
		t.Errorf("over itself: %v", got)
	}
	if got, want := Lead(easy, none), Estimate(easy); got != want || got.From <= 0 || got.To <= got.Value {
		t.Errorf("over nothing: %v, the share is %v", got, want)
	}
	if ahead, behind := Lead(easy, none), Lead(none, easy); behind.Value != -ahead.Value || behind.To >= 0 {
		t.Errorf("%v one way, %v the other", ahead, behind)
	}
	if got := Lead([][]bool{{true, true}, {false, true}}, [][]bool{{false, true}, {false, true}}); got.Value != 0.25 || got.From != 0 {
		t.Errorf("in one of two groups: %v", got)
	}
	if got, want := (Share{-0.051, -0.1, 0.02}).Points(), "−5.1 (−10.0 to +2.0)"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
}
