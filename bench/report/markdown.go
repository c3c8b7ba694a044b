package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/bench/rows"
)

func (r *Report) markdown() []byte {
	var b bytes.Buffer
	r.head(&b)
	r.goals(&b)
	r.table(&b)
	r.details(&b)
	r.missed(&b)
	r.method(&b)
	return b.Bytes()
}

func (r *Report) head(b *bytes.Buffer) {
	fmt.Fprintf(b, "# Benchmarks\n\nMade by `go run ./cmd/compare` in `bench/`; not to be edited by hand. "+
		"The figures, with those of every round, are in [results.json](results.json).\n\n")
	if r.Settings.Quick {
		fmt.Fprintf(b, "**A quick run: small sizes, few operations. It shows that everything works, and no more.**\n\n")
	}
	m := r.Machine
	fmt.Fprintf(b, "%s. %s, %d cores, %s MiB of memory; %s, %s, %s; %s. %d rounds, %.0f minutes.\n\n", r.Date,
		m.CPU, m.Cores, rows.Count(m.MemoryMiB), m.Kernel, m.Arch, m.FileSystem, m.Go, r.Settings.Rounds, r.Took.Minutes())
	c := r.Settings.Corpus
	fmt.Fprintf(b, "Messages: %s real ones from %s; %s bytes in the mean, %s in the median, %s at 90 %%, %s at 99 %%.\n\n",
		rows.Count(int64(c.Bodies)), c.From,
		rows.Count(int64(c.Mean)), rows.Count(int64(c.Median)), rows.Count(int64(c.P90)), rows.Count(int64(c.P99)))
	fmt.Fprintf(b, "Making a file bare (open, write, close, rename) took %s at the beginning.\n\n",
		format(float64(r.Settings.FileMade), rows.Nanoseconds))
	fmt.Fprintf(b, "![Durable append](append.svg)\n![Reading](reading.svg)\n![Ratio to each goal](goals.svg)\n\n")
}

