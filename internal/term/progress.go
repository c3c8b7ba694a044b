package term

import (
	"io"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
)

// Progress is a bar on a terminal for work that takes longer than about a second. A nil one shows nothing.
type Progress struct {
	w       io.Writer
	columns int // of the terminal
	what    string
	of      string // a file, or what the steps are of
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

// NewProgress returns a bar on w, nil if that is no terminal, or one without cursor movement. what says what is done.
func NewProgress(w io.Writer, env Env, what string) *Progress {
	d, ok := displayOf(w)
	if !ok || env.dumb() {
		return nil
	}
	columns, _, err := d.Size()
	if err != nil {
		return nil
	}
	return &Progress{w: &delayedWriter{w, time.Now()}, columns: columns, what: what}
}

// File begins the bar of a file.
func (p *Progress) File(path string) {
	if p != nil {
		p.Clear()
		p.bar, p.of = nil, path
	}
}

// Bytes shows how much of the file is read.
func (p *Progress) Bytes(read, size int64) {
	if p == nil {
		return
	}
	if p.bar == nil {
		name := plain.Shorten(plain.OneLine(filepath.Base(p.of)), 30)
		p.draw(name, size, progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))
		read = 0 // earlier bytes would inflate the rate
	}
	_ = p.bar.Set64(min(read, size))
}

// Steps shows the number of steps done, of such as "messages".
func (p *Progress) Steps(of string, done, all int64) {
	if p == nil {
		return
	}
	if p.bar == nil || p.of != of {
		p.Clear()
		p.of = of
		p.draw(of, all, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(of))
	}
	_ = p.bar.Set64(min(done, all))
}

// The columns that the figures beside a bar need, and the largest bar.
const (
	figuresColumns = 50
	barColumns     = 40
)

// draw begins a bar. It shows the elapsed time and an estimate of the remaining time.
func (p *Progress) draw(of string, all int64, more ...progressbar.Option) {
	room := p.columns - figuresColumns - uniseg.StringWidth(p.what+" "+of)
	p.bar = progressbar.NewOptions64(all, append(more,
		progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(max(min(room, barColumns), 0)),
		progressbar.OptionSetDescription(p.what+" "+of), progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)...)
	_ = p.bar.RenderBlank() // starts its clock
}

// Items shows how many of several items are done. For one alone, it shows nothing.
func (p *Progress) Items(of string, done, all int) {
	if all > 1 {
		p.Steps(of, int64(done), int64(all))
	}
}

// Clear removes the bar before other output.
func (p *Progress) Clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}
