// Package views reads the files of messages. Each is a view of what was committed: it may be missing, torn or old, and
// the index has the message all the same. But a person may edit it. Then the edit counts.
package views

import (
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// State is the state of a message's file.
type State int

// The states of a message's file.
const (
	Missing State = iota // no file
	Exact                // holds what was committed, maybe in another form: a byte order mark, white space, ids in upper case
	Edited               // a valid envelope of the message, later than the commit
	Stale                // of an earlier version, or of another message: a writer was stopped before it replaced the file
	Damaged              // anything else
)

// muchEdited is how large an edited message may be, in bytes, or up to twice its committed size if that is more.
const muchEdited = 64 << 20

// Read reads the file of an entry from a folder in messages/, and returns its state. raw is the committed bytes of an
// Exact file, and the content of another one without the final newline; nil if no file can be read. The error for Missing
// and Damaged is about the content if it wraps [index.ErrDamaged], and about reading otherwise. An erased message has no
// file, whatever is in its place.
//
// Size and time decide only whether a file without the committed bytes was edited: damage leaves them unchanged.
func Read(dir *ctxfolder.Dir, folder string, e *index.Entry) (raw []byte, is State, err error) {
	if e.IsErased() {
		return nil, Missing, index.ErrErased
	}
	if e.Size > 0 {
		raw, err = dir.LoadMessage(folder, e.ID, e.Size)
		if exact := exact(e, raw); err == nil && exact != nil {
			return exact, Exact, nil
		}
	}
	name := ctxfolder.MessageFile(e.ID)
	info, err := dir.StatMessage(folder, e.ID)
	if err == nil && info.Size() > max(2*e.Size, muchEdited) {
		return nil, Damaged, fmt.Errorf("%w: file %s has %d bytes", index.ErrDamaged, name, info.Size())
	}
	raw, info, err = dir.ReadMessage(folder, e.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Missing, err
	}
	if err != nil {
		return nil, Damaged, err
	}
	env, err := message.Parse(raw)
	if err == nil {
		if b := env.AppendTo(nil); sameAs(e, b) {
			return b, Exact, nil
		}
	}
	switch {
	case errors.Is(err, message.ErrVersion) && !ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		return raw, Damaged, fmt.Errorf("%w: file %s %w", ctxfolder.ErrVersion, name, err)
	case err != nil:
		err = fmt.Errorf("is not a valid message: %v", err) //nolint:errorlint // nor does it hold one of another version
	case env.ID != e.ID:
		err = fmt.Errorf("holds message %s", env.ID)
	case e.IsLost():
		return raw, Edited, nil
	case env.StoredAt.UnixMicro() < e.At:
		return raw, Stale, nil
	case ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		err = errors.New("changed but kept its modification time")
	default:
		return raw, Edited, nil
	}
	return raw, Damaged, fmt.Errorf("%w: file %s %w", index.ErrDamaged, name, err)
}

// exact returns the envelope in the bytes of a file that holds what was committed, and nil for any other file.
func exact(e *index.Entry, raw []byte) []byte {
	if n := len(raw) - 1; n >= 0 && raw[n] == '\n' && sameAs(e, raw[:n]) {
		return raw[:n]
	}
	return nil
}

func sameAs(e *index.Entry, raw []byte) bool {
	return int64(len(raw)) == e.Size && message.Sum(raw) == e.Sum
}

// ReadAll adds to out the envelopes of entries that it does not have, from their files. It leaves nil where a file does
// not hold exactly what was committed: Read examines such a file.
func ReadAll(files *ctxfolder.Files, entries []index.Entry, out [][]byte) {
	wanted := make([]int, 0, len(entries))
	for i := range entries {
		if out[i] == nil && entries[i].Size > 0 {
			wanted = append(wanted, i)
		}
	}
	if len(wanted) == 0 {
		return
	}
	files.Load(len(wanted), func(i int) (uuid.UUID, int64) {
		e := &entries[wanted[i]]
		return e.ID, e.Size
	}, func(i int, b []byte) { out[wanted[i]] = exact(&entries[wanted[i]], b) })
}
