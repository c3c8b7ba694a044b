// Package collected is collected.jsonl, the log of collections: what was moved to the trash, removed or archived, and when.
package collected

import (
	"bytes"
	"encoding/json"
	"os"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// File lists what was collected and when, for people and for the next collection.
	File    = "collected.jsonl"
	version = "collected/1"
	// MaxBytes bounds the file, in bytes: a new file replaces a larger one.
	MaxBytes = 1 << 20
	// tailBytes is the length of the end that is read to find the newest line, in bytes.
	tailBytes = 16 << 10
)

// Line is a line of collected.jsonl.
type Line struct {
	Version  string    `json:"ctxdir,omitempty"` // in the first line only
	Record   string    `json:"record"`           // "run": a collection began; "trashed", "purged", "archived"
	At       time.Time `json:"at"`
	Context  uuid.UUID `json:"context,omitzero"`
	Path     string    `json:"path,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Messages int64     `json:"messages,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// Log writes to collected.jsonl. It is a log: only the time of the next collection depends on it. So lines
// that cannot be written are left out.
type Log struct {
	s   *engine.Store
	f   vfs.File
	end int64
}

// Open opens the log. The caller holds [engine.CollectionLock]. A dry run logs nothing.
//
// Crash order: none. Lines are not synced; a reader skips a torn line.
func Open(s *engine.Store, dryRun bool) *Log {
	l := &Log{s: s}
	if dryRun {
		return l
	}
	if info, err := s.FS.Lstat(File); err == nil && (!info.Mode().IsRegular() || info.Size() > MaxBytes) {
		_ = s.FS.Remove(File)
	}
	f, err := s.FS.OpenFile(File, os.O_RDWR|os.O_CREATE)
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

// Add writes a line, with the current time.
func (l *Log) Add(x Line) {
	if l.f == nil {
		return
	}
	x.At = l.s.Now().UTC()
	if l.end == 0 {
		x.Version = version
	}
	if b, err := json.Marshal(x); err == nil {
		l.write(append(ctxfolder.WithCheck(b), '\n'))
	}
}

func (l *Log) write(b []byte) {
	if n, err := l.f.WriteAt(b, l.end); err == nil {
		l.end += int64(n)
	}
}

// Close closes the log.
func (l *Log) Close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}

// Last returns when something was last collected, according to the log; zero if the log does not say.
func Last(s *engine.Store) time.Time {
	f, err := s.FS.OpenFile(File, os.O_RDONLY)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	size, err := vfs.Size(f)
	if err != nil {
		return time.Time{}
	}
	b := make([]byte, min(size, tailBytes))
	n, _ := f.ReadAt(b, size-int64(len(b)))
	for b = b[:n]; len(b) > 0; {
		b = bytes.TrimRight(b, "\n")
		i := bytes.LastIndexByte(b, '\n') + 1
		var x Line
		if ctxfolder.CheckFits(b[i:]) && json.Unmarshal(b[i:], &x) == nil && !x.At.IsZero() {
			return x.At
		}
		b = b[:i]
	}
	return time.Time{}
}
