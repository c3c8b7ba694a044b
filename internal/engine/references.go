package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// References calls f for each blob to which the context refers, in its lines and in its trash.
func (c *Context) References(ctx context.Context, edited bool, f func(blob.Sum)) (unread, err error) {
	unread, err = c.ReferencesInLines(ctx, edited, f)
	var entries []fs.DirEntry
	if err == nil {
		entries, err = ctxfolder.ListTrash(c.Dir.FS)
	}
	if err == nil {
		err = c.ReferencesInTrash(entries, f)
	}
	return unread, err
}

// ReferencesInLines calls f for each blob to which messages or system prompts refer, those of removed branches too. It
// reads only messages with payloads in the index and, with edited, messages edited by hand, for which it checks each
// file. It continues after an unreadable message and returns the error in unread.
func (c *Context) ReferencesInLines(ctx context.Context, edited bool, f func(blob.Sum)) (unread, err error) {
	m := c.Current()
	for _, p := range m.Prompts() {
		EachMention(p, f)
	}
	for _, line := range m.Lines {
		counts, ok, err := c.Index.Counts(line.ID)
		if err != nil {
			return nil, err
		}
		if ok && (edited || counts.Referring > 0) {
			span := loader.Span{Line: line.ID, Folder: line.Folder, From: counts.Base, To: counts.End()}
			lost, err := c.referencesOf(ctx, span, edited, f)
			if err != nil {
				return nil, err
			}
			unread = cmp.Or(unread, lost)
		}
	}
	return unread, nil
}

// referencesOf calls f for each reference of a message.
func (c *Context) referencesOf(ctx context.Context, span loader.Span, edited bool, f func(blob.Sum)) (unread, err error) {
	for e, err := range c.Index.All(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return nil, err
		}
		if e.Gone != archive.Here {
			if _, err := c.Dir.StatMessage(span.Folder, e.ID); errors.Is(err, fs.ErrNotExist) {
				if e.IsLost() && !e.IsSealed() { // else the message is gone for good, with its references
					unread = cmp.Or(unread, fmt.Errorf("%w: message %d of line %s", ErrDamaged, e.Position, e.Line))
				}
				continue
			}
		}
		if c.Store.Exclusions.hasMessage(c.Dir.ID, e.ID) {
			continue
		}
		if e.Payloads == 0 && !edited {
			continue
		}
		untouched := !edited || c.isUntouched(span, e)
		if e.Payloads == 0 && untouched {
			continue
		}
		m, err := c.Loader.Load(ctx, span, e)
		if err != nil {
			return nil, err
		}
		if m.Unavailable == nil {
			EachMention(m.Stored, f)
		} else if e.Payloads > 0 && unread == nil {
			unread = fmt.Errorf("message %s: %w", e.ID, m.Unavailable)
		}
		if !untouched && !m.Edited {
			if _, _, err := views.Read(c.Dir, span.Folder, e); vfs.IsFault(err) { // it is unknown whether it was edited
				unread = cmp.Or(unread, err)
			}
		}
	}
	return unread, nil
}

// isUntouched reports whether the file of a message was not edited, as far as its size and time say.
func (c *Context) isUntouched(span loader.Span, e *index.Entry) bool {
	info, err := c.Dir.StatMessage(span.Folder, e.ID)
	return errors.Is(err, fs.ErrNotExist) || err == nil && ctxfolder.Untouched(info, e.Size, e.StoredAt())
}

// ReferencesBeyond calls f for each blob to which a message refers at its line's position in ends or behind it, from the
// first one on where ends has none. Unlike [Context.References] it counts payloads that logs have, too: blobs of them
// may be left. It continues after an unreadable message and returns the error in unread.
func (c *Context) ReferencesBeyond(ctx context.Context, ends map[uuid.UUID]int64, f func(blob.Sum)) (unread, err error) {
	for _, line := range c.Current().Lines {
		counts, ok, err := c.Index.Counts(line.ID)
		if err != nil {
			return nil, err
		}
		span := loader.Span{Line: line.ID, Folder: line.Folder, From: max(ends[line.ID], line.Base), To: counts.End()}
		if !ok || span.From >= span.To {
			continue
		}
		lost, err := c.referencesOf(ctx, span, true, f)
		if err != nil {
			return nil, err
		}
		unread = cmp.Or(unread, lost)
	}
	return unread, nil
}

// EachMention calls f for each blob to which stored may refer.
func EachMention(stored []byte, f func(blob.Sum)) {
	for sum := range blob.Mentions(stored) {
		f(sum)
	}
}

