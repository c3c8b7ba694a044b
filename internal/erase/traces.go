package erase

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// trace is a file that holds a message to erase.
type trace struct {
	path  string // relative to the context's folder, or to the store's for a loose item in its trash
	id    uuid.UUID
	bytes int64
	kind  string
	whole bool // the file goes; otherwise it is rewritten without the message

	journal bool // it goes with the other folded journals
	pack    bool // it is rewritten without the message
}

// findTraces finds every file in a context's folder that holds one of the messages, and notes the payloads of those.
func (e *eraser) findTraces(x *target) ([]trace, error) {
	var found []trace
	add := func(t trace, ok bool, err error) error {
		if ok && err == nil {
			found = append(found, t)
		}
		return err
	}
	fsys := x.c.Dir.FS
	names := e.names(x)
	err := engine.WalkFiles(fsys, ctxfolder.Messages, func(p string) error {
		return add(e.traceByName(fsys, p, names, "message file"))
	})
	if err != nil {
		return nil, err
	}
	for entry, err := range fsys.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		name := entry.Name()
		_, journal := ctxfolder.ParseJournalFile(name)
		if !entry.Type().IsRegular() || !journal && !strings.HasPrefix(name, ".") {
			continue
		}
		t, ok, err := e.traceInLines(fsys, name, "journal", e.messageIn)
		t.journal = journal
		t.whole = t.whole || !journal // a temporary file
		if err := add(t, ok, err); err != nil {
			return nil, err
		}
	}
	packs, err := e.findPacks(x)
	if err != nil {
		return nil, err
	}
	more, err := e.trashTraces(fsys, ctxfolder.Trash, names)
	return slices.Concat(found, packs, more), err
}

// names maps the names that files of the messages can have to ids.
func (e *eraser) names(x *target) map[string]uuid.UUID {
	names := map[string]uuid.UUID{}
	for id := range e.ids {
		names[id.String()] = id
		for _, line := range x.c.Current().Lines {
			names[message.DerivedID(line.ID, id.String()).String()] = id
		}
	}
	return names
}

// traceByName reports whether a file's name contains that of a message: editors and interrupted writers leave such
// files too.
func (e *eraser) traceByName(fsys vfs.FS, p string, names map[string]uuid.UUID, what string) (t trace, ok bool, err error) {
	base := path.Base(p)
	for i := 0; i+36 <= len(base) && !ok; i++ {
		t.id, ok = names[strings.ToLower(base[i:i+36])]
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

// refer notes the payloads that a version of a message may refer to.
func (e *eraser) refer(b []byte) { engine.EachMention(b, func(sum blob.Sum) { e.blobs[sum] = true }) }

// trashTraces is findTraces for the items of a trash.
func (e *eraser) trashTraces(fsys vfs.FS, folder string, names map[string]uuid.UUID) (found []trace, err error) {
	err = engine.WalkFiles(fsys, folder, func(p string) error {
		inside := strings.TrimPrefix(p, ctxfolder.Trash+"/")
		if _, name, in := strings.Cut(inside, "/"); in && name == ctxfolder.TrashNote {
			return nil
		}
		t, ok, err := e.traceByName(fsys, p, names, "copy in the trash")
		_, other := ctxfolder.ParseMessageFile(path.Base(p))
		switch {
		case ok || err != nil:
		case path.Base(p) == ctxfolder.MetadataFile, path.Base(p) == ctxfolder.IndexFile:
			t, ok, err = e.titleTrace(fsys, p, "title in the trash")
		case engine.IsPack(p):
			t, ok, err = e.trashPack(fsys, p)
		case !strings.Contains(inside, "/"):
			t, ok, err = e.oldVersion(fsys, p)
		case !other: // another message's file may mention the id and be damaged
			t, ok, err = e.traceInLines(fsys, p, "copy in the trash", e.messageIn)
			t.whole = t.whole && !trash.IsPiece(p) // the item has more of them
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
		if bytes.Contains(b, []byte(id.String())) {
			return id, true
		}
	}
	engine.EachMention(b, func(sum blob.Sum) { ok = ok || e.blobs[sum] })
	return uuid.Nil, ok
}

// messageIn returns the message to erase that a line of a journal, or of another file of JSON Lines, holds, or from which
// the title in the line was made; uuid.Nil stands for a payload that is gone. A broken line may be the rest of a message
// that it names, other than as the previous one.
func (e *eraser) messageIn(line []byte) (id uuid.UUID, ok bool) {
	for sum := range e.gone {
		if bytes.Contains(line, []byte(`{"blob":"`+sum.String()+`",`)) {
			return uuid.Nil, true
		}
	}
	if id, ok = e.heldMessage(line); !ok && (bytes.HasPrefix(line, []byte(`{"chain":`)) || !json.Valid(line)) {
		id, ok = e.titleIn(line)
	}
	return id, ok
}

func (e *eraser) heldMessage(line []byte) (id uuid.UUID, ok bool) {
	for id := range e.ids {
		text := []byte(id.String())
		if !bytes.Contains(line, text) {
			continue
		}
		if bytes.Contains(line, append([]byte(`{"ctxdir":"`+message.Version+`","id":"`), text...)) ||
			bytes.HasPrefix(line, []byte(`{"ctxdir":"gap/1"`)) { // it says why an item lacks the message
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
