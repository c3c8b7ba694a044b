package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/views"
)

// Close drops the loader's messages from the pool. The loader loads no message after it. Payloads then come only from
// blobs, so the caller may close the index and the folder.
func (l *Loader) Close() {
	l.open.Lock()
	l.closed = true
	l.open.Unlock()
	l.pool.forget(l)
}

// Load returns the message of an entry.
func (l *Loader) Load(ctx context.Context, span Span, e *index.Entry) (*Message, error) {
	return l.load(ctx, span, e, func() *Message {
		// The file is read faster than a part of a segment, and has the same bytes if it has the same sum.
		if e.Size > 0 && e.IsSealed() {
			if raw, is, _ := views.Read(l.dir, span.Folder, e); is == views.Exact {
				return l.exact(e, raw)
			}
		}
		info, err := l.dir.StatMessage(span.Folder, e.ID)
		return l.read(span, e, nil, info, err)
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
	info, err := l.dir.StatMessage(span.Folder, e.ID)
	return !m.Edited && m.Unavailable == nil && isView(e, info, err)
}

// isView reports whether a file, of which this is the Lstat, may only be a view: it is missing, or has the size and time
// that it got when the message was committed.
func isView(e *index.Entry, info fs.FileInfo, err error) bool {
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return ctxfolder.Untouched(info, e.Size, e.StoredAt())
}

func (l *Loader) key(span Span, e *index.Entry) poolKey {
	return poolKey{l, span.Line, e.Position, e.Sum, e.At}
}

// read finds the message. It takes what was committed, if the file is only a view, see isView. raw is that, or nil if it
// was not read. Otherwise it reads the file, and falls back to what was committed if the file was not edited.
func (l *Loader) read(span Span, e *index.Entry, raw []byte, info fs.FileInfo, failed error) *Message {
	l.reads.Add(1)
	var why error
	committed := func() *Message {
		if raw == nil {
			raw, why = l.index.ReadOne(e)
		}
		return l.Committed(raw).as(e)
	}
	if isView(e, info, failed) {
		if m := committed(); m != nil {
			return m
		}
	}
	m, err := l.fromFile(span, e)
	if err == nil {
		return m
	}
	if m := committed(); m != nil {
		return m
	}
	// The entry may be older than a replacement or an erasure, after which no file has the message as it was.
	if now, ok, nerr := l.index.Entry(e.Line, e.Position); nerr == nil && ok && now.Seq > e.Seq {
		return l.read(span, &now, nil, info, failed)
	}
	return &Message{ID: e.ID, Line: span.Line, Position: e.Position, StoredAt: e.StoredAt(), Unavailable: cmp.Or(why, err)}
}

// exact returns the message in the bytes that were committed.
func (l *Loader) exact(e *index.Entry, raw []byte) *Message {
	l.reads.Add(1)
	return l.Committed(raw).as(e)
}

// as takes over what only the entry of an unchanged message says: the entry of a message that was edited before it was
// indexed counts the references, and the envelope may not.
func (m *Message) as(e *index.Entry) *Message {
	if m != nil {
		m.plain = m.plain && e.Payloads == 0
	}
	return m
}

// Committed returns the message in the bytes of an envelope, to which it refers; nil for other bytes.
func (l *Loader) Committed(record []byte) *Message {
	env, err := message.ParseTrusted(record)
	if err != nil {
		return nil
	}
	return l.messageOf(&env, int64(len(record)))
}

// fromFile returns the message in its file, if that holds what was committed, or was edited.
func (l *Loader) fromFile(span Span, e *index.Entry) (*Message, error) {
	raw, is, err := views.Read(l.dir, span.Folder, e)
	switch {
	case err != nil:
		return nil, err
	case is == views.Stale:
		return nil, fmt.Errorf("%w: its file has an older version", index.ErrDamaged)
	}
	env, err := message.ParseTrusted(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", index.ErrDamaged, err)
	}
	env.Line, env.Position = span.Line, e.Position
	m := l.messageOf(&env, int64(len(raw))).as(e)
	m.plain = m.plain && is == views.Exact
	// A later stored_at means that this version was committed after the entry was read.
	m.Edited = is == views.Edited && !e.IsLost() && env.StoredAt.UnixMicro() == e.At
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

// Envelope returns the stored bytes of a message and its envelope, for a new version. For an unavailable message it
// returns no bytes, and an envelope with what the index knows.
func (l *Loader) Envelope(span Span, e *index.Entry) ([]byte, *message.Envelope, error) {
	raw, is, err := views.Read(l.dir, span.Folder, e)
	if err == nil && is == views.Edited {
		env, err := message.Parse(raw)
		env.Line, env.Position = span.Line, e.Position
		return raw, &env, err
	}
	if is != views.Exact {
		raw, err = l.index.ReadOne(e)
	}
	if err == nil {
		env, err := message.ParseTrusted(raw)
		return raw, &env, err
	}
	if !errors.Is(err, index.ErrErased) && !errors.Is(err, index.ErrDamaged) {
		return nil, nil, err
	}
	return nil, &message.Envelope{ID: e.ID, Line: span.Line, Position: e.Position}, nil
}
