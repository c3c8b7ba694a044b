// Package loader reads messages through a bounded pool: one message, a range, or an iteration.
//
// An unreadable message does not stop a load. The loader first looks for it in the journal that committed it, and
// otherwise returns an entry marked unavailable, with the reason.
package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Message is one stored message. Callers must not change it, since others share it.
type Message struct {
	ID        uuid.UUID
	Position  int64 // in every branch that shows it
	Line      uuid.UUID
	Role      string
	Type      string
	CreatedAt time.Time // the message's own time; zero without one
	StoredAt  time.Time // when this version was committed
	OriginID  string    // its id in the source, where that differs from ID
	// CopyOf and Repeats name messages of the context: see [message.Envelope].
	CopyOf, Repeats []uuid.UUID
	Source          json.RawMessage
	// References are to lines of files; an array or nil.
	References json.RawMessage
	// Stored is the framework's object, verbatim except for payloads in blobs, which references replace. [Message.Body]
	// puts them back.
	Stored json.RawMessage

	// Edited reports that the file was edited by hand after the commit.
	Edited bool
	// Unavailable is why the message is unavailable. ID, Line and Position are set as far as they are known. The error
	// wraps index.ErrDamaged, index.ErrErased or an error of the file system.
	Unavailable error

	plain bool // as a writer stored it, without references
	size  int64
	from  *Loader
}

func (m *Message) cost() int64 { return m.size + 512 }

// Span is a run of positions of one line, with the folder of the line's messages.
type Span struct {
	Line     uuid.UUID
	Folder   string
	From, To int64
}

// Loader reads the messages of one context.
type Loader struct {
	dir    *ctxfolder.Dir
	log    *index.Log
	pool   *Pool
	blobs  Blobs
	memory int64 // the expanded data that one call may hold, in bytes
	epoch  atomic.Uint64
	reads  atomic.Int64

	open   sync.RWMutex // held while a payload is taken from the log
	closed bool         // guarded by open
}

// ErrClosed reports that the context was closed.
var ErrClosed = errors.New("the context was closed")

// New returns a loader that keeps loaded messages in pool and takes payloads from blobs. memory bounds the payloads and
// archived messages that one call holds, in bytes: their files are compressed, so file sizes bound nothing.
func New(dir *ctxfolder.Dir, log *index.Log, pool *Pool, blobs Blobs, memory int64) *Loader {
	return &Loader{dir: dir, log: log, pool: pool, blobs: blobs, memory: memory}
}

// Refresh makes the next access to each pooled message check whether its file changed.
func (l *Loader) Refresh() { l.epoch.Add(1) }

// Close drops the loader's messages from the pool. The loader loads no message after it. Payloads then come only from
// blobs, so the caller may close the log and the folder.
func (l *Loader) Close() {
	l.open.Lock()
	l.closed = true
	l.open.Unlock()
	l.pool.forget(l)
}

// Payload returns a payload to which a message refers, verified, without a memory limit.
func (l *Loader) Payload(ref blob.Ref) ([]byte, error) { return l.payload(ref) }

// Reads returns the number of messages read from disk.
func (l *Loader) Reads() int64 { return l.reads.Load() }

// Load returns the message of an entry.
func (l *Loader) Load(ctx context.Context, span Span, e *index.Entry) (*Message, error) {
	return l.load(ctx, span, e, func() *Message {
		record, _ := l.log.ReadRecord(e)
		return l.read(span, e, record, func() (fs.FileInfo, error) { return l.dir.StatMessage(span.Folder, e.FileID()) })
	})
}

// load returns the message of an entry from the pool, or from read.
func (l *Loader) load(ctx context.Context, span Span, e *index.Entry, read func() *Message) (*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.pool.get(ctx, l.key(span, e), l.epoch.Load(), func(m *Message) bool { return l.isCurrent(span, e, m) }, read)
}

// isCurrent reports whether a pooled message still is what its file holds.
func (l *Loader) isCurrent(span Span, e *index.Entry, m *Message) bool {
	info, err := l.dir.StatMessage(span.Folder, e.FileID())
	if e.Pack != uuid.Nil && errors.Is(err, fs.ErrNotExist) {
		return !m.Edited // a pack never changes
	}
	return err == nil && !m.Edited && ctxfolder.Untouched(info, e.Size, e.StoredAt())
}

func (l *Loader) key(span Span, e *index.Entry) poolKey {
	return poolKey{l, span.Line, e.Position, e.Sum, e.At}
}

