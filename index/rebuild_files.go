package index

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// readRowFiles reads the row files that index.json names, or the others. Those may be of another history: the named
// ones and the packs count more. Without index.json all count as named, the newest first.
func (b *rebuilder) readRowFiles(files map[uuid.UUID][]uint64, named bool) {
	for i := range b.metadata.Lines {
		ln := &b.metadata.Lines[i]
		numbers := slices.Clone(files[ln.ID])
		slices.Sort(numbers)
		for _, number := range slices.Backward(numbers) {
			is := b.x == nil || slices.ContainsFunc(b.x.Lines, func(l FoldedLine) bool { return l.Line == ln.ID && l.Rows == number })
			if is == named {
				b.readRowFile(ln, number)
			}
		}
	}
}

// readRowFile takes the whole rows.
func (b *rebuilder) readRowFile(ln *ctxfolder.Line, number uint64) {
	end := ln.Base // after the position of the row, if readable: rows ascend
	// What is read before an error counts.
	err := eachRow(b.s.dir, ctxfolder.RowsFile(ln.ID, number), func(e Entry, err error) {
		if err != nil {
			end++
			return
		}
		end = max(end, e.Position+1)
		switch {
		case e.Lost != "":
			b.addLost(ln.ID, e)
		case b.found[ln.ID][e.Position].ID != e.ID && b.found[ln.ID][e.Position].ID != uuid.Nil:
			b.noteClaim(ln.ID, b.found[ln.ID][e.Position], e.ID)
		default:
			b.offer(ln.ID, e)
			b.rows[fileKey{ln.Folder, e.FileID()}] = e
		}
	})
	if err == nil || end > ln.Base {
		b.noteEnd(ln.ID, end)
	}
}

// readFolder reads the message files that no row names, and those touched since. A touched file may hold a newer
// version than its row: its stored_at distinguishes that from an edit by hand.
func (b *rebuilder) readFolder(folder string) error {
	err := b.s.dir.MessageIDs(folder, func(id uuid.UUID) error {
		row, known := b.rows[fileKey{folder, id}]
		if known {
			info, err := b.s.dir.StatMessage(folder, id)
			if errors.Is(err, fs.ErrNotExist) || err == nil && ctxfolder.Untouched(info, row.Size, row.StoredAt()) {
				return nil
			}
		}
		raw, _, err := b.s.dir.ReadMessage(folder, id)
		if err != nil {
			b.s.note("message", "%s/%s: %v", folder, id, err)
			return nil
		}
		env, err := message.Parse(raw)
		if a, ok := message.ParseAddress(raw); err != nil && !known && ok && a.FileID() == id && b.belongs(folder, &a) == nil {
			b.addLost(a.Line, Entry{Position: a.Position, ID: a.ID, File: a.File, Lost: "its file is damaged"})
		}
		if err == nil && env.FileID() != id {
			err = fmt.Errorf("it holds message %s", env.ID)
		}
		a := env.Address()
		if err == nil {
			err = b.belongs(folder, &a)
		}
		if err == nil && known && a.Position != row.Position {
			err = fmt.Errorf("it states position %d, but its row states %d", a.Position, row.Position)
		}
		if err != nil {
			b.s.note("message", "%s/%s: %v", folder, id, err)
			return nil
		}
		if known && env.StoredAt.UnixNano() <= row.At {
			return nil
		}
		b.offerFile(&a, raw)
		return nil
	})
	if err == nil {
		return nil
	}
	if info, serr := b.s.dir.FS.Lstat(ctxfolder.Messages + "/" + folder); serr == nil && !info.IsDir() {
		b.s.note("message", "%s is not a folder: %v", folder, err)
		return nil // the next writer moves it to the trash
	}
	return ifThere(err)
}

// belongs returns why a message has no place in a folder, nil if it has one.
func (b *rebuilder) belongs(folder string, a *message.Address) error {
	ln, ok := b.metadata.Line(a.Line)
	if b.below[a.Line] = b.below[a.Line] || ok && a.Position < ln.Base; !ok || ln.Folder != folder || a.Position < ln.Base {
		return fmt.Errorf("it states line %s and position %d, which do not belong in this folder", a.Line, a.Position)
	}
	return nil
}

// offerFile takes a message from its file.
func (b *rebuilder) offerFile(a *message.Address, raw []byte) {
	if old, taken := b.found[a.Line][a.Position]; taken && old.ID != a.ID {
		if p, filed := b.filed[lineKey{a.Line, old.ID}]; !filed || p != a.Position {
			b.noteClaim(a.Line, old, a.ID) // rows and packs have checksums, the position in a file has none
			return
		}
	}
	b.prev[a.ID] = a.Prev
	b.filed[lineKey{a.Line, a.ID}] = a.Position
	e := entryOf(a, head{len: int64(len(raw)), sum: bodySum(raw)})
	e.Payloads = max(e.Payloads, blob.Count(raw)) // after an edit by hand its own count may be wrong
	b.offer(a.Line, e)
}

// readStrays takes messages from folders of no line if their places are empty. A folder may have got another name, or
// metadata.json another name for it. A repair decides where such files belong.
func (b *rebuilder) readStrays(known map[string]bool) error {
	folders, err := b.s.dir.Folders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if known[folder] {
			continue
		}
		err := b.s.dir.MessageIDs(folder, func(id uuid.UUID) error {
			raw, _, err := b.s.dir.ReadMessage(folder, id)
			if err != nil {
				return nil // no file was expected here
			}
			env, err := message.Parse(raw)
			if err != nil || env.FileID() != id {
				return nil
			}
			ln, ok := b.metadata.Line(env.Line)
			if _, found := b.found[env.Line][env.Position]; !ok || found || env.Position < ln.Base {
				return nil
			}
			a := env.Address()
			b.offerFile(&a, raw)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
