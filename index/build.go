package index

import (
	"bytes"
	"fmt"
	"runtime"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
)

// Builder writes the history of a new context in one pass: the metadata and all messages go into segments. The caller has
// the folder for itself, and ends with Finish or Abort.
type Builder struct {
	dir   Folder
	opts  archive.Options
	s     *state
	w     *archive.Writer  // of the segment that is not complete; nil if there is none
	from  journal.Position // where that begins
	bytes int64            // of its envelopes
	last  Entry            // its last message
}

// Build begins a history with the metadata of its first commit.
func Build(dir Folder, m *ctxfolder.Metadata) (*Builder, error) {
	raw, err := ctxfolder.CommittableMetadata(m)
	if err != nil {
		return nil, err
	}
	b := &Builder{dir: dir, s: &state{context: dir.Context, segments: newSegments()}}
	b.opts.With = archive.NewCompressor(archive.Fast, runtime.GOMAXPROCS(0))
	if err = b.s.restore(nil, journal.Position{}); err == nil {
		err = b.s.metadata.take(journal.Metadata, raw)
	}
	if err == nil {
		err = b.begin()
	}
	if err != nil {
		return nil, err
	}
	b.s.at = journal.After(b.s.at, journal.Metadata, raw)
	if err := b.w.AddOther(archive.Other{Seq: b.s.at.Seq, Kind: string(journal.Metadata), Body: raw}); err != nil {
		b.Abort()
		return nil, err
	}
	return b, nil
}

func (b *Builder) begin() (err error) {
	b.w, err = archive.Create(b.dir.Segments, b.dir.Context, b.opts)
	b.from, b.bytes, b.last = b.s.at, 0, Entry{}
	return err
}

// Add adds the next message of the entry's line, and sets its number. The envelope raw is nil if the message is gone.
func (b *Builder) Add(e Entry, raw []byte) error {
	if b.w != nil && (b.bytes > 0 && b.bytes+e.Size > most || bytes.Compare(e.Line[:], b.last.Line[:]) < 0) {
		if err := b.end(); err != nil {
			return err
		}
	}
	if b.w == nil {
		if err := b.begin(); err != nil {
			return err
		}
	}
	ln := b.s.line(e.Line, e.Position)
	if e.Position != ln.End() {
		return fmt.Errorf("line %s: a record has position %d, but the line ends at %d", e.Line, e.Position, ln.End())
	}
	at := journal.After(b.s.at, journal.Add, raw)
	e.Seq = at.Seq
	if err := b.w.Add(e.inSegment(), raw); err != nil {
		return err
	}
	ln.add(&e, -1)
	b.s.at, b.s.newestAt = at, max(b.s.newestAt, e.At)
	b.last, b.bytes = e, b.bytes+e.Size
	return nil
}

// end completes a segment, durably.
func (b *Builder) end() error {
	all, err := b.s.save()
	if err != nil {
		return err
	}
	state, err := all.encode()
	if err != nil {
		return err
	}
	_, _, err = b.w.Commit(b.from, b.s.at, state)
	b.w = nil
	return err
}

// Finish completes the last segment, and begins the log that continues the history.
func (b *Builder) Finish() error {
	defer b.Abort()
	if b.w != nil {
		if err := b.end(); err != nil {
			return err
		}
	}
	ix := Open(b.dir, Options{})
	ix.set(b.s)
	defer ix.Close()
	if err := ix.beginLog(journal.NewName(1)); err != nil {
		return err
	}
	return ix.state.newest().MakeDurable()
}

// Abort removes what is not complete. After Finish it does nothing.
func (b *Builder) Abort() {
	if b.w != nil {
		b.w.Abort()
		b.w = nil
	}
}

// EntryOf returns the entry of a message that is about to be committed, for [Builder.Add].
func EntryOf(env *message.Envelope, raw []byte) Entry {
	a := env.Address()
	return entryOfAddress(&a, 0, int64(len(raw)), message.Sum(raw))
}
