package integrity

import (
	"cmp"
	"errors"
	"io/fs"
	"path"

	"github.com/google/uuid"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
)

// mendOne repairs one problem after a second look. The context is locked.
//
// Crash order: a copy is in the trash before anything is replaced. A message's file is written whole under another name
// and renamed. The row that marks a message as lost comes last. After a crash in between, a repair finds the rest.
func (r *repair) mendOne(p problem) error {
	switch p.Kind {
	case KindIndex:
		r.did(p, "rebuilt from journals and messages; was: %s", p.Detail)
	case KindStructure:
		return r.mendStructure(p)
	case KindFolder:
		info, err := r.Dir.FS.Lstat(p.found)
		if err == nil && !info.IsDir() {
			err = r.Dir.SetAside(p.found)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.did(p, "moved to the trash: it was not a folder")
	case KindErasing:
		if err := r.setAside(ctxfolder.ErasingFile); err != nil {
			return err
		}
		r.did(p, "moved to the trash; repeat the erase with the ids of the messages")
	case KindErased:
		return r.finishErasing(p)
	case KindMissing, KindDamaged, KindUnread, KindFound, KindEdited:
		if p.pack != uuid.Nil {
			return nil // repaired last
		}
		return r.mendMessage(p)
	case KindMisplaced, KindDuplicate, KindStray:
		return r.mendElsewhere(p)
	case KindTemporary:
		if err := r.Dir.FS.Remove(p.Path[len(r.Dir.ID.String())+1:]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.did(p, "removed")
	case KindPayload, KindBlob:
		from, err := r.recover(p.sum)
		if err == nil && from != "" {
			r.did(p, "restored from %s", from)
		}
		return err
	}
	return nil
}

// mendJournal retires damaged journals to the trash. The fold before settled their records, and Retire verifies them.
func (r *repair) mendJournal(p problem) error {
	if p.Kind != KindJournal {
		return nil
	}
	damaged, err := r.Log.DamagedJournals()
	if err == nil && len(damaged) > 0 {
		err = r.Log.Retire()
	}
	if err != nil {
		return err
	}
	if p.stray == 0 { // a stray journal is reported by mendStray
		r.did(p, "retired: what it held is in message files; was: %s", p.Detail)
	}
	return nil
}

// mendStructure corrects the lines in metadata.json.
func (r *repair) mendStructure(p problem) error {
	wrong, fixed, err := wrongLines(r.metadata, r.Dir, r.Log)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		if err := ctxfolder.TrashCopy(r.Dir, "damaged", ctxfolder.MetadataFile); err != nil {
			return err
		}
		if err := r.writeMetadata(fixed); err != nil {
			return err
		}
	}
	r.did(p, "corrected: %s", p.Detail)
	return nil
}

// writeMetadata commits metadata.
func (r *repair) writeMetadata(m *ctxfolder.Metadata) error {
	m.Revision++
	raw, err := ctxfolder.CommittableMetadata(m)
	if err != nil {
		return err
	}
	commit := r.Log.Append([]index.Item{{Kind: index.KindMetadata, Body: raw}})
	if commit.Err != nil {
		return commit.Err
	}
	if err := commit.Sync(); err != nil {
		return err
	}
	if _, err := r.Dir.WriteMetadata(m); err != nil {
		return err
	}
	r.metadata = m
	return nil
}

// mendMessage repairs a message whose file is in its place.
func (r *repair) mendMessage(was problem) error {
	line, ok := r.metadata.Line(was.line)
	if !ok {
		return nil
	}
	now, e, err := r.now(*line, was.entry.Position)
	if err != nil || e == nil {
		return err
	}
	_, p := r.judge(now, e)
	if p == nil {
		r.did(was, "rewritten from the journal")
		return nil
	}
	was.Kind = p.Kind
	switch p.Kind {
	case KindEdited:
		if p.spelled {
			if err := r.rewrite(now, e); err != nil {
				return err
			}
			r.did(was, "rewritten as it was committed; %s", p.Detail)
			return nil
		}
		if err := r.record(now, e); err != nil {
			return err
		}
		r.did(was, "committed the edited message")
	case KindFound:
		if err := r.take(now, e); err != nil {
			return err
		}
		r.did(was, "the message is available again")
	case KindMissing, KindDamaged, KindUnread:
		return r.restore(was, p, now, e)
	}
	return nil
}

// take makes a lost message available from its file: as what was committed, or an older version as an edit.
func (r *repair) take(line ctxfolder.Line, e *index.Entry) error {
	switch _, is, _ := e.ReadFile(r.Dir, line.Folder); is {
	case index.FileEdited:
		return r.record(line, e)
	case index.FileRespelled:
		if err := r.rewrite(line, e); err != nil {
			return err
		}
	}
	return r.Log.Mark(line.ID, map[int64]string{e.Position: ""})
}

// rewrite replaces a message file that spells the committed content in another way.
//
// Crash order: a copy of the file is durable in the trash first. The new file is durable before it takes the name.
func (r *repair) rewrite(line ctxfolder.Line, e *index.Entry) error {
	raw, is, err := e.ReadFile(r.Dir, line.Folder)
	if err != nil || is != index.FileRespelled {
		return err
	}
	own := r.Dir.MessagePath(line.Folder, e.FileID())
	was, err := vfs.ReadFile(r.Dir.FS, own, ctxfolder.MaxMessage)
	if err != nil {
		return err
	}
	if err := ctxfolder.TrashBytes(r.Dir, ctxfolder.TrashDamaged, path.Base(own), was); err != nil {
		return err
	}
	r.wrote[own], r.wrote[path.Dir(own)] = true, true
	return r.Dir.RewriteMessage(line.Folder, e.FileID(), raw, e.StoredAt())
}

// finishErasing removes a file that an erase left.
func (r *repair) finishErasing(p problem) error {
	file := cmp.Or(p.found, p.Path[len(r.Dir.ID.String())+1:])
	if err := r.Dir.FS.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.wrote[path.Dir(file)] = true
	r.did(p, "removed permanently")
	return nil
}

// restore writes a message's file again from a copy, or marks the message as lost.
func (r *repair) restore(was problem, p *problem, line ctxfolder.Line, e *index.Entry) error {
	if p.taken {
		r.lose(was, p, line, e)
		return nil
	}
	raw, from := r.copies.copyOf(r.Log, e)
	if _, packed := r.Log.ReadRecord(e); packed && e.Pack != uuid.Nil {
		if err := r.clear(line.Folder, e.FileID()); err != nil {
			return err
		}
		r.did(was, "moved to the trash: the message is in a pack")
		return nil
	}
	if raw == nil && p.Kind == KindUnread {
		return nil // the file may be whole
	}
	if err := r.clear(line.Folder, e.FileID()); err != nil {
		return err
	}
	if raw != nil {
		if err := r.write(line.Folder, e.FileID(), raw, e); err != nil {
			return err
		}
		r.did(was, "rewritten from %s", from)
		return nil
	}
	p.Detail += "; no copy was found"
	r.lose(was, p, line, e)
	return nil
}

// lose schedules a message to be marked as lost.
func (r *repair) lose(was problem, p *problem, line ctxfolder.Line, e *index.Entry) {
	if r.lost[line.ID] == nil {
		r.lost[line.ID] = map[int64]string{}
	}
	r.lost[line.ID][e.Position] = p.Detail
	r.did(was, "marked unavailable: %s", p.Detail)
}

// clear sets aside whatever has the place of a message's file, or a non-folder in the place of its folder.
func (r *repair) clear(folder string, file uuid.UUID) error {
	path := ctxfolder.Messages + "/" + folder
	info, err := r.Dir.FS.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return r.Dir.SetAside(path)
	}
	return r.setAside(pathOf(folder, file))
}

