package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/rows"
)

// bar is one bar of a chart.
type bar struct {
	label string
	value float64
	text  string
	kind  string // class: ours, floor, peer, good, bad
}

// group is bars under a heading.
type group struct {
	heading string
	bars    []bar
}

const (
	width     = 900
	labelEnd  = 370
	barEnd    = 810
	lineStep  = 20
	groupStep = 34
)

// style reads on light and on dark: colours of middle lightness, text in the colour of the page's own.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.head { font-weight: 600; fill: #24292f }
.title { font-size: 15px; font-weight: 600; fill: #24292f }
.ours, .good { fill: #2f81d6 } .peer { fill: #8c959f } .floor { fill: #b7a26a } .bad { fill: #d1622b }
.axis { stroke: #8c959f; stroke-width: 1 } .goal { stroke: #d1622b; stroke-width: 1.5; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #9aa4af } .head, .title { fill: #d7dee6 } }
</style>
`

// chart draws horizontal bars on a logarithmic scale, since engines differ by orders of magnitude. With a
// goal, a line stands at its value.
func chart(title, note string, groups []group, goal float64) []byte {
	low, high := math.Inf(1), math.Inf(-1)
	height := 62
	for _, g := range groups {
		height += groupStep + lineStep*len(g.bars)
		for _, b := range g.bars {
			if b.value > 0 {
				low, high = min(low, b.value), max(high, b.value)
			}
		}
	}
	if goal > 0 {
		low, high = min(low, goal), max(high, goal)
	}
	from := math.Log10(low) - 0.3
	scale := (barEnd - labelEnd) / max(math.Log10(high)-from, 0.1)
	x := func(v float64) float64 { return labelEnd + (math.Log10(max(v, low/2))-from)*scale }

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="8" y="22">%s</text>`+"\n"+`<text x="8" y="42">%s</text>`+"\n",
		html.EscapeString(title), html.EscapeString(note))
	y := 54
	for _, g := range groups {
		y += groupStep
		fmt.Fprintf(&b, `<text class="head" x="8" y="%d">%s</text>`+"\n", y-12, html.EscapeString(g.heading))
		fmt.Fprintf(&b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", labelEnd, y-6, labelEnd, y-6+lineStep*len(g.bars))
		for _, bar := range g.bars {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelEnd-8, y+7, html.EscapeString(bar.label))
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="13" rx="2"/>`,
				bar.kind, labelEnd, y-4, max(x(bar.value)-labelEnd, 1))
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", x(bar.value)+6, y+7, html.EscapeString(bar.text))
			y += lineStep
		}
	}
	if goal > 0 {
		fmt.Fprintf(&b, `<line class="goal" x1="%.1f" y1="52" x2="%.1f" y2="%d"/>`+"\n", x(goal), x(goal), height-8)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (r *Report) charts() map[string][]byte {
	out := map[string][]byte{}
	add := func(name, title string, keys ...string) {
		if gs := r.groups(keys...); len(gs) > 0 {
			out[name] = chart(title, "Medians on a logarithmic scale; shorter is better.", gs, 0)
		}
	}
	add("append.svg", "Durable append", "append", "batch")
	add("changes.svg", "Changes of a context", "create", "state", "fork")
	add("reading.svg", "Reading", "open", "resume", "range", "whole", "id", "list")
	add("memory.svg", "Peak memory", "memory")
	if gs := r.throughput(); len(gs) > 0 {
		out["concurrent.svg"] = chart("Appending side by side", "Durable appends per second on a logarithmic scale; longer is better.", gs, 0)
	}
	if g := r.distance(); len(g.bars) > 0 {
		note := "The measurement divided by the goal's limit: bars left of the line meet their goal. Logarithmic scale."
		out["goals.svg"] = chart("How far from each goal", note, []group{g}, 1)
	}
	return out
}

func (r *Report) groups(keys ...string) []group {
	var out []group
	for _, key := range keys {
		for _, res := range r.Results {
			if res.Key == key && res.Unit != rows.PerSecond && (len(res.Checks) > 0) {
				out = append(out, group{res.Row + " · " + res.At, bars(res)})
			}
		}
	}
	return out
}

func (r *Report) throughput() []group {
	var out []group
	for _, res := range r.Results {
		if res.Key == "goroutines" || res.Key == "processes" {
			out = append(out, group{res.Row + " · " + res.At, bars(res)})
		}
	}
	return out
}

func bars(res *rows.Result) []bar {
	var out []bar
	for _, c := range res.Cells {
		kind := "peer"
		switch {
		case strings.HasPrefix(c.Name, "floor:"):
			kind = "floor"
		case strings.HasPrefix(c.Name, engine.Ours):
			kind = "ours"
		}
		out = append(out, bar{c.Name, c.Value, format(c.Value, res.Unit), kind})
	}
	return out
}

// distance has a bar for each goal that is a ratio.
func (r *Report) distance() group {
	var g group
	subjects := map[string]string{} // the row with goals of each key; "" if there are several
	for _, res := range r.Results {
		if len(res.Checks) == 0 {
			continue
		}
		if row, known := subjects[res.Key]; known && row != res.Row {
			subjects[res.Key] = ""
		} else {
			subjects[res.Key] = res.Row
		}
	}
	for _, res := range r.Results {
		name := res.Key
		if subjects[name] == "" {
			name = res.Row
		}
		for _, c := range res.Checks {
			if c.Limit <= 0 || c.Value <= 0 {
				continue
			}
			v := c.Value / c.Limit
			if c.AtLeast {
				v = c.Limit / c.Value
			}
			kind := "good"
			if !c.Met() {
				kind = "bad"
			}
			g.bars = append(g.bars, bar{cut(name+", "+res.At+": "+c.What, 60), v, fmt.Sprintf("%.2f", v), kind})
		}
	}
	return g
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
