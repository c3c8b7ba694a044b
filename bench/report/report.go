// Package report writes what rows found: for people, for programs, and as pictures.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/rows"
)

// Report is everything about one run.
type Report struct {
	Date     string         `json:"date"`
	Took     time.Duration  `json:"took"`
	Machine  machine.Info   `json:"machine"`
	Settings Settings       `json:"settings"`
	Engines  []EngineInfo   `json:"engines"`
	Missing  []string       `json:"missing,omitempty"`
	Results  []*rows.Result `json:"results"`
	Builds   []rows.Build   `json:"builds"`
}

// Settings is how the run was made.
type Settings struct {
	Quick  bool   `json:"quick"`
	Rounds int    `json:"rounds"`
	Scale  int64  `json:"scale"`
	Rows   string `json:"rows"`
	Corpus Corpus `json:"corpus"`
	// FileMade is how long making a file took before anything else was done: what the disk was like.
	FileMade time.Duration `json:"file_made"`
}

// Corpus describes the messages, sizes in bytes.
type Corpus struct {
	From   string `json:"from"`
	Bodies int    `json:"bodies"`
	Mean   int    `json:"mean"`
	Median int    `json:"median"`
	P90    int    `json:"p90"`
	P99    int    `json:"p99"`
}

// EngineInfo describes an engine.
type EngineInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	About   string `json:"about"`
	Largest int64  `json:"largest,omitempty"`
}

// Write writes results.json, report.md and the charts into dir.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": append(b, '\n'), "report.md": r.markdown()}
	for name, svg := range r.charts() {
		files[name] = svg
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what Write wrote: pictures and text can be made again without measuring.
func Read(dir string) (*Report, error) {
	b, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return nil, err
	}
	var r Report
	return &r, json.Unmarshal(b, &r)
}

// format writes a value for people.
func format(v float64, u rows.Unit) string {
	switch u {
	case rows.Nanoseconds:
		switch d := time.Duration(v); {
		case d < 10*time.Microsecond:
			return fmt.Sprintf("%.2f µs", v/1e3)
		case d < time.Millisecond:
			return fmt.Sprintf("%.0f µs", v/1e3)
		case d < 10*time.Millisecond:
			return fmt.Sprintf("%.2f ms", v/1e6)
		case d < time.Second:
			return fmt.Sprintf("%.0f ms", v/1e6)
		default:
			return fmt.Sprintf("%.1f s", v/1e9)
		}
	case rows.PerSecond:
		return rows.Count(int64(v)) + " /s"
	case rows.Bytes:
		if v < 100e3 {
			return fmt.Sprintf("%.1f KB", v/1e3)
		}
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	}
	return fmt.Sprintf("%.2f", v)
}

func formatCheck(c rows.Check) string {
	sign := "≤"
	if c.AtLeast {
		sign = "≥"
	}
	switch c.Unit {
	case "":
		return fmt.Sprintf("%s: %.2f (%s %.4g)", c.What, c.Value, sign, c.Limit)
	case string(rows.Bytes), string(rows.Nanoseconds):
		u := rows.Unit(c.Unit)
		return fmt.Sprintf("%s: %s (%s %s)", c.What, format(c.Value, u), sign, format(c.Limit, u))
	}
	return fmt.Sprintf("%s: %.0f (%s %.0f)", c.What, c.Value, sign, c.Limit)
}
