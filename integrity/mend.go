package integrity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/views"
)

// mendMetadata commits what only metadata.json has, and writes the file again. The old one moves to the trash.
//
// Crash order: the file is replaced after its content is committed. Until that is durable, the file says the same once
// more.
func (r *repair) mendMetadata() error {
	m, is, why := r.effective()
	if why != nil && !errors.Is(why, ctxfolder.ErrMetadata) {
		return why
	}
	p, err := r.judgeMetadata(m, is, why)
	if err != nil || p == nil || m == nil {
		return err
	}
	info, err := r.Dir.FS.Lstat(ctxfolder.MetadataFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil && !info.Mode().IsRegular():
		err = r.setAside(ctxfolder.MetadataFile)
	case err == nil && is != ctxfolder.ProjectionNewer && !r.Dir.IsBlankMetadata():
		err = ctxfolder.TrashCopy(r.Dir, ctxfolder.TrashDamaged, ctxfolder.MetadataFile)
	}
	if err != nil {
		return err
	}
	p.Path = r.Dir.ID.String() + "/" + p.Path
	if is == ctxfolder.ProjectionEdited || is == ctxfolder.ProjectionNewer {
		err = r.writeMetadata(m.Clone())
	} else {
		_, err = r.Dir.WriteMetadata(m)
		r.metadata = m
	}
	if err == nil {
		r.did(*p, "rewritten with the edits that could be kept; was: %s", p.Detail)
	}
	return err
}

// writeMetadata commits metadata, and writes its file.
func (r *repair) writeMetadata(m *ctxfolder.Metadata) error {
	m.Revision, m.UpdatedAt = m.Revision+1, time.Now().UTC()
	item, err := r.Index.MetadataItem(m)
	if err != nil {
		return err
	}
	commit := r.Index.Append([]journal.Item{item}, false)
	if err := cmp.Or(commit.Err, commit.Sync()); err != nil {
		return err
	}
	r.metadata = m
	_, err = r.Dir.WriteMetadata(m)
	return err
}

// mendLines adds the lines that the metadata lacks, with branches.
func (r *repair) mendLines(problems []problem) {
	for _, p := range problems {
		if p.Kind != KindStructure || r.metadata == nil {
			continue
		}
		c, ok, err := r.Index.Counts(p.line)
		if _, known := r.metadata.Line(p.line); err == nil && ok && !known {
			m := r.metadata.Clone()
			if err = r.addLine(m, c); err == nil {
				err = r.writeMetadata(m)
			}
			if err == nil {
				r.did(p, "added to the metadata, with a branch; was: %s", p.Detail)
			}
		}
		if err != nil {
			r.fail(p, err)
		}
	}
}

// mendBases lets empty lines that begin beyond the end of their parents begin there.
func (r *repair) mendBases() error {
	problems, err := r.wrongLines()
	if err != nil {
		return err
	}
	all, _, err := r.Index.AllCounts()
	m := r.metadata.Clone()
	for _, p := range problems {
		l, ok := m.Line(p.line)
		if !ok || !p.Repairable {
			r.left++
			continue
		}
		if parent, ok := m.Line(l.Parent); ok {
			l.Base = endOf(all, parent)
			p.Path = r.Dir.ID.String() + "/" + p.Path
			r.did(p, "corrected: %s", p.Detail)
		}
	}
	if err != nil || len(r.done) == 0 {
		return err
	}
	return r.writeMetadata(m)
}

// addLine adds a line that has messages to the metadata, with a branch. It begins where the message before its first one
// is.
func (r *repair) addLine(m *ctxfolder.Metadata, c index.Counts) error {
	var env message.Envelope
	first, ok, err := r.Index.Entry(c.Line, c.Base)
	if err == nil && ok {
		var raw []byte
		if raw, err = r.Index.ReadOne(&first); err == nil {
			env, err = message.ParseTrusted(raw)
		}
	}
	if err != nil && !errors.Is(err, index.ErrDamaged) {
		return err
	}
	if _, err := branch.New(m, freeName(m, cmp.Or(env.Branch, "main")), c.Line); err != nil {
		return err
	}
	l := &m.Lines[len(m.Lines)-1]
	if l.Base = c.Base; c.Base == 0 {
		return nil
	}
	for i := range m.Lines[:len(m.Lines)-1] {
		p := &m.Lines[i]
		if before, ok, err := r.Index.Entry(p.ID, c.Base-1); err != nil {
			return err
		} else if ok && before.ID == env.Prev && p.Base <= c.Base {
			l.Parent = p.ID
			return nil
		}
	}
	return fmt.Errorf("the message before position %d of line %s was not found on any line", c.Base, c.Line)
}

// freeName returns a name that no branch has, derived from name.
func freeName(m *ctxfolder.Metadata, name string) string {
	if _, err := branch.Folder(name); err != nil {
		name = "recovered"
	}
	for n, stem := 2, name; branch.Taken(m, name); n++ {
		name = fmt.Sprintf("%.200s (%d)", stem, n)
	}
	return name
}

