package soak

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if Started() {
		return
	}
	os.Exit(m.Run())
}

// TestSoak is a short one: processes work beside each other, each puts down what it holds, and the store is sound.
func TestSoak(t *testing.T) {
	res, err := Run(context.Background(), Options{Dir: t.TempDir(), For: 8 * time.Second, Writers: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Processes {
		if len(p.Samples) == 0 || p.Failed != "" {
			t.Errorf("%s: %d samples; it ended: %q", p.Name, len(p.Samples), p.Failed)
			continue
		}
		isRole := slices.ContainsFunc(Roles, func(r Role) bool { return r.Name == p.Name })
		if did := p.Samples[len(p.Samples)-1].Done; isRole && did == 0 {
			t.Errorf("%s did nothing", p.Name)
		}
	}
	if want := 3 + 1 + len(Roles); len(res.Processes) != want {
		t.Errorf("%d processes instead of %d", len(res.Processes), want)
	}
	if len(res.Differ) > 0 {
		t.Errorf("%q", res.Differ)
	}
	if len(res.Outcome.Problems) > 0 || res.Outcome.Acknowledged == 0 {
		t.Errorf("%+v", res.Outcome)
	}
}

// TestTrend: what grows is found.
func TestTrend(t *testing.T) {
	grows, stays := Process{Name: "grows"}, Process{Name: "stays"}
	for i := range 100 {
		grows.Samples = append(grows.Samples, Sample{Descriptors: 20 + i, Heap: uint64(i) << 20})
		stays.Samples = append(stays.Samples, Sample{Descriptors: 20 + i%7, Heap: uint64(10+i%5) << 20})
	}
	r := Result{Processes: []Process{grows, stays}}
	if got := r.Problems(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}
