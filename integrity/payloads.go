package integrity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Payloads are a store's blobs. Each is checked once, no matter how many contexts refer to it.
type Payloads struct {
	Store vfs.FS
	Blobs *blob.Store
	// Alone runs f while nobody stores a blob, or refers to an existing one.
	Alone func(ctx context.Context, f func() error) error

	known map[blob.Sum]blobState // blobs that something refers to
	short error                  // the shortage that prevented a look: see problem
	round int
}

// blobState is the result of a look at a blob.
type blobState struct {
	wrong error
	round int
}

// again makes the next look at each bad blob a fresh one.
func (p *Payloads) again() { p.round++ }

// look returns the problem of a payload, nil if it has none.
func (c *Context) look(sum blob.Sum) *Finding {
	p, log, readData := c.Payloads, c.Log, c.ReadData
	now, known := p.known[sum]
	if !known || now.wrong != nil && now.round != p.round {
		now = blobState{p.verify(sum, readData), p.round}
		if now.wrong != nil && !p.folders(sum) {
			now.wrong = fs.ErrNotExist
		}
		p.note(sum, now)
	}
	if now.wrong == nil {
		return nil
	}
	if vfs.IsShortage(now.wrong) {
		p.short = now.wrong
	}
	f := &Finding{Kind: KindBlob, Severity: SeverityError, Path: blob.Path(sum), Detail: now.wrong.Error()}
	logged, missing := loggedPayload(log, sum) != nil, errors.Is(now.wrong, fs.ErrNotExist)
	switch {
	case missing && logged && (!log.PayloadSettled(sum) || log.ArchivedPayload(sum) != nil):
		return nil // the settle of the journal writes its blob, or a pack has it
	case missing:
		f.Kind, f.Detail = KindPayload, fmt.Sprintf("blob %s is missing", sum)
	}
	if logged {
		f.Severity = SeverityWarning
		f.Detail += "; a journal or pack has it"
	}
	f.Repairable = logged || p.trashed(sum) != "" || c.salvage(sum) != nil
	return f
}

func (p *Payloads) note(sum blob.Sum, l blobState) {
	if p.known == nil {
		p.known = map[blob.Sum]blobState{}
	}
	p.known[sum] = l
}

// Verify reads an unreferenced blob and returns its problem. It returns nil for a blob that something refers to.
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

// folders reports whether nothing else is in the place of a blob's folders.
func (p *Payloads) folders(sum blob.Sum) bool {
	for folder := path.Dir(blob.Path(sum)); folder != "."; folder = path.Dir(folder) {
		if info, err := p.Store.Lstat(folder); err == nil && !info.IsDir() {
			return false
		}
	}
	return true
}

// loggedPayload returns a payload from a journal or a pack, nil if neither has it.
func loggedPayload(log *index.Log, sum blob.Sum) []byte {
	payload, err := log.Payload(sum, true)
	if err != nil || payload == nil || blob.SumOf(payload) != sum {
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

// salvage returns a payload from a journal in the context's trash, nil if none has it. It reads those journals once.
func (c *Context) salvage(sum blob.Sum) []byte {
	if c.salvaged == nil {
		c.salvaged = map[blob.Sum]string{}
		for t, err := range ctxfolder.EachTrash(c.Dir.FS, func(_ uuid.UUID, folder bool) bool { return folder }) {
			if err != nil {
				break // a trash that cannot be listed has no copy
			}
			if _, ok := ctxfolder.ParseJournalFile(t.Item.Name); ok && t.Problem == nil {
				name := t.Path + "/" + t.Item.Name
				c.eachPayload(name, func(sum blob.Sum, _ func() []byte) bool {
					c.salvaged[sum] = name
					return true
				})
			}
		}
	}
	var found []byte
	if name := c.salvaged[sum]; name != "" {
		c.eachPayload(name, func(of blob.Sum, read func() []byte) bool {
			if of != sum {
				return true
			}
			if found = read(); blob.SumOf(found) != sum {
				found = nil
			}
			return found == nil
		})
	}
	return found
}

// eachPayload yields the payloads in a journal. After a read error, the payloads before it still count.
func (c *Context) eachPayload(name string, yield func(sum blob.Sum, read func() []byte) bool) {
	if info, err := c.Dir.FS.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := c.Dir.FS.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	_ = index.EachPayload(f, func(sum index.Sum, read func() []byte) bool { return yield(sum, read) })
}

// recover restores a payload durably from a journal, a pack or the trash, and returns the source; "" if there is no
// whole copy.
//
// Crash order: the old blob moves to the trash first. The new one is whole and durable before it takes the name, or
// comes whole from the trash by a rename.
func (c *Context) recover(sum blob.Sum) (from string, err error) {
	p := c.Payloads
	if p.Blobs.Verify(sum) == nil {
		p.note(sum, blobState{})
		return "another repair", nil
	}
	from = "the journal"
	payload, trashed := loggedPayload(c.Log, sum), ""
	if payload == nil {
		from = "the trash"
		if trashed = p.trashed(sum); trashed == "" {
			payload = c.salvage(sum)
		}
		if trashed == "" && payload == nil {
			return "", nil
		}
	}
	if err := p.setAside(blob.Path(sum)); err != nil {
		return "", err
	}
	if payload != nil {
		_, _, err = p.Blobs.Put(payload)
	} else {
		err = p.Blobs.Adopt(trashed, sum)
	}
	if err == nil {
		p.note(sum, blobState{})
	}
	return from, err
}

// setAside moves what a path of the store names to the store's trash.
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
		for _, b := range x.metadata.Branches {
			problems = append(problems, x.references(b.SystemPrompt, uuid.Nil)...)
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
		if f := x.look(ref.Sum); f != nil {
			f.ID, f.Detail = id, fmt.Sprintf("payload at %q: %s", ref.Path, f.Detail)
			problems = append(problems, problem{sum: ref.Sum, Finding: *f})
		}
	}
	return problems
}
