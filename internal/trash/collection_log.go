package trash

import (
	"bytes"
	"encoding/json"
	"os"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// logFile lists what was collected and when, for people and for the next collection.
	logFile    = "collected.jsonl"
	logVersion = "collected/1"
	// maxLogBytes bounds the file, in bytes: a new file replaces a larger one.
	maxLogBytes = 1 << 20
	// logTailBytes is the length of the end that is read to find the newest line, in bytes.
	logTailBytes = 16 << 10
)

// logLine is a line of collected.jsonl.
type logLine struct {
	Version  string    `json:"ctxdir,omitempty"` // in the first line only
	Record   string    `json:"record"`           // "run": a collection began; "trashed", "purged", "archived"
	At       time.Time `json:"at"`
	Context  uuid.UUID `json:"context,omitzero"`
	Path     string    `json:"path,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Messages int64     `json:"messages,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// collectionLog writes to collected.jsonl. It is a log: only the time of the next collection depends on it. So lines
// that cannot be written are left out.
type collectionLog struct {
	s   *engine.Store
	f   vfs.File
	end int64
}

// openLog opens the log. The caller holds [engine.CollectionLock]. A dry run logs nothing.
//
// Crash order: none. Lines are not synced; a reader skips a torn line.
func openLog(s *engine.Store, dryRun bool) *collectionLog {
	l := &collectionLog{s: s}
	if dryRun {
		return l
	}
	if info, err := s.FS.Lstat(logFile); err == nil && (!info.Mode().IsRegular() || info.Size() > maxLogBytes) {
		_ = s.FS.Remove(logFile)
	}
	f, err := s.FS.OpenFile(logFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return l
	}
	l.f = f
	if l.end, err = vfs.Size(f); err == nil && l.end > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], l.end-1); err == nil && last[0] != '\n' {
			l.write([]byte("\n"))
		}
	}
	return l
}

func (l *collectionLog) run() { l.line(logLine{Record: "run"}) }

func (l *collectionLog) add(x CollectResult) {
	record := "trashed"
	if x.Purged {
		record = "purged"
	}
	line := logLine{Record: record, Context: x.Context, Path: x.Path, Bytes: x.Bytes, Reason: x.Reason}
	if x.Kind == ctxfolder.TrashLine { // a purge leaves no name of a branch
		line.Path, line.Reason = x.Context.String()+"/"+ctxfolder.Messages, "messages that no branch shows"
	}
	l.line(line)
}

func (l *collectionLog) archived(r archiving.Result) {
	l.line(logLine{
		Record: "archived", Context: r.Context, Bytes: r.After, Messages: r.Messages, Reason: "old, as the settings of the store say",
	})
}

func (l *collectionLog) line(x logLine) {
	if l.f == nil {
		return
	}
	x.At = l.s.Now().UTC()
	if l.end == 0 {
		x.Version = logVersion
	}
	if b, err := json.Marshal(x); err == nil {
		l.write(append(ctxfolder.WithCheck(b), '\n'))
	}
}

func (l *collectionLog) write(b []byte) {
	if n, err := l.f.WriteAt(b, l.end); err == nil {
		l.end += int64(n)
	}
}

func (l *collectionLog) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}

// LastCollection returns when something was last collected, according to the log; zero if the log does not say.
func LastCollection(s *engine.Store) time.Time {
	f, err := s.FS.OpenFile(logFile, os.O_RDONLY)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	size, err := vfs.Size(f)
	if err != nil {
		return time.Time{}
	}
	b := make([]byte, min(size, logTailBytes))
	n, _ := f.ReadAt(b, size-int64(len(b)))
	for b = b[:n]; len(b) > 0; {
		b = bytes.TrimRight(b, "\n")
		i := bytes.LastIndexByte(b, '\n') + 1
		var x logLine
		if ctxfolder.CheckFits(b[i:]) && json.Unmarshal(b[i:], &x) == nil && !x.At.IsZero() {
			return x.At
		}
		b = b[:i]
	}
	return time.Time{}
}
