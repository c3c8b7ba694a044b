package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal's stderr for work that takes longer than about a second. A nil progress shows
// nothing.
type progress struct {
	w       io.Writer
	columns int // of the terminal
	what    string
	path    string
	unit    string // of steps
	bar     *progressbar.ProgressBar
}

const progressDelay = time.Second

// delayedWriter drops what is written during the first second: the bar measures its rate from the start, but short work
// shows none.
type delayedWriter struct {
	w     io.Writer
	start time.Time
}

func (p *delayedWriter) Write(b []byte) (int, error) {
	if time.Since(p.start) < progressDelay {
		return len(b), nil
	}
	return p.w.Write(b)
}

func (a *app) newProgress(what string) *progress {
	d, ok := displayOf(a.stderr)
	if !ok || a.quiet || a.noProgress || a.dumb() {
		return nil
	}
	columns, _, err := d.Size()
	if err != nil {
		return nil
	}
	return &progress{w: &delayedWriter{a.stderr, time.Now()}, columns: columns, what: what, unit: "messages"}
}

func (p *progress) file(path string) {
	if p != nil {
		p.clear()
		p.bar, p.path = nil, path
	}
}

func (p *progress) bytes(read, size int64) {
	if p == nil {
		return
	}
	if p.bar == nil {
		p.draw(shorten(oneLine(filepath.Base(p.path)), 30), size, progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))
		read = 0 // earlier bytes would inflate the rate
	}
	_ = p.bar.Set64(min(read, size))
}

// steps shows the number of steps done.
func (p *progress) steps(of string, done, all int64) {
	if p == nil {
		return
	}
	if p.bar == nil || p.path != of {
		p.clear()
		p.path = of
		p.draw(of, all, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(p.unit))
	}
	_ = p.bar.Set64(min(done, all))
}

// The columns that the figures beside a bar need, and the largest bar.
const (
	figuresColumns = 50
	barColumns     = 40
)

// draw begins a bar. It shows the elapsed time and an estimate of the remaining time.
func (p *progress) draw(of string, all int64, more ...progressbar.Option) {
	room := p.columns - figuresColumns - uniseg.StringWidth(p.what+" "+of)
	p.bar = progressbar.NewOptions64(all, append(more,
		progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(max(min(room, barColumns), 0)),
		progressbar.OptionSetDescription(p.what+" "+of), progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)...)
	_ = p.bar.RenderBlank() // starts its clock
}

// contexts shows how many of several contexts are done.
func (p *progress) contexts(done, all int) {
	if p != nil && all > 1 {
		p.unit = "contexts"
		p.steps("contexts", int64(done), int64(all))
	}
}

// clear removes the bar before other output.
func (p *progress) clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}
