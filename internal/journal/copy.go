package journal

import (
	"errors"
	"io"
	"os"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// CopyTo writes the log, as far as it was read, to another folder, for another store: the begin record names that, and the
// other records are the same. A damaged begin record stays as it is. CopyTo syncs nothing.
func (l *Log) CopyTo(dir vfs.FS, store uuid.UUID) error {
	var begin []byte
	from := int64(0)
	if l.state != nil {
		b := l.begin
		b.Store = store
		var err error
		if begin, err = b.encode(l.from); err != nil {
			return err
		}
		from = l.first
	}
	f, err := dir.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	return errors.Join(l.copyFrom(from, f, begin), f.Close())
}

// copyFrom writes a begin record, what the log has from an offset on, and blank space.
func (l *Log) copyFrom(from int64, f vfs.File, begin []byte) error {
	_, err := f.Write(begin)
	if err == nil {
		_, err = io.Copy(f, io.NewSectionReader(l.f, from, l.end-from))
	}
	if err == nil {
		_, err = f.Write(blankSpace(space(int64(len(begin)) + l.end - from)))
	}
	return err
}

// After returns the place after a record that follows a place, although no log has it: a segment was written instead.
func After(at Position, kind Kind, body []byte) Position {
	h := Head{Prev: at.Chain, Seq: at.Seq + 1, Kind: kind, Len: int64(len(body)), Sum: message.Sum(body)}
	appendRecord(nil, &h, nil)
	return h.Position()
}
