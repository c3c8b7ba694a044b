package soak

import (
	"fmt"
	"slices"
)

// Measure is something that is to stay the same.
type Measure struct {
	Name  string
	Of    func(s Sample) float64
	Slack float64 // what it may grow by, beside a quarter
	Unit  string
}

// Measures are what is looked at. Descriptors may grow with the branches of contexts that are open, which are bounded,
// and memory with their messages.
var Measures = []Measure{
	{"descriptors", func(s Sample) float64 { return float64(s.Descriptors) }, 16, ""},
	{"goroutines", func(s Sample) float64 { return float64(s.Goroutines) }, 4, ""},
	{"heap", func(s Sample) float64 { return float64(s.Heap) / (1 << 20) }, 8, "MiB"},
	{"resident", func(s Sample) float64 { return float64(s.Resident) / (1 << 20) }, 32, "MiB"},
}

// Trend compares a measure in the second quarter of the time and in the last: the lower quartile of each. What is held
// in the midst of a piece of work says little, and the work gets more as contexts grow; what stays when it is done is
// what would leak.
func (p *Process) Trend(m Measure) (early, late float64, flat bool) {
	n := len(p.Samples)
	early, late = low(p.Samples[n/4:n/2], m), low(p.Samples[n-n/4:], m)
	return early, late, late <= early*1.25+m.Slack
}

func low(samples []Sample, m Measure) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = m.Of(s)
	}
	slices.Sort(values)
	return values[len(values)/4]
}

// Problems are what did not stay the same, processes that ended, and what is wrong with the store.
func (r *Result) Problems() (all []string) {
	for i := range r.Processes {
		p := &r.Processes[i]
		if p.Failed != "" {
			all = append(all, p.Name+" ended: "+p.Failed)
		}
		for _, m := range Measures {
			if early, late, flat := p.Trend(m); !flat {
				all = append(all, fmt.Sprintf("%s: %s grew from %.0f to %.0f %s", p.Name, m.Name, early, late, m.Unit))
			}
		}
	}
	all = append(all, r.Differ...)
	for _, p := range r.Outcome.Problems {
		all = append(all, fmt.Sprint(p))
	}
	return all
}