// read finds the message. It takes the record of the journal or pack, if there is one and the file is untouched or
// missing. Otherwise it reads the file, and falls back to the record when the file is damaged. stat returns the Lstat
// of the file.
func (l *Loader) read(span Span, e *index.Entry, record []byte, stat func() (fs.FileInfo, error)) *Message {
	l.reads.Add(1)
	if record != nil {
		info, err := stat()
		if errors.Is(err, fs.ErrNotExist) || err == nil && ctxfolder.Untouched(info, e.Size, e.StoredAt()) {
			if m := l.Committed(record); m != nil {
				return m.as(e)
			}
		}
	}
	m, err := l.fromFile(span, e)
	if err == nil {
		return m
	}
	if m := l.Committed(record); m != nil {
		return m.as(e)
	}
	if errors.Is(err, fs.ErrNotExist) && e.Lost == "" {
		if m := l.moved(span, e); m != nil {
			return m
		}
	}
	if e.Pack != uuid.Nil {
		err = fmt.Errorf("%w: pack %s does not hold it intact", index.ErrDamaged, e.Pack)
	}
	if e.Lost != "" && e.Lost != index.Erased {
		err = fmt.Errorf("%w: %s", index.ErrDamaged, e.Lost)
	}
	return &Message{ID: e.ID, Line: span.Line, Position: e.Position, StoredAt: e.StoredAt(), Unavailable: err}
}

// exact returns the message in the bytes of a file that holds what was committed.
func (l *Loader) exact(span Span, e *index.Entry, raw []byte) *Message {
	l.reads.Add(1)
	m := l.Committed(raw)
	if m != nil {
		m.Line, m.Position = span.Line, e.Position
	}
	return m.as(e)
}

// as takes over what only the entry of an unchanged message says: the entry of a message that was edited before it was
// indexed counts the references, and the envelope may not.
func (m *Message) as(e *index.Entry) *Message {
	if m != nil {
		m.plain = m.plain && e.Payloads == 0
	}
	return m
}

// maxMoves bounds the attempts to find a message that other processes move meanwhile.
const maxMoves = 8

// moved finds a message that is not where its entry says: another process may have archived or unarchived it. It returns
// nil when the message is nowhere and nothing moves any more.
func (l *Loader) moved(span Span, e *index.Entry) *Message {
	seen := l.log.IndexVersion()
	for try := range maxMoves {
		renewed := l.log.IndexChanged(seen)
		seen = l.log.IndexVersion()
		if try > 0 && !renewed {
			break
		}
		_ = l.log.Refresh()
		entries, err := l.log.Entries(span.Line, e.Position, e.Position+1)
		if err != nil || len(entries) == 0 || entries[0].ID != e.ID {
			break
		}
		record, _ := l.log.ReadRecord(&entries[0])
		if m := l.Committed(record); m != nil {
			return m.as(&entries[0])
		}
		if m, err := l.fromFile(span, &entries[0]); err == nil {
			return m
		}
	}
	return nil
}

// Committed returns the message in a record of a journal or a pack, nil for another record. The message refers to the
// record's bytes.
func (l *Loader) Committed(record []byte) *Message {
	env, err := message.ParseTrusted(record)
	if err != nil {
		return nil
	}
	return l.messageOf(&env, int64(len(record)))
}

func (l *Loader) fromFile(span Span, e *index.Entry) (*Message, error) {
	raw, is, err := l.log.ReadFile(span.Line, e, span.Folder)
	if err != nil {
		return nil, err
	}
	env, err := message.ParseTrusted(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", index.ErrDamaged, err)
	}
	env.Line, env.Position = span.Line, e.Position
	m := l.messageOf(&env, int64(len(raw))).as(e)
	m.plain = m.plain && is.Whole()
	// A later stored_at means that this version was committed after the entry was read.
	m.Edited = is == index.FileEdited && e.Lost == "" && env.StoredAt.UnixNano() == e.At
	return m, nil
}

func (l *Loader) messageOf(env *message.Envelope, size int64) *Message {
	return &Message{
		ID: env.ID, Position: env.Position, Line: env.Line, Role: env.Role, Type: env.Type,
		CreatedAt: env.CreatedAt, StoredAt: env.StoredAt, OriginID: env.OriginID, Source: env.Source, Stored: env.Body,
		CopyOf: env.CopyOf, Repeats: env.Repeats, References: env.References,
		plain: env.Payloads == 0, size: size, from: l,
	}
}

// Loaded is Load for a message whose file has been read and matches the entry.
func (l *Loader) Loaded(span Span, e *index.Entry, raw []byte) (*Message, error) {
	env, err := message.ParseTrusted(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", index.ErrDamaged, err)
	}
	env.Line = span.Line
	m := l.messageOf(&env, int64(len(raw))).as(e)
	l.pool.add(l.key(span, e), m, l.epoch.Load())
	return m, nil
}

// Envelope returns the stored bytes of a message and its envelope, for a new version. For an unavailable message it
// returns no bytes, and an envelope with what the index knows.
func (l *Loader) Envelope(span Span, e *index.Entry) ([]byte, *message.Envelope, error) {
	raw, _, err := l.log.ReadFile(span.Line, e, span.Folder)
	if err == nil {
		env, err := message.Parse(raw)
		env.Line, env.Position, env.File = span.Line, e.Position, e.File
		return raw, &env, err
	}
	if raw, ok := l.log.ReadRecord(e); ok {
		env, err := message.ParseTrusted(raw)
		return raw, &env, err
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, index.ErrDamaged) {
		return nil, nil, err
	}
	return nil, &message.Envelope{ID: e.ID, Line: span.Line, Position: e.Position, File: e.File}, nil
}