// write creates a message's file.
func (r *repair) write(folder string, file uuid.UUID, raw []byte, e *index.Entry) error {
	if err := r.Dir.CreateMessage(folder, file, raw, e.StoredAt()); err != nil {
		return err
	}
	r.wrote[pathOf(folder, file)], r.wrote[ctxfolder.Messages+"/"+folder] = true, true
	return nil
}

// record commits the version of a message that its file holds.
//
// Crash order: as in a replace; but for the time, the file already holds what is committed.
func (r *repair) record(line ctxfolder.Line, e *index.Entry) error {
	raw, _, err := e.ReadFile(r.Dir, line.Folder)
	if err != nil {
		return err
	}
	env, err := message.Parse(raw)
	if err != nil {
		return err
	}
	env.Line, env.Position, env.File = line.ID, e.Position, e.File
	env.StoredAt = e.Next()
	env.Payloads = blob.Count(env.Body)
	raw = env.AppendTo(nil)
	commit := r.Log.Append([]index.Item{{Kind: index.KindReplace, Envelope: &env, Body: raw, Was: e.Size}})
	if commit.Err != nil {
		return commit.Err
	}
	if err := commit.Sync(); err != nil {
		return err
	}
	return r.Dir.ReplaceMessage(line.Folder, e.FileID(), raw, env.StoredAt)
}

// mendElsewhere repairs a misplaced file.
func (r *repair) mendElsewhere(p problem) error {
	again, err := r.leftover(p.found)
	switch {
	case err != nil || again == nil:
		return err
	case again.Kind == KindMisplaced:
		return r.putBack(p, again)
	case again.Kind == KindDuplicate:
		if err := r.setAside(p.found); err != nil {
			return err
		}
		r.did(p, "moved to the trash: %s", again.Detail)
	case again.Kind == KindStray && again.Repairable:
		if err := r.setAside(p.found); err != nil {
			return err
		}
		r.did(p, "moved to the trash: it is not a message")
	}
	return nil
}

// putBack moves a message's file from another folder to its place.
func (r *repair) putBack(p problem, again *problem) error {
	e := again.entry
	line, ok := r.metadata.Line(again.line)
	if !ok {
		return nil
	}
	if err := r.clear(line.Folder, e.FileID()); err != nil {
		return err
	}
	own, folder := pathOf(line.Folder, e.FileID()), ctxfolder.Messages+"/"+line.Folder
	if err := r.Dir.FS.Mkdir(folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.Dir.FS.Rename(p.found, own); err != nil {
		return err
	}
	r.wrote[own], r.wrote[folder], r.wrote[path.Dir(p.found)] = true, true, true
	r.did(p, "moved to %s", own)
	switch _, is, _ := e.ReadFile(r.Dir, line.Folder); {
	case e.Lost != "" || is == index.FileEdited:
		return r.take(*line, &e)
	case is == index.FileRespelled:
		return r.rewrite(*line, &e)
	case is == index.FileDamaged:
		return r.takeOlder(*line, e)
	}
	return nil
}

// takeOlder commits an older version of a message that was moved to its place, if there is no copy of the newer one.
func (r *repair) takeOlder(line ctxfolder.Line, e index.Entry) error {
	if raw, _ := r.copies.copyOf(r.Log, &e); raw != nil {
		if err := r.setAside(pathOf(line.Folder, e.FileID())); err != nil {
			return err
		}
		return r.write(line.Folder, e.FileID(), raw, &e)
	}
	e.Lost = "an older version exists" // so that ReadFile accepts the older version
	if _, is, _ := e.ReadFile(r.Dir, line.Folder); is != index.FileEdited {
		return nil
	}
	return r.record(line, &e)
}
