package importer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Destination is a [Store] that remembers the histories it holds. Save writes what it remembers.
type Destination interface {
	Store
	Known
	Save() error
}

// rules is the version of the rules that make messages from records. Another one reads every file again.
const rules = "import/1"

// endBytes is the length of the end of a file that its state includes. A tool that changes a file without a change of
// its size and time is rare; one that also leaves the end as it was is not known.
const endBytes = 64 << 10

// settledAfter is the age from which the time of a file distinguishes a write from a later one, if the system keeps
// fractions of a millisecond; else it is coarseAfter.
const (
	settledAfter = 100 * time.Millisecond
	coarseAfter  = 3 * time.Second
)

// sighting is a history as it was before an import read it.
type sighting struct {
	whole, growing History // by [Options.Growing]: an import of a growing file may leave its end out
	settled        bool    // a later write gets another time
}

// sight looks at a history. ok is false if it is not there.
func sight(path string, o *Options) (is sighting, ok bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return is, false
	}
	now := time.Now()
	stamp, newest := stampOf(path, nil)
	if newest.IsZero() {
		return is, false
	}
	resolution := settledAfter
	if newest.Nanosecond()%int(time.Millisecond) == 0 {
		resolution = coarseAfter
	}
	is.settled = now.Sub(newest) >= resolution
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d ", rules, o.Format, o.MaxRecord)
	_ = binary.Write(h, binary.LittleEndian, stamp)
	for _, file := range []string{path, path + "-wal"} {
		if err := addEnd(h, file); err != nil {
			return is, false
		}
	}
	is.whole.Path = sha256.Sum256([]byte(abs))
	is.growing.Path = is.whole.Path
	h.Sum(is.whole.State[:0])
	h.Write([]byte("growing"))
	h.Sum(is.growing.State[:0])
	return is, true
}

// addEnd adds the end of a regular file, if it is one.
func addEnd(h io.Writer, path string) error {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	from := max(st.Size()-endBytes, 0)
	_, err = io.Copy(h, io.NewSectionReader(f, from, st.Size()-from))
	return err
}

// isKnown reports whether the store holds all of a history.
func (o *Options) isKnown(ctx context.Context, is *sighting) bool {
	return o.Known.Has(ctx, is.whole) || o.Growing && o.Known.Has(ctx, is.growing)
}

// note remembers a history that was imported without an error or a problem, unless it changed meanwhile.
func (o *Options) note(path string, is *sighting, contexts []uuid.UUID) {
	now, ok := sight(path, o)
	switch {
	case !ok || !is.settled || now.whole != is.whole || len(contexts) == 0:
	case o.Growing:
		o.Known.Note(is.growing, contexts)
	default:
		o.Known.Note(is.whole, contexts)
	}
}

// watchResults returns yield, and what notes a history once all its results were passed on without an error.
func watchResults(yield func(Result, error) bool) (watched func(Result, error) bool, complete func() (contexts []uuid.UUID, ok bool)) {
	var contexts []uuid.UUID
	ok := true
	watched = func(r Result, err error) bool {
		if err != nil || r.Problems > 0 || r.Context == uuid.Nil {
			ok = false
		} else {
			contexts = append(contexts, r.Context)
		}
		more := yield(r, err)
		ok = ok && more
		return more
	}
	return watched, func() ([]uuid.UUID, bool) { return contexts, ok }
}

// stampOf is a checksum of what the file system says about the files of a history, or of an error. newest is the time of
// the newest file, zero if there is none.
func stampOf(path string, err error) (stamp uint64, newest time.Time) {
	s := stamper{Hash64: fnv.New64a()}
	if err != nil {
		_, _ = io.WriteString(s, err.Error())
		return s.Sum64(), newest
	}
	if st := s.addFile(path); st != nil && st.IsDir() {
		s.addFolder(path)
	}
	if strings.EqualFold(filepath.Ext(path), ".db") {
		s.addFile(path + "-wal")
	}
	// STORAGE/session/PROJECT/SESSION.json of opencode has its messages and parts in other folders.
	session, isJSON := strings.CutSuffix(filepath.Base(path), ".json")
	sessions := filepath.Dir(filepath.Dir(path))
	if storage := filepath.Dir(sessions); isJSON && filepath.Base(sessions) == "session" {
		for _, e := range s.addFolder(filepath.Join(storage, "message", session)) {
			s.addFolder(filepath.Join(storage, "part", strings.TrimSuffix(e.Name(), ".json")))
		}
	}
	return s.Sum64(), s.newest
}

// stamper adds what the file system says about files.
type stamper struct {
	hash.Hash64
	newest time.Time
}

func (s *stamper) addFile(path string) fs.FileInfo {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	s.addInfo(st)
	return st
}

func (s *stamper) addInfo(st fs.FileInfo) {
	_, _ = io.WriteString(s, st.Name())
	_ = binary.Write(s, binary.LittleEndian, [2]int64{st.Size(), st.ModTime().UnixNano()})
	if st.ModTime().After(s.newest) {
		s.newest = st.ModTime()
	}
}

func (s *stamper) addFolder(dir string) []fs.DirEntry {
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
		return nil
	}
	entries, _ := os.ReadDir(dir) // the import reports an error
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			s.addInfo(st)
		}
	}
	return entries
}
