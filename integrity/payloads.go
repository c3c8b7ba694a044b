package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// look returns the problem of a payload, nil if it has none. A log has a payload until it is sealed.
func (c *Context) look(sum blob.Sum) *problem {
	p := c.Payloads
	wrong, looked := p.looked[sum]
	if !looked {
		wrong = p.verify(sum, c.ReadData)
		p.note(sum, wrong)
	}
	if wrong == nil {
		return nil
	}
	if vfs.IsShortage(wrong) {
		p.short = wrong
	}
	logged, missing := c.logged(sum) != nil, errors.Is(wrong, fs.ErrNotExist)
	f := repairable(KindBlob, SeverityError, blob.Path(sum), wrong.Error())
	f.sum = sum
	switch {
	case missing && logged:
		return nil // the seal of the log makes the blob
	case missing:
		f.Kind, f.Detail = KindPayload, fmt.Sprintf("blob %s is missing", sum)
	}
	if logged {
		f.Severity = SeverityWarning
		f.Detail += "; a log contains it"
	}
	f.Repairable = logged || p.trashed(sum) != ""
	return &f
}

func (p *Payloads) note(sum blob.Sum, wrong error) {
	if p.referred == nil {
		p.referred, p.looked = map[blob.Sum]bool{}, map[blob.Sum]error{}
	}
	p.referred[sum], p.looked[sum] = true, wrong
}

// Verify reads an unreferenced blob and returns its problem. It returns nil for a blob that something refers to.
func (p *Payloads) Verify(sum blob.Sum) error {
	if p.referred[sum] {
		return nil
	}
	return p.Blobs.Verify(sum)
}

// verify looks at a blob. If something else is in the place of one of its folders, it does not exist.
func (p *Payloads) verify(sum blob.Sum, readData bool) (err error) {
	if readData {
		err = p.Blobs.Verify(sum)
	} else {
		_, err = p.Blobs.Stat(sum)
	}
	for folder := path.Dir(blob.Path(sum)); err != nil && folder != "."; folder = path.Dir(folder) {
		if info, lerr := p.Store.Lstat(folder); lerr == nil && !info.IsDir() {
			return fs.ErrNotExist
		}
	}
	return err
}

// logged returns a payload that a log has, nil if none does.
func (c *Context) logged(sum blob.Sum) []byte {
	payload, ok, err := c.Index.Payload(sum)
	if err != nil || !ok || blob.SumOf(payload) != sum {
		return nil
	}
	return payload
}

// trashed returns the path of a whole copy of a blob in the store's trash, "" if there is none.
func (p *Payloads) trashed(sum blob.Sum) string {
	for e, err := range p.Store.ReadDir(ctxfolder.Trash) {
		if err != nil {
			return ""
		}
		path := ctxfolder.Trash + "/" + e.Name() + "/" + sum.String() + blob.Suffix
		if e.IsDir() && p.Blobs.VerifyFile(path, sum) == nil {
			return path
		}
	}
	return ""
}

// recover restores a payload durably from a log or the trash, and returns the source; "" if there is no whole copy.
//
// Crash order: the old blob moves to the trash first. The new one is whole and durable before it takes the name, or
// comes whole from the trash by a rename.
func (c *Context) recover(sum blob.Sum) (from string, err error) {
	p := c.Payloads
	if p.Blobs.Verify(sum) == nil {
		p.note(sum, nil)
		return "another repair", nil
	}
	payload, trashed := c.logged(sum), ""
	if from = "the log"; payload == nil {
		if from, trashed = "the trash", p.trashed(sum); trashed == "" {
			return "", nil
		}
	}
	if err := p.SetAside(blob.Path(sum)); err != nil {
		return "", err
	}
	if payload != nil {
		_, _, err = p.Blobs.Put(payload)
	} else {
		err = p.Blobs.Adopt(trashed, sum)
	}
	if err == nil {
		p.note(sum, nil)
	}
	return from, err
}

// SetAside moves what a path of the store names to the store's trash.
func (p *Payloads) SetAside(path string) error {
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

// payloadsOf returns the problems of a message's payloads.
func (x *examination) payloadsOf(e *index.Entry, raw []byte) []problem {
	if blob.Count(raw) == 0 {
		return nil
	}
	env, err := message.Parse(raw)
	if err != nil {
		return nil // the damaged file is reported elsewhere
	}
	return x.references(env.Body, e.ID)
}

// prompts checks the payloads of the system prompts.
func (x *examination) prompts() error {
	return x.reportConfirmed(func() (problems []problem, err error) {
		for _, p := range x.metadata.Prompts() {
			problems = append(problems, x.references(p, uuid.Nil)...)
		}
		return problems, nil
	})
}

// references returns the problems of the payloads that stored refers to.
func (x *examination) references(stored []byte, id uuid.UUID) (problems []problem) {
	if len(stored) == 0 {
		return nil
	}
	refs, err := blob.Refs(stored)
	if err != nil {
		return nil // strings that only look like references are the framework's business
	}
	for _, ref := range refs {
		if ref.Problem != "" {
			continue
		}
		if p := x.look(ref.Sum); p != nil {
			p.ID, p.Detail = id, fmt.Sprintf("payload at %q: %s", ref.Path, p.Detail)
			problems = append(problems, *p)
		}
	}
	return problems
}
