package rows

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// Unit says what a result's values are.
type Unit string

// Units.
const (
	Nanoseconds Unit = "ns"    // less is better
	PerSecond   Unit = "per s" // more is better
	Bytes       Unit = "bytes" // less is better
)

// Result is a row at one size.
type Result struct {
	Key     string           `json:"key"`
	Row     string           `json:"row"`
	At      string           `json:"at"`
	Goal    string           `json:"goal"`
	Unit    Unit             `json:"unit"`
	Cells   []*Cell          `json:"cells"`
	Checks  []Check          `json:"checks"`
	Notes   []string         `json:"notes,omitempty"`
	Profile *measure.Profile `json:"profile,omitempty"` // of ours, where a goal is missed
	Took    time.Duration    `json:"took"`              // of the row, all sizes, contexts built on the way included
}

// Cell is what was measured of one lane.
type Cell struct {
	Name   string    `json:"name"`
	Value  float64   `json:"value"` // the median, in the result's unit
	P99    float64   `json:"p99,omitempty"`
	P999   float64   `json:"p999,omitempty"`
	Mean   float64   `json:"mean,omitempty"`
	Max    float64   `json:"max,omitempty"`
	N      int       `json:"n"`
	Rounds []float64 `json:"rounds,omitempty"` // the median of each round
	Settle float64   `json:"settle,omitempty"` // median of what went on in the background after a turn, in ns
	Errors int       `json:"errors,omitempty"`
	Err    string    `json:"error,omitempty"`
	Note   string    `json:"note,omitempty"`
}

// Check is a goal put in figures.
type Check struct {
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least,omitempty"` // the limit is a lower one
	Unit    string  `json:"unit,omitempty"`     // of both; empty for a ratio
}

// Met reports whether the goal is met.
func (c Check) Met() bool {
	if c.AtLeast {
		return c.Value >= c.Limit
	}
	return c.Value <= c.Limit
}

// Met reports whether all goals are met.
func (r *Result) Met() bool {
	for _, c := range r.Checks {
		if !c.Met() {
			return false
		}
	}
	return true
}

// Cell returns the cell of a lane, nil when there is none.
func (r *Result) Cell(name string) *Cell {
	for _, c := range r.Cells {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Names of lanes that are no engine.
const (
	floorSync  = "floor: sync"
	floorFiles = "floor: sync + file"
	floorRead  = "floor: plain file reads"
)

func cellOf(name string, s *measure.Samples) *Cell {
	c := &Cell{
		Name: name, Value: float64(s.Median()), P99: float64(measure.Quantile(s.Times, 0.99)),
		P999: float64(measure.Quantile(s.Times, 0.999)), Mean: float64(s.Mean()), Max: float64(measure.Quantile(s.Times, 1)), N: len(s.Times),
		Settle: float64(measure.Quantile(s.Settle, 0.5)), Errors: s.Errors, Err: s.Err,
	}
	for _, d := range s.Rounds {
		c.Rounds = append(c.Rounds, float64(d))
	}
	return c
}

// atMost checks ours against another lane, if both are there: pick says which figure.
func (r *Result) atMost(limit float64, pick func(*Cell) float64, what, ours string, others ...string) {
	a := r.Cell(ours)
	for _, other := range others {
		if b := r.Cell(other); a != nil && b != nil && pick(b) > 0 {
			r.Checks = append(r.Checks, Check{What: what + other, Value: pick(a) / pick(b), Limit: limit})
		}
	}
}

func (r *Result) atLeast(limit float64, pick func(*Cell) float64, what, ours string, others ...string) {
	from := len(r.Checks)
	r.atMost(limit, pick, what, ours, others...)
	for i := range r.Checks[from:] {
		r.Checks[from+i].AtLeast = true
	}
}

func value(c *Cell) float64 { return c.Value }
func p99(c *Cell) float64   { return c.P99 }
func p999(c *Cell) float64  { return c.P999 }

// labelled are the engines with labels and state, and with branches that can be changed.
var labelled = []string{engine.Ours, engine.Modernc, engine.Mattn}

var sqlites = []string{engine.Modernc, engine.Mattn}

// flat checks that ours costs the same at every size: the dearest against the smallest.
func flat(results []*Result, limit float64, name string) {
	first := results[0].Cell(name)
	for _, r := range results[1:] {
		if c := r.Cell(name); c != nil && first != nil && first.Value > 0 {
			what := fmt.Sprintf("p50 at %s / at %s", r.At, results[0].At)
			r.Checks = append(r.Checks, Check{What: what, Value: c.Value / first.Value, Limit: limit})
		}
	}
}

// Count writes a number with commas.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
