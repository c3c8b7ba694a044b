package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// unfinished returns what the note names: nothing, if there is none or it is unusable. It reads the note once for each look.
func (x *examination) unfinished() *unfinished {
	if x.note == nil {
		x.note = &unfinished{messages: map[uuid.UUID]bool{}}
		if n, err := ctxfolder.ReadErasing(x.Dir.FS); err == nil {
			x.note.cut = n.Cut
			for _, id := range n.Messages {
				x.note.messages[id] = true
			}
		}
	}
	return x.note
}

// isPurged reports whether a purge has to remove the files of messages at a place.
func (x *examination) isPurged(at place) bool {
	return slices.ContainsFunc(x.unfinished().cut, func(l ctxfolder.CutLine) bool { return l.Line == at.line && at.position >= l.From })
}

// erased makes p the problem of a file that holds an erased message.
func (x *examination) erased(p *problem) {
	p.Kind, p.Severity, p.Repairable, p.Detail = KindErased, SeverityError, true, "the message was erased, but this file contains it"
	if x.unfinished().messages[p.ID] {
		p.Severity, p.Detail = SeverityInfo, "an interrupted erase left it: the next erase in the context, or a repair, removes it"
	}
}

// erasing checks the note of an unfinished erase or purge.
func (x *examination) erasing() error {
	n, err := ctxfolder.ReadErasing(x.Dir.FS)
	for i := 0; err == nil && i < len(n.Blobs); i++ {
		_, err = blob.ParseSum(n.Blobs[i])
	}
	info, serr := x.Dir.FS.Lstat(ctxfolder.ErasingFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(serr, fs.ErrNotExist) {
		return nil
	}
	p := problem{Finding: Finding{Kind: KindErasing, Severity: SeverityWarning, Path: ctxfolder.ErasingFile}}
	switch {
	case errors.Is(err, ctxfolder.ErrVersion):
		p.Detail = err.Error()
	case err != nil:
		p.Detail, p.Repairable = fmt.Sprintf("the note of an interrupted erase or purge is unusable: %v", err), true
	case len(n.Messages) == 0:
		p.Severity, p.Detail = SeverityInfo, "a purge is running, or was interrupted: the next collection completes it"
	case serr == nil && time.Since(info.ModTime()) < abandoned:
		p.Severity, p.Detail = SeverityInfo, "an erase is running, or was just interrupted: repeat it to complete it"
	default:
		p.Detail = "an erase was interrupted, or could not examine every message: repeat it to complete it"
	}
	return x.report(p)
}
