package erase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// An erase leaves foreign files alone, such as a copy of a message that a person made. It names those that
// hold an erased message.

const (
	// minText and maxText bound the text of a message by which a copy is found, in bytes: a shorter one is in many files.
	minText = 8
	maxText = 64
	// maxForeignFile, maxForeignBytes and maxForeignFiles bound what is searched: of a file, and in all.
	maxForeignFile  = 64 << 20
	maxForeignBytes = 1 << 30
	maxForeignFiles = 100_000
)

var errSearchedEnough = errors.New("the search reached its limit")

// copySearch finds copies of messages.
type copySearch struct {
	e      *eraser
	bytes  int64 // left to read
	files  int   // left to open
	buffer []byte
}

// readTexts notes the text of the messages, before they are erased.
func (e *eraser) readTexts(ctx context.Context) error {
	e.texts = map[uuid.UUID][]byte{}
	for _, at := range e.main.places {
		if e.texts[at.Entry.ID] != nil || at.Entry.Gone != archive.Here {
			continue
		}
		entry := at.Entry
		span := loader.Span{Line: at.Span.Line, Folder: at.Span.Folder, From: entry.Position, To: entry.Position + 1}
		m, err := e.main.c.Loader.Load(ctx, span, &entry)
		if err != nil {
			return err
		}
		if m.Unavailable != nil {
			continue
		}
		if body, err := m.Body(ctx); err == nil {
			e.texts[entry.ID] = longestText(body)
		}
	}
	return nil
}

// longestText returns the longest part of a text in a JSON value that programs write alike, in JSON or outside of it. It
// returns nil if all are short. Some programs escape what is not ASCII, so a part without such characters is preferred.
func longestText(body []byte) []byte {
	var plain, any string
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		text, _ := token.(string)
		plain = longestPart(plain, text, func(r rune) bool { return isEscaped(r) || r >= 0x7f })
		any = longestPart(any, text, isEscaped)
	}
	if len(plain) < 4*minText && len(any) > len(plain) {
		plain = any
	}
	if len(plain) < minText {
		return nil
	}
	return []byte(strings.TrimSpace(plain[:min(len(plain), maxText)]))
}

func longestPart(longest, text string, ends func(rune) bool) string {
	for part := range strings.FieldsFuncSeq(text, ends) {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func isEscaped(r rune) bool { return r < ' ' || strings.ContainsRune(`"\<>&`, r) }

// findCopies reports the files that are none of the store's and hold one of the messages: in the folder of the context,
// and in the store's folder outside of other contexts. It reads regular files only, follows no link, and stops at a
// limit, which it reports. Files that are compressed, and those of a repository in .git, are not searched.
func (e *eraser) findCopies(ctx context.Context) error {
	if e.o.locked {
		return nil // a purge reports nothing about the moments that it erases
	}
	s := &copySearch{e: e, bytes: maxForeignBytes, files: maxForeignFiles, buffer: make([]byte, 1<<20)}
	err := s.folder(ctx, ".")
	for _, p := range e.strangers {
		if err == nil {
			err = errors.Join(ctx.Err(), s.file(p))
		}
	}
	if errors.Is(err, errSearchedEnough) {
		return nil
	}
	return err
}

func (s *copySearch) folder(ctx context.Context, folder string) error {
	var inside []fs.DirEntry
	for entry, err := range s.e.s.FS.ReadDir(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			s.report(uuid.Nil, folder, 0, "could not be searched: "+err.Error())
			break
		}
		inside = append(inside, entry)
	}
	for _, entry := range inside {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := path.Join(folder, entry.Name())
		var err error
		switch own := s.isOwn(p); {
		case own == ownTree || !entry.IsDir() && own == ownEntry:
		case entry.IsDir():
			err = s.folder(ctx, p)
		case entry.Type().IsRegular():
			err = s.file(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// own says whether an entry is the store's.
type own int

const (
	foreign  own = iota
	ownEntry     // the entry is, but things in it may not be
	ownTree      // it is, with all that is in it, or it is not searched
)

// isOwn reports whether the store has a file or a folder with this path.
func (s *copySearch) isOwn(p string) own {
	parts := strings.Split(p, "/")
	first := parts[0]
	id, isContext := ctxfolder.ParseID(first)
	if len(parts) == 1 {
		return s.isOwnInStore(first, id, isContext)
	}
	if !isContext {
		return foreign
	}
	name := parts[1]
	_, log := journal.ParseName(name)
	switch {
	case len(parts) == 2:
		switch name {
		case ctxfolder.Trash, ctxfolder.Messages, legacy.PoolFolder: // findTraces read the names of message files
			return ownTree
		case ctxfolder.MetadataFile, ctxfolder.IndexFile, ctxfolder.ErasingFile, ctxfolder.Segments, legacy.ContextFile:
			return ownEntry
		}
		if log || trash.IsTemporary(name) {
			return ownEntry
		}
	case len(parts) == 3:
		_, segment := archive.ParseName(parts[2])
		if name == ctxfolder.Segments && segment {
			return ownEntry
		}
	}
	return foreign
}

func (s *copySearch) isOwnInStore(name string, id uuid.UUID, isContext bool) own {
	switch name {
	case ctxfolder.Trash, ctxfolder.Locks, ctxfolder.Staging, "blobs", engine.DerivedFolder, "replicas", ".git":
		return ownTree
	case engine.StoreFile, listing.SummariesFile, engine.ChangesFile, engine.PurgedFile, "collected.jsonl", ".gitignore":
		return ownEntry
	}
	if isContext {
		if id == s.e.id {
			return ownEntry
		}
		return ownTree // another context
	}
	if _, legacyFile := ctxfolder.ParseID(strings.TrimSuffix(name, ".json")); legacyFile && strings.HasSuffix(name, ".json") {
		return ownEntry
	}
	return foreign
}

// file searches one file.
func (s *copySearch) file(p string) error {
	if s.files--; s.files < 0 || s.bytes <= 0 {
		s.report(uuid.Nil, p, 0, "not searched, nor are others: "+errSearchedEnough.Error())
		return errSearchedEnough
	}
	f, err := s.e.s.FS.OpenFile(p, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var size int64
	var id uuid.UUID
	found := false
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
			id, found, err = s.search(io.LimitReader(f, maxForeignFile))
		}
		err = errors.Join(err, f.Close())
	}
	switch {
	case found:
		s.report(id, p, size, "not removed: it contains the message, but is not a file of the store")
	case err != nil:
		s.report(uuid.Nil, p, size, fmt.Sprintf("could not be searched: %v", err))
	case size > maxForeignFile:
		s.report(uuid.Nil, p, size, "searched only in part: the file is too large")
	}
	return nil
}

func (s *copySearch) report(id uuid.UUID, p string, size int64, why string) {
	s.e.done = append(s.e.done, Removal{Context: s.e.id, ID: id, Path: p, Bytes: size, Reason: why, Foreign: true})
}

// search returns the message whose text or id a file holds.
func (s *copySearch) search(from io.Reader) (id uuid.UUID, found bool, err error) {
	kept := 0 // the end of the last part, since a text may begin in it
	for {
		n, err := io.ReadFull(from, s.buffer[kept:])
		s.bytes -= int64(n)
		part := s.buffer[:kept+n]
		for id := range s.e.ids {
			if bytes.Contains(part, []byte(id.String())) || s.e.texts[id] != nil && bytes.Contains(part, s.e.texts[id]) {
				return id, true, nil
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return id, false, nil
		}
		if err != nil {
			return id, false, err
		}
		kept = copy(s.buffer, part[len(part)-min(len(part), maxText):])
	}
}
