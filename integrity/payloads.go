package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Payloads are a store's blobs, each of which is looked at once, however many contexts refer to it.
type Payloads struct {
	Store vfs.FS
	Blobs *blob.Store
	known map[blob.Sum]error
}

// look says what is wrong with a payload, nil for nothing.
func (p *Payloads) look(log *index.Log, sum blob.Sum, readData bool) (Kind, error) {
	why, known := p.known[sum]
	if !known {
		if p.known == nil {
			p.known = map[blob.Sum]error{}
		}
		if why = p.verify(sum, readData); why != nil && !p.folders(sum) {
			why = fs.ErrNotExist
		}
		p.known[sum] = why
	}
	switch {
	case why == nil:
		return "", nil
	case !errors.Is(why, fs.ErrNotExist):
		return KindBlob, why
	}
	if riding(log, sum) == nil {
		return KindPayload, fmt.Errorf("blob %s is missing", sum)
	}
	if log.PayloadSettled(sum) && log.ArchivedPayload(sum) == nil && p.verify(sum, false) != nil {
		return KindPayload, fmt.Errorf("blob %s is missing; a journal that will go has it", sum)
	}
	return "", nil // its blob is due when the journal is settled, or a pack has it
}

// Verify reads a blob that was not looked at yet, and says what is wrong with it.
func (p *Payloads) Verify(sum blob.Sum) error {
	if _, known := p.known[sum]; known {
		return nil
	}
	return p.Blobs.Verify(sum)
}

func (p *Payloads) verify(sum blob.Sum, readData bool) error {
	if readData {
		return p.Blobs.Verify(sum)
	}
	_, err := p.Blobs.Stat(sum)
	return err
}

// folders reports whether nothing else lies where the folders of a blob belong.
func (p *Payloads) folders(sum blob.Sum) bool {
	for folder := path.Dir(blob.Path(sum)); folder != "."; folder = path.Dir(folder) {
		if info, err := p.Store.Lstat(folder); err == nil && !info.IsDir() {
			return false
		}
	}
	return true
}

// riding returns a payload that a journal has, nil when none has it.
func riding(log *index.Log, sum blob.Sum) []byte {
	payload, err := log.Payload(sum, true)
	if err != nil || payload == nil || blob.SumOf(payload) != sum {
		return nil
	}
	return payload
}

// trashed returns where in the store's trash a blob lies, "" for nowhere.
func (p *Payloads) trashed(sum blob.Sum) string {
	for e, err := range p.Store.ReadDir(ctxfolder.Trash) {
		if err != nil {
			return ""
		}
		path := ctxfolder.Trash + "/" + e.Name() + "/" + sum.String() + blob.Suffix
		if info, err := p.Store.Lstat(path); e.IsDir() && err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// recoverable reports whether there is another copy of a payload.
func (p *Payloads) recoverable(log *index.Log, sum blob.Sum) bool {
	return riding(log, sum) != nil || p.trashed(sum) != ""
}

// recover puts a payload back from a journal or from trash, durably. It says where from; "" means that there was no copy
// that is whole.
//
// Crash order: what lies in the blob's place goes to trash first. The blob is whole and durable before it bears its name, or
// is renamed whole from trash.
func (p *Payloads) recover(log *index.Log, sum blob.Sum) (from string, err error) {
	delete(p.known, sum)
	if p.Blobs.Verify(sum) == nil {
		return "another repair", nil
	}
	payload := riding(log, sum)
	trashed := ""
	if payload == nil {
		if trashed = p.trashed(sum); trashed == "" {
			return "", nil
		}
	}
	if err := p.setAside(blob.Path(sum)); err != nil {
		return "", err
	}
	if payload != nil {
		_, _, err := p.Blobs.Put(payload)
		return "the journal", err
	}
	err = p.Blobs.Adopt(trashed, sum)
	if errors.Is(err, blob.ErrDamaged) {
		return "", nil
	}
	return "the trash", err
}

// setAside moves what lies at a path of the store to the store's trash.
func (p *Payloads) setAside(path string) error {
	info, err := p.Store.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: info.Name()}
	_, err = ctxfolder.IntoTrash(p.Store, item, func(folder string) error { return p.Store.Rename(path, folder+"/"+info.Name()) })
	return err
}
