package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// A writer makes a message file only after the message's record is durable. So the file proves its commit and every
// earlier one. A journal that does not end cleanly is torn only if no file says otherwise. The file of a replaced message
// proves nothing, since it existed before; nor does metadata.json, which a repair writes before a record commits it.

// messageProof looks for the message file of a commit beyond those that are known.
type messageProof struct {
	dir       *ctxfolder.Dir
	committed *ctxfolder.Metadata // nil for none
	ends      map[uuid.UUID]int64 // where the lines end; a line without an end has no messages
	known     map[fileKey]bool    // files of known messages
}

// exists reports whether there is a valid message file at or after the end of a line that a branch, or a removed line,
// shows to its end. A file far beyond the end proves nothing: a rebuild would ignore it.
func (p *messageProof) exists() (bool, error) {
	m, _, _, _ := p.dir.EffectiveMetadata(p.committed)
	if m == nil {
		return false, nil
	}
	ends := map[lineFolder]int64{}
	folders := map[string]bool{}
	reach := branch.Reach(m)
	for i := range m.Lines {
		if ln := &m.Lines[i]; reach[ln.ID] == branch.Whole {
			folders[ln.Folder], ends[lineFolder{ln.ID, ln.Folder}] = true, max(ln.Base, p.ends[ln.ID])
		}
	}
	rows := false
	for folder := range folders {
		err := p.dir.MessageIDs(folder, func(id uuid.UUID) error {
			file := fileKey{folder, id}
			if !rows && !p.known[file] { // most contexts have rows of most files
				rows = true
				if err := p.knowRows(m); err != nil {
					return err
				}
			}
			if p.known[file] {
				return nil
			}
			raw, _, err := p.dir.ReadMessage(folder, id)
			if err != nil {
				return shortage(err)
			}
			env, err := message.Parse(raw)
			if err != nil || env.FileID() != id {
				return nil
			}
			end, ok := ends[lineFolder{env.Line, folder}]
			if ok && env.Position >= end && env.Position < end+maxUnchecked {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return true, nil
		}
		if err := shortage(err); err != nil {
			return false, err
		}
	}
	return false, nil
}

type lineFolder struct {
	line   uuid.UUID
	folder string
}

// shortage returns an error that says nothing about the file, and nil for any other.
func shortage(err error) error {
	if vfs.IsShortage(err) {
		return err
	}
	return nil
}

// knowRows adds the files that whole rows name.
func (p *messageProof) knowRows(m *ctxfolder.Metadata) error {
	files, err := rowFiles(p.dir)
	if err != nil {
		return err
	}
	for line, folder := range m.Folders() {
		for _, number := range files[line] {
			err := eachRow(p.dir, ctxfolder.RowsFile(line, number), func(e Entry, err error) {
				if err == nil && e.Lost == "" && e.Position < p.ends[line] {
					p.known[fileKey{folder, e.FileID()}] = true
				}
			})
			if err := shortage(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachRow yields the rows of a file, or why one is damaged.
func eachRow(dir *ctxfolder.Dir, name string, yield func(Entry, error)) error {
	f, err := dir.FS.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: vfs.ErrNotRegular})
	}
	r := &reader{f: f, size: info.Size()}
	defer r.giveBack(r.borrow())
	row := make([]byte, rowWidth)
	for n := int64(0); ; n++ {
		b, err := r.bytes(n*rowWidth, rowWidth)
		if err != nil || len(b) < rowWidth {
			return err
		}
		copy(row, b)
		e, err := parseRow(row)
		if err != nil && row[0] == 0 {
			if next := vfs.NextData(f, n*rowWidth, r.size) / rowWidth; next > n+1 {
				n = next - 1 // a hole has no rows
				continue
			}
		}
		yield(e, err)
	}
}

// judge fails with ErrDamaged if a message file proves that the bytes after the end of the newest journal were a commit.
// The caller holds advance.
func (s *state) judge(j *journal) error {
	if j.tornAt == j.end {
		return nil
	}
	p := messageProof{dir: s.dir, committed: s.meta, ends: map[uuid.UUID]int64{}, known: map[fileKey]bool{}}
	folders := s.folders()
	for id, ln := range s.lines {
		p.ends[id] = ln.End()
		for i := range ln.recent {
			p.known[fileKey{folders[id], ln.recent[i].FileID()}] = true
		}
	}
	proven, err := p.exists()
	if err == nil && proven {
		err = fmt.Errorf("%w: %s does not end with the last commit", ErrDamaged, ctxfolder.JournalFile(j.gen))
	}
	if err == nil {
		j.tornAt = j.end
	}
	return err
}

// durable returns the proofs that a record of a journal which is not whole was durable: a later journal begins after it,
// index.json counts it, or it or a later one has a message file.
func (b *rebuilder) durable(j *journal) func([]change, uint64) bool {
	least := uint64(0)
	if b.x != nil {
		least = b.x.Seq
	}
	for _, next := range b.s.journals {
		if next.gen > j.gen {
			least = max(least, next.begin.Seq)
		}
	}
	return func(before []change, seq uint64) bool {
		if seq <= least || b.failed != nil {
			return true
		}
		p := messageProof{dir: b.s.dir, committed: b.s.meta, ends: map[uuid.UUID]int64{}, known: map[fileKey]bool{}}
		for _, c := range j.begin.Lines {
			p.ends[c.Line] = c.End()
		}
		for i := range before[:whole(before)] {
			c := &before[i]
			if m, err := metadataAfter(p.committed, c.kind, c.metadata); c.metadata != nil && err == nil {
				p.committed = m
			}
			extend(p.ends, c)
		}
		proven, err := p.exists()
		b.failed = err
		return proven || err != nil
	}
}

// extend applies a record to the ends of lines.
func extend(ends map[uuid.UUID]int64, c *change) {
	switch {
	case c.trim != nil:
		ends[c.trim.Line] = c.trim.End
	case c.kind == KindAppend:
		ends[c.address.Line] = max(ends[c.address.Line], c.address.Position+1)
	}
}
