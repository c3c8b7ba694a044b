package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
)

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
