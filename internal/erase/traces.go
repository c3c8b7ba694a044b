package erase

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// findTraces finds every file in a context's folder that holds one of the messages, and notes the payloads of those.
func (e *eraser) findTraces(x *target) ([]trace, error) {
	e.noteTitle(x.c.Current())
	found, err := e.findInHistory(x)
	if err != nil {
		return nil, err
	}
	var strangers []string
	err = engine.WalkFiles(x.c.Dir.FS, ctxfolder.Messages, func(p string) error {
		if _, view := ctxfolder.ParseMessageFile(path.Base(p)); !view || strings.Count(p, "/") != 2 {
			strangers = append(strangers, x.path(p))
		}
		t, ok, err := e.traceByName(x.c.Dir.FS, p, "message file")
		if ok && err == nil {
			found = append(found, t)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if x == e.main {
		e.strangers = strangers
	}
	for {
		known := len(e.blobs)
		more, err := e.trashTraces(x.c.Dir.FS, ctxfolder.Trash)
		if err != nil || len(e.blobs) == known { // else a rest in the trash may mention one of the payloads found meanwhile
			return slices.Concat(found, more), err
		}
	}
}

// findInHistory is findTraces for logs and segments.
func (e *eraser) findInHistory(x *target) (found []trace, err error) {
	for entry, err := range x.c.Dir.FS.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if _, log := journal.ParseName(entry.Name()); !log {
			continue
		}
		t, ok, err := e.traceInLines(x.c.Dir.FS, entry.Name(), "log", e.messageIn)
		if err != nil {
			return nil, err
		}
		if ok {
			t.history = true
			found = append(found, t)
		}
	}
	for v, err := range x.c.Index.Versions(x.entries()) {
		if err != nil {
			return nil, x.repairFirst(err)
		}
		e.refer(v.Envelope)
		found = append(found, trace{path: v.File, id: v.ID, bytes: v.Size, kind: "segment", history: true})
	}
	return found, nil
}

// traceByName reports whether a file's name contains that of a message: editors and interrupted writers leave such
// files too.
func (e *eraser) traceByName(fsys vfs.FS, p, what string) (t trace, ok bool, err error) {
	base := path.Base(p)
	for i := 0; i+36 <= len(base) && !ok; i++ {
		if base[i+8] != '-' || base[i+13] != '-' {
			continue
		}
		t.id, ok = ctxfolder.ParseID(strings.ToLower(base[i : i+36]))
		ok = ok && e.ids[t.id]
	}
	if !ok {
		return t, false, nil
	}
	b, err := vfs.ReadFile(fsys, p, ctxfolder.MaxMessage)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	e.refer(b)
	t.path, t.bytes, t.kind, t.whole = p, int64(len(b)), what, true
	return t, true, nil
}

// trashTraces is findTraces for the items of a trash.
func (e *eraser) trashTraces(fsys vfs.FS, folder string) (found []trace, err error) {
	err = engine.WalkFiles(fsys, folder, func(p string) error {
		inside := strings.TrimPrefix(p, ctxfolder.Trash+"/")
		if _, name, in := strings.Cut(inside, "/"); in && name == ctxfolder.TrashNote {
			return nil
		}
		t, ok, err := e.traceByName(fsys, p, "copy in the trash")
		_, other := ctxfolder.ParseMessageFile(path.Base(p))
		switch {
		case ok || err != nil:
		case path.Base(p) == ctxfolder.MetadataFile:
			t, ok, err = e.titleTrace(fsys, p, "title in the trash")
		case isSegment(p):
			t, ok, err = e.segmentTrace(fsys, p)
		case !strings.Contains(inside, "/"):
			t, ok, err = e.oldVersion(fsys, p)
		case !other: // another message's file may mention the id and be damaged
			t, ok, err = e.traceInLines(fsys, p, "copy in the trash", e.trashedLine)
		}
		if ok && err == nil {
			found = append(found, t)
		}
		return err
	})
	return found, err
}

// oldVersion reports whether a file in the trash is an old version of a message, or is torn and mentions one or a
// payload of one.
func (e *eraser) oldVersion(fsys vfs.FS, p string) (t trace, ok bool, err error) {
	b, err := vfs.ReadFile(fsys, p, ctxfolder.MaxMessage)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	var item ctxfolder.TrashItem
	if json.Unmarshal(b, &item) != nil {
		t.id, ok = e.mentioned(b)
	} else if env, err := message.Parse(item.Envelope); err == nil {
		t.id, ok = env.ID, e.ids[env.ID]
	} else {
		t.id, ok = e.mentioned(b)
	}
	if ok {
		e.refer(b)
	}
	t.path, t.bytes, t.kind, t.whole = p, int64(len(b)), "old version in the trash", true
	return t, ok, nil
}

// mentioned returns one of the ids whose text is in b; uuid.Nil stands for a payload of the messages. The torn rest of
// an old version may have only that, and would keep the payload.
func (e *eraser) mentioned(b []byte) (id uuid.UUID, ok bool) {
	for id := range e.ids {
		if bytes.Contains(b, []byte(id.String())) || e.hasText(b, id) {
			return id, true
		}
	}
	engine.EachMention(b, func(sum blob.Sum) { ok = ok || e.blobs[sum] })
	return uuid.Nil, ok
}

// hasText reports whether b has the text of a message, as far as that is known.
func (e *eraser) hasText(b []byte, id uuid.UUID) bool {
	return e.texts[id] != nil && bytes.Contains(b, e.texts[id])
}

// trashedLine is messageIn for a line of a file in the trash. A record of a log that is not whole may be a message.
func (e *eraser) trashedLine(line []byte) (id uuid.UUID, ok bool) {
	if id, ok = e.messageIn(line); !ok && bytes.HasPrefix(line, []byte(recordStart)) {
		ok = !journal.IsRecord(line) || e.hasTitle(line)
	}
	return id, ok
}

const recordStart = `{"chain":`

// messageIn returns the message to erase that a line of a log, or of another file of JSON Lines, holds, or from which the
// title in the line was made; uuid.Nil stands for a payload that is gone. A broken line may be the rest of a message that
// it names, other than as the previous one, or whose text it has.
func (e *eraser) messageIn(line []byte) (id uuid.UUID, ok bool) {
	for sum := range e.gone {
		if bytes.Contains(line, []byte(`{"blob":"`+sum.String()+`",`)) {
			return uuid.Nil, true
		}
	}
	if id, ok = e.heldMessage(line); !ok && (bytes.HasPrefix(line, []byte(recordStart)) || !json.Valid(line)) {
		id, ok = e.titleIn(line)
	}
	return id, ok
}

func (e *eraser) heldMessage(line []byte) (id uuid.UUID, ok bool) {
	for id := range e.ids {
		text := []byte(id.String())
		if !bytes.Contains(line, text) {
			if e.hasText(line, id) && !json.Valid(line) {
				return id, true
			}
			continue
		}
		if bytes.Contains(line, append([]byte(`{"ctxdir":"`+message.Version+`","id":"`), text...)) {
			return id, true
		}
		trimmed := bytes.TrimSpace(line)
		if env, err := message.Parse(trimmed); err == nil {
			if env.ID == id {
				return id, true
			}
			continue
		}
		before := bytes.Count(line, append([]byte(`"prev":"`), text...))
		if !json.Valid(trimmed) && bytes.Count(line, text) > before {
			return id, true
		}
	}
	return uuid.Nil, false
}

// traceInLines reports whether lines of a file hold the messages.
func (e *eraser) traceInLines(fsys vfs.FS, p, what string, holds func(line []byte) (uuid.UUID, bool)) (t trace, ok bool, err error) {
	rest := false
	err = eachLine(fsys, p, func(line []byte) error {
		id, held := holds(line)
		switch {
		case held:
			t.id, ok = id, true
			t.bytes += int64(len(line))
			e.refer(line)
		case len(bytes.TrimSpace(line)) > 0:
			rest = true
		}
		return nil
	})
	t.path, t.kind, t.whole = p, what, !rest
	return t, ok, err
}

// eachLine calls f for each line of a regular file, with its newline. The line is valid until f returns. A missing file
// has no lines.
func eachLine(fsys vfs.FS, path string, f func(line []byte) error) error {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := fsys.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for part, err := range vfs.Data(file) {
		if err == nil {
			err = eachLineOf(part, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachLineOf(from io.Reader, f func(line []byte) error) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
