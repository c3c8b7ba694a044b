package erase

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Removal is a file that an erase removed, or rewrote without the message.
type Removal struct {
	Context uuid.UUID
	ID      uuid.UUID // of the message; uuid.Nil for a payload
	Path    string    // relative to the store
	Bytes   int64     // removed
	Reason  string    // kind of thing
	Foreign bool      // not removed: a file that is none of the store's, and holds the message or could not be searched

	With    uuid.UUID // the message to erase with which this one went along; uuid.Nil if it was named itself
	Problem error     // why the message could not be examined; nothing was removed
}

// Options configures an erase.
type Options struct {
	Shared bool // erase also what several branches show
	DryRun bool // report what would be done, and change nothing

	locked bool // the caller holds [engine.CollectionLock]
}

// eraser is the state of one erase.
type eraser struct {
	s     *engine.Store
	id    uuid.UUID
	ids   map[uuid.UUID]bool // to erase
	noted map[uuid.UUID]bool // those in the note of an interrupted erase
	// along has those of ids that repeat others of them, and with which one each goes; uuid.Nil if only the note says so.
	along      map[uuid.UUID]uuid.UUID
	unexamined map[*target][]unexamined
	o          Options
	main       *target
	all        []*target         // the copies in trash, then main, which has the note
	blobs      map[blob.Sum]bool // payloads that a version of the messages referred to, or that nothing refers to
	inNote     int               // how many of them the note has
	gone       map[blob.Sum]bool // those of them that are removed
	// referred says that a version of the messages counts references, even if none with them is left.
	referred bool
	paths    map[string]bool // in a dry run: files in trash that would go, relative to the context
	done     []Removal
	texts    map[uuid.UUID][]byte // of the messages, by which copies that a person made are found
	titles   map[string]bool      // those that were made from the messages
	// strangers are the files among the message files of the context that are none, relative to the store.
	strangers []string
	reported  map[string]bool
}

// target is the context, or a copy of it in the store's trash.
type target struct {
	c      *engine.Context
	in     string // its folder, relative to the store and ending in a slash; "" for the store itself
	places []engine.Place
	of     int                // how many ids they were looked up for
	gone   bool               // the first try removed the messages already
	lost   string             // where the history cannot be read; empty if it can be
	known  map[version]*links // of the messages that were examined; nil for those without any
}

func (x *target) path(inside string) string { return x.in + path.Join(x.c.Dir.ID.String(), inside) }

// report records once what happened to a thing.
func (e *eraser) report(id uuid.UUID, path string, bytes int64, reason string) {
	if key := id.String() + path; !e.reported[key] {
		e.reported[key] = true
		e.done = append(e.done, Removal{Context: e.id, ID: id, Path: path, Bytes: bytes, Reason: reason, With: e.along[id]})
	}
}

// links are the messages that a message names as those whose text it has.
type links struct {
	copyOf  []uuid.UUID // they have its whole text: an erase of it takes them along
	repeats []uuid.UUID // its copyOf included: an erase of one of them takes it along
	from    []uuid.UUID // of a moment
}

// version is one version of a message.
type version struct {
	line uuid.UUID
	at   int64 // position
	sum  uint64
	time int64
}

// unexamined is a message that may go along with others, and why it cannot be read.
type unexamined struct {
	id  uuid.UUID
	why error
}

func (x *target) entries() []index.Entry {
	entries := make([]index.Entry, len(x.places))
	for i := range x.places {
		entries[i] = x.places[i].Entry
	}
	return entries
}

func (x *target) repairFirst(err error) error {
	switch {
	case !errors.Is(err, engine.ErrDamaged):
		return err
	case x.in != "": // no repair looks into the trash
		return fmt.Errorf("purge %s, or restore and repair it, first: %w", strings.TrimSuffix(x.in, "/"), err)
	}
	return fmt.Errorf("repair the context first: %w", err)
}

// trace is a file that holds a message to erase.
type trace struct {
	path    string // relative to the context's folder, or to the store's for a loose item in its trash
	id      uuid.UUID
	bytes   int64
	kind    string
	whole   bool // the file goes; otherwise it is rewritten without the message
	history bool // it is a log or a segment of the history: the next seal removes the message
}

// refer notes the payloads that a version of a message may refer to.
func (e *eraser) refer(b []byte) { engine.EachMention(b, func(sum blob.Sum) { e.blobs[sum] = true }) }
