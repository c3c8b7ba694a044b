package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"golang.org/x/sync/errgroup"
)

// projector makes the message files of a store behind the commits. It works in bursts, when commits pause: beside the
// syncs of appends, each file alone costs an append more than its share of a burst does.
//
// Crash order: a batch waits here only when its records are durable. A crash loses what waits; the log has it,
// and the next writer makes the files (see [Context.pending]).
type projector struct {
	mu      sync.Mutex
	waiting []*fileBatch
	queued  int               // files in waiting
	files   int               // files in waiting, or being made
	bytes   int               // of their messages
	first   time.Time         // when the first of them came
	last    time.Time         // when the newest came
	timer   *time.Timer       // until the next burst; nil without one
	due     bool              // a goroutine is about to begin a burst
	stale   map[*Context]bool // handles whose metadata.json is to be replaced

	making sync.Mutex // held while files are made
}

const (
	// pause is the time without a commit after which a burst begins.
	pause = 20 * time.Millisecond
	// maxDelay is the time from the first waiting file to the burst that makes it, if commits do not pause.
	maxDelay = 250 * time.Millisecond
	// burstFiles and burstBytes are what waits when a burst begins at once.
	burstFiles = 1024
	burstBytes = 8 << 20
	// maxWaitingFiles and maxWaitingBytes bound what waits in a store. Beyond them appends wait.
	maxWaitingFiles = 2 * burstFiles
	maxWaitingBytes = 2 * burstBytes
)

// add queues a batch, and waits while too much is queued. With now it waits until the files are made.
func (p *projector) add(b *fileBatch, now bool) {
	p.mu.Lock()
	p.waiting = append(p.waiting, b)
	p.queued, p.files, p.bytes = p.queued+len(b.files), p.files+len(b.files), p.bytes+b.bytes
	now = now || p.files > maxWaitingFiles || p.bytes > maxWaitingBytes
	switch {
	case now || p.due || b.c.Store.Options.files == FilesHeld:
	case p.queued >= burstFiles || p.bytes >= burstBytes:
		p.due = true
		go p.run(background)
	default:
		p.soon()
	}
	p.mu.Unlock()
	if now {
		p.run(writers)
	}
}

// soon has a burst begin when commits pause. The caller holds mu.
func (p *projector) soon() {
	p.last = time.Now()
	if p.timer == nil {
		p.first, p.timer = p.last, time.AfterFunc(pause, p.runInPause)
	}
}

// runInPause begins a burst, or waits on if a commit came meanwhile.
func (p *projector) runInPause() {
	p.mu.Lock()
	rest := min(pause-time.Since(p.last), maxDelay-time.Since(p.first))
	begin := p.timer != nil && rest <= 0
	if p.timer != nil && !begin {
		p.timer.Reset(rest)
	}
	p.mu.Unlock()
	if begin {
		p.run(background)
	}
}

// addContext leaves the metadata.json of a handle to the next burst.
func (p *projector) addContext(c *Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale == nil {
		p.stale = map[*Context]bool{}
	}
	p.stale[c] = true
	if c.Store.Options.files != FilesHeld {
		p.soon()
	}
}

// removeContext reports whether the metadata.json of a handle waits, and takes it over. It waits for a running burst,
// which may be replacing the file with the handle's lock held.
func (p *projector) removeContext(c *Context) bool {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.stale[c]
	delete(p.stale, c)
	return waits
}

const (
	// writers bounds the message files that are made concurrently while somebody waits for them.
	writers = 8
	// background is the number of writers while no caller waits. More would compete with appends for the processor.
	background = 1
)

// run makes the files that wait, and returns when they are made, those of a running burst included. It leaves seals that
// are due to the background.
func (p *projector) run(workers int) {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	batches, stale := p.waiting, p.stale
	p.waiting, p.queued, p.due, p.stale = nil, 0, false, nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	written := map[*Context]bool{}
	for _, b := range batches {
		b.make(workers)
		p.mu.Lock()
		p.files, p.bytes = p.files-len(b.files), p.bytes-b.bytes
		p.mu.Unlock()
		written[b.c] = true
	}
	for c := range stale {
		if !c.projectBehind() {
			p.addContext(c)
		}
		written[c] = true
	}
	for c := range written {
		c.sealIfDue()
	}
}

// make makes the files of a batch. The batch is used up then.
func (b *fileBatch) make(workers int) {
	if b.c.Store.Options.inOrder {
		workers = background
	}
	var next atomic.Int64
	var made errgroup.Group
	work := func() (err error) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(b.files) {
				return err
			}
			if ferr := b.makeFile(&b.files[i]); err == nil {
				err = ferr
			}
			if workers == background {
				vfs.Yield()
			}
		}
	}
	for range min(workers, len(b.files)) - 1 {
		made.Go(work)
	}
	err := work()
	if werr := made.Wait(); err == nil {
		err = werr
	}
	b.end(err)
}