// mendOne repairs one problem after a second look. The context is locked.
//
// Crash order: see flush. A copy of a file that a person may miss is in the trash before anything takes its place.
func (r *repair) mendOne(p problem) error {
	var err error
	switch file := r.inContext(p); p.Kind {
	case KindMissing, KindDamaged, KindEdited, KindFound, KindErased, KindMisplaced, KindDuplicate, KindUnknown:
		if p.found != "" {
			return r.mendElsewhere(p)
		}
		return r.mendMessage(p)
	case KindIndex:
		var b []byte
		if b, err = r.Index.Summary(); err == nil {
			err = r.Dir.ReplaceView(file, b)
		}
		if err == nil {
			r.did(p, "made again")
		}
	case KindErasing:
		if err = r.setAside(file); err == nil {
			r.did(p, "moved to the trash; repeat the erase with the ids of the messages")
		}
	case KindTemporary:
		if err = r.remove(file); err == nil {
			r.did(p, "removed")
		}
	case KindPayload, KindBlob:
		var from string
		if from, err = r.recover(p.sum); err == nil && from != "" {
			r.did(p, "restored from %s", from)
		}
	}
	return err
}

// inContext returns the path of a problem's file in the context's folder.
func (r *repair) inContext(p problem) string {
	return strings.TrimPrefix(p.Path, r.Dir.ID.String()+"/")
}

// mendMessage repairs the file of a message, or takes in what it holds.
func (r *repair) mendMessage(was problem) error {
	line, e, err := r.now(was.place)
	if err != nil || e == nil {
		return err
	}
	raw, p, err := r.judge(line, e)
	if err != nil || p == nil {
		return err
	}
	file := r.Dir.MessagePath(line.Folder, e.ID)
	switch was.Kind = p.Kind; p.Kind {
	case KindEdited:
		return r.take(was, line, e, raw, e.Next())
	case KindFound:
		return r.take(was, line, e, raw, time.Time{})
	case KindErased:
		if err = r.remove(file); err == nil {
			r.did(was, "removed permanently")
		}
		return err
	case KindDamaged:
		if _, is, _ := views.Read(r.Dir, line.Folder, e); is == views.Stale {
			err = r.remove(file)
		} else {
			err = r.setAside(file)
		}
	case KindMissing:
	default:
		return nil
	}
	if err == nil && e.Position >= line.Archived {
		err = r.Dir.CreateMessage(line.Folder, e.ID, raw, e.StoredAt())
	}
	if err == nil {
		r.did(was, "recreated from the committed message")
	}
	return err
}

// take commits the version of a message that a file holds: at a time, or at its own. The version before goes to the trash.
func (r *repair) take(was problem, line *ctxfolder.Line, e *index.Entry, raw []byte, at time.Time) error {
	env, err := message.Parse(raw)
	if err != nil {
		return err
	}
	env.Line, env.Position, env.Payloads = line.ID, e.Position, blob.Count(env.Body)
	if !at.IsZero() {
		env.StoredAt = at
	}
	body, folder := env.AppendTo(nil), line.Folder
	old, _ := r.Index.ReadOne(e) // nil if it is lost
	return r.commit(journal.Item{Kind: journal.Replace, Body: body, Was: e.Size}, func() error {
		if old != nil {
			_ = r.Dir.TrashVersion(env.Line, env.Position, old, env.StoredAt)
		}
		if own := r.Dir.MessagePath(folder, env.ID); was.found != "" && was.found != own {
			if err := r.setAside(was.found); err != nil {
				return err
			}
		}
		r.did(was, "committed the message as its file has it")
		return r.Dir.ReplaceMessage(folder, env.ID, body, env.StoredAt)
	})
}

// mendElsewhere repairs a file that is not in the place of its message.
func (r *repair) mendElsewhere(was problem) error {
	p, err := r.leftover(was.found)
	if err != nil || p == nil || !p.Repairable {
		return err
	}
	switch p.Kind {
	case KindDuplicate, KindUnknown:
		if err = r.setAside(p.found); err == nil {
			r.did(was, "moved to the trash: %s", p.Detail)
		}
		return err
	case KindErased:
		if err = r.remove(p.found); err == nil {
			r.did(was, "removed permanently")
		}
		return err
	}
	line, e, err := r.now(p.place)
	if err != nil || e == nil {
		return err
	}
	if p.Kind == KindMisplaced {
		return r.putBack(was, line, e)
	}
	env, raw, err := r.envelope(was.found)
	if err != nil {
		return err
	}
	if other, ok, err := r.Index.Find(line.ID, env.ID, math.MaxInt64); err != nil || ok && !other.IsErased() {
		return err
	}
	return r.take(was, line, e, raw, time.Time{})
}

// putBack moves a message's file to its place.
func (r *repair) putBack(was problem, line *ctxfolder.Line, e *index.Entry) error {
	own, folder := r.Dir.MessagePath(line.Folder, e.ID), ctxfolder.Messages+"/"+line.Folder
	if err := r.Dir.FS.Mkdir(folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.Dir.FS.Rename(was.found, own); err != nil {
		return err
	}
	r.dirs[folder], r.dirs[path.Dir(was.found)] = true, true
	r.did(was, "moved to %s", own)
	return r.mendMessage(was)
}