// goals is the table of the goals.
func (r *Report) goals(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Goals\n\n| row | at | goal | measured | met |\n| --- | --- | --- | --- | --- |\n")
	met, all := 0, 0
	for _, res := range r.Results {
		for i, c := range res.Checks {
			row, at, goal := "", "", ""
			if i == 0 {
				row, at, goal = res.Row, res.At, res.Goal
			}
			all++
			word := "**no**"
			if c.Met() {
				met++
				word = "yes"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", row, at, goal, formatCheck(c), word)
		}
	}
	fmt.Fprintf(b, "\n%d of %d are met. A goal against SQLite is checked against both drivers unless it names one.\n\n", met, all)
}

// table is the overview: every row, every engine.
func (r *Report) table(b *bytes.Buffer) {
	names := []string{engine.Ours, engine.Blobs, engine.Modernc, engine.Mattn, engine.Bolt, engine.Lines, engine.PerFile, engine.Whole}
	fmt.Fprintf(b, "## Medians\n\nIn brackets: how many times ours; above 1 is worse than ours.\n\n| row | at | %s |\n| --- | --- |%s\n",
		strings.Join(names, " | "), strings.Repeat(" --- |", len(names)))
	for _, res := range r.Results {
		fmt.Fprintf(b, "| %s | %s |", res.Row, res.At)
		ours := res.Cell(engine.Ours)
		for _, name := range names {
			c := res.Cell(name)
			switch {
			case c == nil:
				fmt.Fprintf(b, " – |")
			case name == engine.Ours || ours == nil:
				fmt.Fprintf(b, " %s |", format(c.Value, res.Unit))
			default:
				fmt.Fprintf(b, " %s (%s) |", format(c.Value, res.Unit), times(ours.Value, c.Value, res.Unit))
			}
		}
		fmt.Fprintf(b, "\n")
	}
	fmt.Fprintf(b, "\n")
}

// times says how much worse another one is than ours.
func times(ours, other float64, u rows.Unit) string {
	f := other / ours
	if u == rows.PerSecond {
		f = ours / other
	}
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// details lists every lane.
func (r *Report) details(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Every figure\n\n")
	for _, res := range r.Results {
		fmt.Fprintf(b, "### %s, %s\n\n", res.Row, res.At)
		latency := res.Unit
		if res.Unit == rows.PerSecond {
			latency = rows.Nanoseconds
		}
		fmt.Fprintf(b, "| | median | rounds from – to | p99 | mean | most | operations | errors |\n"+
			"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for _, c := range res.Cells {
			name := c.Name
			if c.Note != "" {
				name += ", " + c.Note
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %d | %s |\n", name, format(c.Value, res.Unit), spread(c, res.Unit),
				optional(c.P99, latency), optional(c.Mean, latency), optional(c.Max, latency), c.N, errorsOf(c))
		}
		fmt.Fprintf(b, "\n")
		for _, n := range res.Notes {
			fmt.Fprintf(b, "%s\n\n", n)
		}
	}
}

func optional(v float64, u rows.Unit) string {
	if v == 0 {
		return ""
	}
	return format(v, u)
}

func spread(c *rows.Cell, u rows.Unit) string {
	if len(c.Rounds) < 2 {
		return ""
	}
	low, high := c.Rounds[0], c.Rounds[0]
	for _, v := range c.Rounds {
		low, high = min(low, v), max(high, v)
	}
	return format(low, u) + " – " + format(high, u)
}

func errorsOf(c *rows.Cell) string {
	if c.Errors == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", c.Errors, strings.ReplaceAll(c.Err, "|", "/"))
}

// missed says where the time goes in the rows that miss a goal.
func (r *Report) missed(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Where the time goes in rows that miss a goal\n\n")
	for _, res := range r.Results {
		if res.Met() {
			continue
		}
		fmt.Fprintf(b, "### %s, %s\n\n", res.Row, res.At)
		for _, c := range res.Checks {
			if !c.Met() {
				fmt.Fprintf(b, "- %s\n", formatCheck(c))
			}
		}
		if p := res.Profile; p != nil {
			fmt.Fprintf(b,
				"\nProfile of ours: %.1f s of processor time in %.1f s; what is missing was waiting, for the disk as a rule.\n\n",
				p.CPU.Seconds(), p.Wall.Seconds())
			fmt.Fprintf(b, "- in these functions themselves: %s\n- in these and what they call: %s\n", list(p.Flat), list(p.Under))
		}
		fmt.Fprintf(b, "\n")
	}
}

func list(costs []measure.Cost) string {
	var words []string
	for _, c := range costs {
		if c.Share >= 0.01 {
			words = append(words, fmt.Sprintf("`%s` %.0f %%", c.Function, 100*c.Share))
		}
	}
	return strings.Join(words, ", ")
}

func (r *Report) method(b *bytes.Buffer) {
	fmt.Fprintf(b, `## Method

In each row every engine has its turn in each round, one after the other, and each round begins with another one. Before
a turn what the one before left is written back (syncfs) and garbage collected; after it a fold that is going on is
waited for. The figures are medians over all operations of all rounds, and ratios are those of medians. A slow engine
does fewer operations: a turn ends after two seconds, and after twenty in all it sits out.

All hold the same messages under the same ids, from a fixed seed. "Durable" means fdatasync or fsync for everybody,
synchronous=FULL for SQLite. "Decoded" is the same function for everybody, from the message's JSON to a Go struct. The
page cache is warm for everybody. No store is deleted before the end, and each lies in a part of the disk of its own
(chattr +T on the folder above): where many files were deleted shortly before, ext4 is slow to make new ones.

## Engines

`)
	for _, e := range r.Engines {
		version := ""
		if e.Version != "" {
			version = " " + e.Version
		}
		bound := ""
		if e.Largest > 0 {
			bound = fmt.Sprintf(" Up to %s messages only: it rewrites what grows with them.", rows.Count(e.Largest))
		}
		fmt.Fprintf(b, "- **%s**%s: %s.%s\n", e.Name, version, e.About, bound)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(b, "- Not here: %s.\n", m)
	}
	fmt.Fprintf(b, "\n## How long filling the contexts took\n\n"+
		"Not durable, in batches of 1,000; engines that rewrite what grows write once.\n\n"+
		"| engine | messages | took |\n| --- | --- | --- |\n")
	for _, build := range r.Builds {
		if build.Messages >= 100_000 {
			fmt.Fprintf(b, "| %s | %s | %.1f s |\n", build.Engine, rows.Count(build.Messages), build.Took.Seconds())
		}
	}
}
