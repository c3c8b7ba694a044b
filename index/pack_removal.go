package index

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// DropPack moves a pack that no line is read from to the trash. Its payloads become blobs first: items in the trash may
// refer to them. It is for use in [Log.Exclusively].
func (l *Log) DropPack(id uuid.UUID) error {
	err := l.discardPack(id, l.dir.SetAside)
	if errors.Is(err, ErrBusy) {
		return nil // it is in use again
	}
	return err
}

// RemovePack is DropPack for a pack that must not be kept.
func (l *Log) RemovePack(id uuid.UUID) error {
	if err := l.discardPack(id, l.remove); err != nil {
		return err
	}
	return l.dir.FS.SyncDir(ctxfolder.Archive)
}

func (l *Log) discardPack(id uuid.UUID, remove func(path string) error) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	if slices.Contains(l.state.packsInOrder(), id) {
		return fmt.Errorf("%w: pack %s is in use", ErrBusy, id)
	}
	if err := l.syncIndex(); err != nil {
		return err
	}
	if err := l.storePackPayloads(id, nil); err != nil {
		return err
	}
	return remove(ctxfolder.Archive + "/" + archive.FileName(id))
}

// RemoveFromPack removes an unused pack with messages that must not be kept. It is for use in [Log.Exclusively].
func (l *Log) RemoveFromPack(id uuid.UUID, messages map[uuid.UUID]bool) error {
	if err := l.copyHidden(id, messages); err != nil {
		return err
	}
	return l.RemovePack(id)
}

// copyHidden writes a new pack with the messages of another history in a pack about to go, except those in but.
//
// Crash order: the new pack is durable before the old one goes.
func (l *Log) copyHidden(id uuid.UUID, but map[uuid.UUID]bool) error {
	folder, err := l.dir.FS.Sub(ctxfolder.Archive)
	if err != nil {
		return err
	}
	defer folder.Close()
	var w *archive.Writer
	has := &inventory{log: l}
	err = has.eachArchived(id, func(p *openPack, e *Entry) error {
		raw, _ := p.get().ReadMessage(e.row())
		if raw == nil || but[e.ID] {
			return nil
		}
		if w == nil {
			if w, err = archive.Create(folder); err != nil {
				return err
			}
		}
		err := w.Add(raw)
		if errors.Is(err, archive.ErrOrder) {
			err = nil // a damaged pack may yield a message twice
		}
		return err
	})
	if w == nil {
		return err
	}
	if err == nil {
		_, err = w.Commit()
	}
	w.Abort() // does nothing after Commit
	return err
}
