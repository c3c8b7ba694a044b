package integrity

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// take notes that a file belongs to a message.
func (l *listing) take(file uuid.UUID) {
	if l == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(l.files, file, compareID); found {
		l.taken[i] = true
	}
}

// folder reports anything else in the place of a folder. usable is false then.
func (x *examination) folder(path string, severity Severity) (usable bool, err error) {
	info, err := x.Dir.FS.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	x.blocked[path] = true
	p := repairable(KindFolder, severity, path, "a folder was expected, but this is "+vfs.TypeName(info.Mode().Type()))
	p.found = path
	return false, x.report(p)
}

// list reads the names in messages/ and its folders.
func (x *examination) list(ctx context.Context, folder string) error {
	if usable, err := x.folder(folder, SeverityWarning); err != nil || !usable {
		return err
	}
	l := &listing{}
	var below []string
	for e, err := range x.Dir.FS.ReadDir(folder) {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			break // removed meanwhile
		}
		if err != nil {
			return err
		}
		id, ok := ctxfolder.ParseMessageFile(e.Name())
		switch {
		case ok:
			l.files = append(l.files, id)
		case folder == ctxfolder.Messages && (e.IsDir() || ctxfolder.ValidFolder(e.Name())):
			below = append(below, folder+"/"+e.Name())
		default:
			l.other = append(l.other, e.Name())
		}
	}
	slices.SortFunc(l.files, compareID)
	slices.Sort(l.other)
	slices.Sort(below)
	l.taken = make([]bool, len(l.files))
	x.seen[folder] = l
	for _, folder := range below {
		if err := x.list(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// leftovers checks the files that belong to no message. It looks again at those without an explanation, since the
// listed names may be newer than the logs that were read.
func (x *examination) leftovers(ctx context.Context) error {
	var unexplained []string
	for _, folder := range slices.Sorted(maps.Keys(x.seen)) {
		l := x.seen[folder]
		for _, name := range l.other {
			if err := x.other(folder, name); err != nil {
				return err
			}
		}
		for i, file := range l.files {
			if !l.taken[i] {
				unexplained = append(unexplained, folder+"/"+ctxfolder.MessageFile(file))
			}
		}
	}
	if len(unexplained) == 0 {
		return nil
	}
	if err := x.refresh(); err != nil {
		return err
	}
	return x.reportConfirmed(func() (problems []problem, err error) {
		var left []string
		for _, path := range unexplained {
			p, err := x.leftover(path)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			if p != nil {
				problems, left = append(problems, *p), append(left, path)
			}
		}
		unexplained = left
		return problems, nil
	})
}

// other checks a file whose name no message file has.
func (x *examination) other(folder, name string) error {
	path := folder + "/" + name
	if !strings.HasPrefix(name, ".") {
		return x.report(problem{Finding: Finding{Kind: KindUnknown, Severity: SeverityInfo, Path: path, Detail: "not a message file"}})
	}
	info, err := x.Dir.FS.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < abandoned || !info.Mode().IsRegular() {
		return nil
	}
	return x.report(repairable(KindTemporary, SeverityInfo, path, "temporary file of an interrupted writer"))
}

// leftover classifies a file that belongs to no message. It returns nil if the file belongs to one after all.
func (x *examination) leftover(found string) (*problem, error) {
	p := &problem{found: found, Finding: Finding{Path: found, Severity: SeverityWarning}}
	env, raw, err := x.envelope(found)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // removed meanwhile
	case vfs.IsShortage(err):
		return nil, err
	case err != nil:
		p.Kind, p.Detail = KindUnknown, err.Error()
		if errors.Is(err, message.ErrMalformed) {
			p.Detail = "it has the name of a message file, but " + describeFile(raw, err)
		}
		p.Repairable = !vfs.IsFault(err) && !errors.Is(err, message.ErrVersion)
		return p, nil
	}
	p.ID, p.place, p.storedAt = env.ID, place{env.Line, env.Position}, env.StoredAt
	line, e, err := x.now(p.place)
	switch {
	case err != nil:
		return nil, err
	case e != nil && e.IsLost() && e.ID == uuid.Nil:
		p.Kind, p.Repairable, p.Detail = KindFound, true, fmt.Sprintf("position %d of line %s was lost, but has a file", e.Position, e.Line)
		x.found[p.place] = true
	case e != nil && e.ID == env.ID:
		return x.misplaced(p, line, e, raw)
	case x.isPurged(p.place):
		return nil, nil // an interrupted purge left it, and the next one removes it
	default:
		p.Kind, p.Detail = KindForeign, "a valid message that was never committed here"
	}
	return p, nil
}

// misplaced is leftover for the file of a message.
func (x *examination) misplaced(p *problem, line *ctxfolder.Line, e *index.Entry, raw []byte) (*problem, error) {
	own := x.Dir.MessagePath(line.Folder, e.ID)
	if own == p.found || x.same(own, p.found) {
		return nil, nil // committed meanwhile, or the file system treats both names as one
	}
	_, is, why := views.Read(x.Dir, line.Folder, e)
	if vfs.IsShortage(why) {
		return nil, why
	}
	p.Repairable = true
	switch {
	case e.IsErased():
		x.erased(p)
	case is == views.Missing && (e.IsLost() || e.Position >= line.Archived):
		if p.Kind, p.Detail = KindMisplaced, "it belongs at "+own; int64(len(raw)) != e.Size || message.Sum(raw) != e.Sum {
			p.Detail += ", and was changed"
		}
		x.found[p.place] = e.IsLost()
	default:
		p.Kind, p.Detail = KindDuplicate, "the message is at "+own
		if is == views.Missing {
			p.Detail = "the message is archived"
		}
	}
	return p, nil
}

// same reports whether two paths lead to one file.
func (x *examination) same(a, b string) bool {
	one, err := x.Dir.FS.Lstat(a)
	if err != nil {
		return false
	}
	other, err := x.Dir.FS.Lstat(b)
	return err == nil && vfs.SameFile(one, other)
}

// envelope reads a file that may be a message's.
func (c *Context) envelope(path string) (env message.Envelope, raw []byte, err error) {
	const most = 512 << 20
	raw, err = vfs.ReadRegular(c.Dir.FS, path, most)
	if err == nil {
		raw = message.Text(raw)
		env, err = message.Parse(raw)
	}
	return env, raw, err
}

// describeFile describes a damaged file in a few words.
func describeFile(raw []byte, why error) string {
	switch {
	case why == nil || len(raw) == 0 && errors.Is(why, index.ErrDamaged):
		return "the file is empty"
	case len(raw) > 0 && len(bytes.Trim(raw, "\x00")) == 0:
		return fmt.Sprintf("the file consists of %d zero bytes", len(raw))
	}
	_, text, _ := strings.Cut(why.Error(), ctxfolder.MessageEnd+" ")
	return strings.ReplaceAll(cmp.Or(text, why.Error()), "jsontext: ", "")
}