// ReferencesInTrash calls f for each blob to which the files of the context's trash may refer: messages of lines, old
// versions, damaged files, cut logs.
func (c *Context) ReferencesInTrash(entries []fs.DirEntry, f func(blob.Sum)) error {
	for _, e := range entries {
		err := walkFile(c.Dir.FS, ctxfolder.Trash, e, func(path string) error {
			if c.Store.Exclusions.hasFile(c.Dir.ID, path) {
				return nil
			}
			return EachMentionInFile(c.Dir.FS, path, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EachMentionInFile calls f for each blob to which a file of any size, or a message in a segment, may refer. A missing
// file refers to none. A reference does not span a hole in the file.
func EachMentionInFile(fsys vfs.FS, name string, f func(blob.Sum)) error {
	if _, is := archive.ParseName(path.Base(name)); is {
		return eachMentionInSegment(fsys, name, f)
	}
	file, err := fsys.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for part, err := range vfs.Data(file) {
		if err != nil {
			return err
		}
		for sum, err := range blob.MentionsIn(part) {
			if err != nil {
				return err
			}
			f(sum)
		}
	}
	return nil
}

func eachMentionInSegment(fsys vfs.FS, name string, f func(blob.Sum)) error {
	folder, err := fsys.Sub(path.Dir(name))
	if err != nil {
		return err
	}
	defer folder.Close()
	s, err := archive.Salvage(folder, path.Base(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	for found, err := range s.Envelopes() {
		if err != nil {
			return err
		}
		EachMention(found, f)
	}
	return nil
}

// WalkFiles calls f for each regular file below a folder. It follows no link. A missing folder has no files.
func WalkFiles(fsys vfs.FS, folder string, f func(path string) error) error {
	for e, err := range fsys.ReadDir(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := walkFile(fsys, folder, e, f); err != nil {
			return err
		}
	}
	return nil
}

// walkFile is WalkFiles for one entry of a folder.
func walkFile(fsys vfs.FS, folder string, e fs.DirEntry, f func(path string) error) error {
	path := folder + "/" + e.Name()
	switch {
	case e.IsDir():
		return WalkFiles(fsys, path, f)
	case e.Type().IsRegular():
		return f(path)
	}
	return nil
}

// Files yields the paths, relative to the store's folder, of all files needed to read a context: a copy of them is a
// store with this context. Unless the store is read-only, Files first seals what only logs have.
func (c *Context) Files(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		paths, err := Use(c, func() ([]string, error) { return c.files(ctx) })
		for _, p := range paths {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield("", Wrap(Error{Op: "list the files of", Context: c.Dir.ID}, err))
		}
	}
}

func (c *Context) files(ctx context.Context) ([]string, error) {
	if !c.Store.ReadOnly {
		if err := c.sealAll(ctx); err != nil && !errors.Is(err, syscall.EROFS) {
			return nil, err
		}
	}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	id := c.Dir.ID.String()
	paths := []string{StoreFile}
	err := WalkFiles(c.Store.FS, id, func(path string) error {
		if name := path[len(id)+1:]; index.IsNeeded(name) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	blobs := map[string]bool{}
	unread, err := c.References(ctx, true, func(sum blob.Sum) { blobs[blob.Path(sum)] = true })
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(blobs)) {
		if _, err := c.Store.FS.Lstat(path); !errors.Is(err, fs.ErrNotExist) { // check reports a missing blob
			paths = append(paths, path)
		}
	}
	return paths, unread
}

// BlobBytes returns the bytes on disk of the blobs to which the context refers; other contexts may share them. It
// counts as far as the messages are readable. It opens no blob and reads only the messages with payloads. References
// added to a file by hand do not count.
func (c *Context) BlobBytes(ctx context.Context) (int64, error) {
	seen := map[blob.Sum]bool{}
	var size int64
	err := c.use(func() error {
		_, err := c.References(ctx, false, func(sum blob.Sum) {
			if seen[sum] {
				return
			}
			seen[sum] = true
			if info, err := c.Store.FS.Lstat(blob.Path(sum)); err == nil {
				size += info.Size()
			}
		})
		return err
	})
	return size, Wrap(Error{Op: "measure", Context: c.Dir.ID}, err)
}

// hasMessage reports whether a message counts as gone.
func (b *Exclusions) hasMessage(context, id uuid.UUID) bool {
	return b != nil && b.Context == context && b.IDs[id]
}

// hasFile reports whether a file counts as gone.
func (b *Exclusions) hasFile(context uuid.UUID, path string) bool {
	return b != nil && b.Context == context && b.Paths[path]
}
