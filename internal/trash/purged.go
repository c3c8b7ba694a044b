package trash

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// purgedLine is a line of [engine.PurgedFile]: a context that was removed for good. Without it, a replica would take the context
// for lost, and bring it back.
type purgedLine struct {
	Context uuid.UUID `json:"context"`
	At      time.Time `json:"at"`
}

// notePurged adds a line for a context. A full disk does not stop a purge, which makes room.
//
// Crash order: the line is durable before the context is gone. A reader skips a torn line.
func notePurged(s *engine.Store, id uuid.UUID) error {
	b, err := json.Marshal(purgedLine{id, s.Now().UTC()})
	if err != nil {
		return err
	}
	f, err := s.FS.OpenFile(engine.PurgedFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	size, err := vfs.Size(f)
	if err == nil { // the line before may be torn
		_, err = f.WriteAt(append(append([]byte{'\n'}, ctxfolder.WithCheck(b)...), '\n'), size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.FS.SyncDir(".")
	}
	return err
}

// maxPurgedLine bounds a line, in bytes.
const maxPurgedLine = 4 << 10

// Purged returns the contexts that were removed for good.
func Purged(s *engine.Store) (map[uuid.UUID]time.Time, error) {
	all := map[uuid.UUID]time.Time{}
	f, err := s.FS.OpenFile(engine.PurgedFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, maxPurgedLine)
	for {
		b, err := lines.ReadSlice('\n')
		var x purgedLine
		if len(b) > 1 && ctxfolder.CheckFits(b[:len(b)-1]) && json.Unmarshal(b, &x) == nil {
			all[x.Context] = x.At
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
