package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
)

// progress is a bar on stderr for work that takes longer than about a second, on a terminal. It is nil
// where none is to be shown.
type progress struct {
	w       io.Writer
	columns int // of the terminal
	what    string
	path    string
	unit    string // what steps are counted in
	bar     *progressbar.ProgressBar
}

const patience = time.Second

// patient writes nothing for a while: bars know how fast things go from the beginning on, but only who has to wait is shown one.
type patient struct {
	w     io.Writer
	begun time.Time
}

func (p *patient) Write(b []byte) (int, error) {
	if time.Since(p.begun) < patience {
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
	return &progress{w: &patient{a.stderr, time.Now()}, columns: columns, what: what, unit: "messages"}
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
		read = 0 // what was read before the bar began would count as read in no time
	}
	_ = p.bar.Set64(min(read, size))
}

// steps shows how many of a number of things are done.
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

// The figures beside a bar take so many columns, and the bar what is left, which need not be more than one can see at a glance.
const (
	figuresColumns = 50
	barColumns     = 40
)

// draw begins a bar. It shows the time that went by and, from the rate of late, the time that is left.
func (p *progress) draw(of string, all int64, more ...progressbar.Option) {
	room := p.columns - figuresColumns - uniseg.StringWidth(p.what+" "+of)
	p.bar = progressbar.NewOptions64(all, append(more,
		progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(max(min(room, barColumns), 0)),
		progressbar.OptionSetDescription(p.what+" "+of), progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)...)
	_ = p.bar.RenderBlank() // its time begins
}

// contexts shows which one of several contexts it is the turn of.
func (p *progress) contexts(done, all int) {
	if p != nil && all > 1 {
		p.unit = "contexts"
		p.steps("contexts", int64(done), int64(all))
	}
}

// clear takes the bar away, so that something can be printed.
func (p *progress) clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}
