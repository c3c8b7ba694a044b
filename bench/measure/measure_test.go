package measure

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestRun checks the order of turns, and that a lane that has had its time sits out.
func TestRun(t *testing.T) {
	var order []string
	lane := func(name string, ops int) Lane {
		return Lane{Name: name, Turn: func(turn *Turn) error {
			order = append(order, name)
			for range ops {
				if turn.Over() {
					break
				}
				if err := turn.Time(func() error { return nil }); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	samples, err := Run(context.Background(), Plan{Rounds: 2, Turn: time.Minute, Total: time.Minute},
		[]Lane{lane("a", 3), lane("b", 1), lane("c", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "b", "c", "a"}; !slices.Equal(order, want) {
		t.Errorf("turns %v, want %v", order, want)
	}
	if len(samples[0].Times) != 6 || len(samples[0].Rounds) != 2 {
		t.Errorf("%d operations in %d rounds", len(samples[0].Times), len(samples[0].Rounds))
	}
	samples, err = Run(context.Background(), Plan{Rounds: 5}, []Lane{lane("slow", 10)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(samples[0].Times); n != 1 {
		t.Errorf("%d operations without time, want 1", n)
	}
}

func TestQuantile(t *testing.T) {
	ds := []time.Duration{5, 1, 4, 2, 3}
	if q := Quantile(ds, 0.5); q != 3 {
		t.Errorf("median %d", q)
	}
	if q := Quantile(ds, 0.99); q != 5 {
		t.Errorf("p99 %d", q)
	}
	if q := Quantile(nil, 0.5); q != 0 {
		t.Errorf("of nothing %d", q)
	}
}
