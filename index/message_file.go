package index

import (
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// FileState is the state of a message's file.
type FileState int

// The states of a message's file.
const (
	FileExact     FileState = iota // holds what was committed
	FileRespelled                  // what was committed, in another form: a byte order mark, white space, ids in upper case
	FileEdited                     // a valid envelope of the message: edited by hand, or a newer version
	FileMissing                    // no file
	FileDamaged                    // anything else
)

// Whole reports whether a file holds what was committed.
func (is FileState) Whole() bool { return is == FileExact || is == FileRespelled }

// ReadFile reads the message file of an entry from a folder in messages/ and returns its state. raw is the file without
// the final newline, or the committed bytes if the file has them in another form. raw is nil if no file can be read.
// The error for FileMissing and FileDamaged is about the content if it wraps ErrDamaged, and about reading otherwise.
//
// An erased message has no file, whatever is in its place: FileMissing.
//
// Stat data decides only whether a file without the committed bytes was edited: damage leaves size and time unchanged.
func (e *Entry) ReadFile(dir *ctxfolder.Dir, folder string) (raw []byte, is FileState, err error) {
	if e.Lost == Erased {
		return nil, FileMissing, ErrErased
	}
	if e.Lost == "" {
		raw, err = dir.LoadMessage(folder, e.FileID(), e.Size)
		if exact := e.exact(raw); err == nil && exact != nil {
			return exact, FileExact, nil
		}
	}
	info, err := dir.StatMessage(folder, e.FileID())
	if err == nil && info.Size() > max(2*e.Size, muchEdited) {
		return nil, FileDamaged, fmt.Errorf("%w: file %s has %d bytes", ErrDamaged, ctxfolder.MessageFile(e.FileID()), info.Size())
	}
	raw, info, err = dir.ReadMessage(folder, e.FileID())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, FileMissing, err
	}
	if err != nil {
		return nil, FileDamaged, err
	}
	env, err := message.Parse(raw)
	if committed := e.committed(raw, &env, err); committed != nil {
		if int64(len(raw)) == info.Size()-1 && e.sameAs(raw) {
			return raw, FileExact, nil
		}
		return committed, FileRespelled, nil
	}
	err = e.edited(&env, err, info)
	if errors.Is(err, message.ErrVersion) {
		return raw, FileDamaged, fmt.Errorf("%w: file %s %w", ctxfolder.ErrVersion, ctxfolder.MessageFile(e.FileID()), err)
	}
	if err != nil {
		return raw, FileDamaged, fmt.Errorf("%w: file %s %w", ErrDamaged, ctxfolder.MessageFile(e.FileID()), err)
	}
	return raw, FileEdited, nil
}

// exact returns the envelope in the bytes of a file that holds what was committed, and nil for any other file.
func (e *Entry) exact(raw []byte) []byte {
	if n := len(raw) - 1; n >= 0 && raw[n] == '\n' && e.sameAs(raw[:n]) {
		return raw[:n]
	}
	return nil
}

// ReadFiles adds to out the envelopes of entries that it does not have, from their files. It leaves nil where a file
// does not hold exactly what was committed: ReadFile examines such a file.
func ReadFiles(files *ctxfolder.Files, entries []Entry, out [][]byte) {
	wanted := make([]int, 0, len(entries))
	for i := range entries {
		if out[i] == nil && entries[i].Lost == "" {
			wanted = append(wanted, i)
		}
	}
	if len(wanted) == 0 {
		return
	}
	files.Load(len(wanted), func(i int) (uuid.UUID, int64) {
		e := &entries[wanted[i]]
		return e.FileID(), e.Size
	}, func(i int, b []byte) { out[wanted[i]] = entries[wanted[i]].exact(b) })
}

// ErrTaken reports that the file of a message holds another message with its id, stored while this one was missing.
var ErrTaken = errors.New("its id was stored again")

// ReadFile is [Entry.ReadFile] for an entry of a line. A file that names the position of another row of the line with its
// id belongs to that row. The entry then has no file: FileMissing, with an error that wraps ErrTaken.
func (l *Log) ReadFile(line uuid.UUID, e *Entry, folder string) (raw []byte, is FileState, err error) {
	raw, is, err = e.ReadFile(l.dir, folder)
	if raw == nil || is.Whole() {
		return raw, is, err
	}
	if at, taken := l.taken(line, e, raw); taken {
		return nil, FileMissing, fmt.Errorf("%w: %w at position %d", fs.ErrNotExist, ErrTaken, at)
	}
	return raw, is, err
}

// taken returns the position of the other message of the line with the same id that an entry's file holds.
func (l *Log) taken(line uuid.UUID, e *Entry, raw []byte) (position int64, taken bool) {
	env, err := message.Parse(raw)
	if err != nil || env.ID != e.ID || env.Line != line || env.Position == e.Position {
		return 0, false
	}
	known, err := l.entries(line, env.Position, env.Position+1)
	return env.Position, err == nil && len(known) > 0 && known[0].ID == e.ID && known[0].FileID() == e.FileID()
}

// muchEdited is how large an edited message may be, in bytes, or up to twice its committed size if that is more.
const muchEdited = 64 << 20

func (e *Entry) sameAs(raw []byte) bool { return int64(len(raw)) == e.Size && bodySum(raw) == e.Sum }

// committed returns the committed bytes if the file holds them in any form, and nil otherwise. env is the parsed file
// if err is nil.
func (e *Entry) committed(raw []byte, env *message.Envelope, err error) []byte {
	if e.sameAs(raw) {
		return raw
	}
	if err == nil {
		if raw = env.AppendTo(nil); e.sameAs(raw) {
			return raw
		}
	}
	return nil
}

// edited returns nil when a file without the committed bytes is a version of the message. env is the parsed file if err
// is nil.
func (e *Entry) edited(env *message.Envelope, err error, info fs.FileInfo) error {
	switch {
	case err != nil && ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		return fmt.Errorf("is not a valid message: %v", err) //nolint:errorlint // nor does it hold one of another version
	case err != nil:
		return fmt.Errorf("is not a valid message: %w", err)
	case env.ID != e.ID || env.FileID() != e.FileID():
		return fmt.Errorf("holds message %s", env.ID)
	case e.Lost != "":
		return nil
	case ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		return errors.New("changed but kept its modification time")
	case env.StoredAt.UnixNano() < e.At:
		// A writer was stopped between the commit of a new version and its file.
		return errors.New("holds an older version")
	}
	return nil
}
