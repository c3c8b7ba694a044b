package index

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// FileState says what lies where the file of a message belongs.
type FileState int

// The states of a message's file.
const (
	FileExact   FileState = iota // what was committed
	FileSpelled                  // what was committed, spelled in another way: a byte order mark, white space, ids in upper case
	FileEdited                   // a valid envelope of the message: changed by hand, or a newer version
	FileMissing                  // nothing
	FileDamaged                  // something else
)

// Whole reports whether a file holds what was committed.
func (is FileState) Whole() bool { return is == FileExact || is == FileSpelled }

// ReadFile reads the message file of an entry, in one of the folders in messages/, and tells what it is. raw is its bytes
// without the final newline, or what was committed where it spells that in another way, and nil where there is none or it cannot be read. With FileMissing and FileDamaged comes an error
// that says more; one that wraps ErrDamaged is about the file's content, any other one about reading it.
//
// One that was erased has no file, whatever lies there: FileMissing.
//
// Stat data decides only whether a file that does not hold what was committed was edited: damage leaves size and time as they were.
func (e *Entry) ReadFile(dir *ctxfolder.Dir, folder string) (raw []byte, is FileState, err error) {
	if e.Lost == Erased {
		return nil, FileMissing, ErrErased
	}
	if e.Lost == "" {
		raw, err = dir.LoadMessage(folder, e.FileID(), e.Size)
		if n := len(raw) - 1; err == nil && n >= 0 && raw[n] == '\n' && e.sameAs(raw[:n]) {
			return raw[:n], FileExact, nil
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
		return committed, FileSpelled, nil
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

// ErrTaken is wrapped when the file of a message holds another one of its id: one that was stored when this one could not be found.
var ErrTaken = errors.New("its id was stored again")

// ReadFile is [Entry.ReadFile] for an entry of a line. A file that tells line and position of another row with its id is the file of that one, and this one has
// none: FileMissing, with an error that wraps ErrTaken.
func (l *Log) ReadFile(line uuid.UUID, e *Entry, folder string) (raw []byte, is FileState, err error) {
	raw, is, err = e.ReadFile(l.dir, folder)
	if raw == nil || is.Whole() {
		return raw, is, err
	}
	if at, taken := l.taken(line, e, folder, raw); taken {
		return nil, FileMissing, fmt.Errorf("%w: %w at position %d", fs.ErrNotExist, ErrTaken, at)
	}
	return raw, is, err
}

// taken returns the position of the other message of its id that an entry's file holds.
func (l *Log) taken(line uuid.UUID, e *Entry, folder string, raw []byte) (position int64, taken bool) {
	env, err := message.Parse(raw)
	if err != nil || env.ID != e.ID || env.Line == line && env.Position == e.Position {
		return 0, false
	}
	told, err := l.entries(env.Line, env.Position, env.Position+1)
	if err != nil || len(told) == 0 || told[0].ID != e.ID || told[0].FileID() != e.FileID() {
		return 0, false
	}
	return env.Position, env.Line == line || slices.Contains(l.dir.FoldersOf(env.Line), folder)
}

// muchEdited is how large a message may have become by an edit, in bytes, if it was not half as large before.
const muchEdited = 64 << 20

func (e *Entry) sameAs(raw []byte) bool { return int64(len(raw)) == e.Size && bodySum(raw) == e.Sum }

// committed returns what was committed where a file holds that, in whatever spelling; otherwise nil. env is what it was parsed to, if err is nil.
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

// edited returns nil when a file that does not hold what was committed is a version of the message. env is what it was parsed to, if err is nil.
func (e *Entry) edited(env *message.Envelope, err error, info fs.FileInfo) error {
	switch {
	case err != nil && ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		return fmt.Errorf("holds no message: %v", err) //nolint:errorlint // nor does it hold one of another version
	case err != nil:
		return fmt.Errorf("holds no message: %w", err)
	case env.ID != e.ID || env.FileID() != e.FileID():
		return fmt.Errorf("holds message %s", env.ID)
	case e.Lost != "":
		return nil
	case ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		return errors.New("has changed, its time has not")
	case env.StoredAt.UnixNano() < e.At:
		// A writer was stopped between the commit of a new version and its file.
		return errors.New("holds an older version")
	}
	return nil
}
