package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// listing is the content of a folder, and which of its files belong to messages.
type listing struct {
	files []uuid.UUID // sorted
	taken []bool
	other []string // names that no message file has
	cased []string // names of message files in another case
}

// take notes that a file belongs to a message.
func (l *listing) take(file uuid.UUID) {
	if l == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(l.files, file, compareID); found {
		l.taken[i] = true
	}
}

func compareID(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// list reads the names in messages/ and its folders.
func (x *examination) list(ctx context.Context, folder string) error {
	l := &listing{}
	var below []string
	if info, err := x.Dir.FS.Lstat(folder); err == nil && !info.IsDir() {
		p := repairable(KindFolder, SeverityError, folder, "not a folder")
		p.found = folder
		return x.report(p)
	}
	for e, err := range x.Dir.FS.ReadDir(folder) {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			break // renamed meanwhile
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
		case respelled(e.Name()):
			l.cased = append(l.cased, e.Name())
		default:
			l.other = append(l.other, e.Name())
		}
	}
	slices.SortFunc(l.files, compareID)
	slices.Sort(l.cased)
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
// listed names may be newer than the journals that were read.
func (x *examination) leftovers(ctx context.Context) error {
	folders := slices.Sorted(maps.Keys(x.seen))
	var unexplained []string
	for _, folder := range folders {
		l := x.seen[folder]
		for _, name := range l.other {
			if err := x.other(folder, name); err != nil {
				return err
			}
		}
		for _, name := range l.cased {
			unexplained = append(unexplained, folder+"/"+name)
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

// abandoned is the age at which a temporary file has no owner any more.
const abandoned = time.Hour

// other checks a file whose name no message file has.
func (x *examination) other(folder, name string) error {
	path := folder + "/" + name
	if !strings.HasPrefix(name, ".") {
		return x.report(problem{Finding: Finding{Kind: KindStray, Severity: SeverityInfo, Path: path, Detail: "not a message file"}})
	}
	info, err := x.Dir.FS.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < abandoned || !info.Mode().IsRegular() {
		return nil
	}
	return x.report(repairable(KindTemporary, SeverityInfo, path, "temporary file of an interrupted writer"))
}

// leftover classifies a file that belongs to no message. It returns nil if the file belongs to one after all.
func (x *examination) leftover(found string) (*problem, error) {
	p := &problem{found: found, Finding: Finding{Path: found}}
	raw, err := readFound(x.Dir, p.found)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // moved meanwhile
	}
	if err != nil {
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, err.Error()
		return p, nil
	}
	env, err := message.Parse(raw)
	if err != nil {
		newer := errors.Is(err, message.ErrVersion)
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, "it has the name of a message file, but "+describe(raw, err)
		p.Repairable = !newer
		return p, nil
	}
	p.ID, p.line = env.ID, env.Line
	line, e, err := x.ownerOf(&env)
	if err != nil {
		return nil, err
	}
	if e == nil && branch.IsPurged(x.metadata, env.Line) {
		return nil, nil // an interrupted purge left it, and the next one removes it
	}
	if e == nil {
		p.Kind, p.Severity, p.Detail = KindForeign, SeverityWarning, "a valid message that was never committed here"
		return p, nil
	}
	p.entry = *e
	if x.Dir.MessagePath(line.Folder, e.FileID()) == p.found {
		return nil, nil // committed meanwhile, or its folder is being renamed
	}
	own := pathOf(line.Folder, e.FileID())
	if x.same(p.found, own) {
		return nil, nil // the file system treats both names as one
	}
	_, is, why := x.Log.ReadFile(line.ID, e, line.Folder)
	whole := int64(len(raw)) == e.Size && message.Sum(raw) == e.Sum
	switch {
	case errors.Is(why, index.ErrTaken):
		p.Kind, p.Severity, p.Repairable, p.Detail = KindDuplicate, SeverityWarning, true, "a message with its id was stored again: "+own
	case is == index.FileMissing || is == index.FileDamaged:
		if e.Lost == index.Erased {
			p.Kind, p.Severity, p.Repairable, p.Detail = KindErased, SeverityError, true, "the message was erased, but a copy remains"
			break
		}
		p.Kind, p.Severity, p.Repairable, p.Detail = KindMisplaced, SeverityError, true, "it belongs at "+own
		if !whole {
			p.Detail += ", and was changed"
		}
	case whole:
		p.Kind, p.Severity, p.Repairable, p.Detail = KindDuplicate, SeverityWarning, true, "the same message is at "+own
	default:
		p.Kind, p.Severity, p.Detail = KindForeign, SeverityWarning, fmt.Sprintf("another version of message %s, which is at %s", env.ID, own)
	}
	return p, nil
}

// shortName matches a message file's name as file systems with 8.3 names store it.
var shortName = regexp.MustCompile(`^[0-9a-f]{1,6}~[0-9]{1,6}\.json?$`)

// respelled reports whether a name may be that of a message file in another case, or cut short. The content decides.
func respelled(name string) bool {
	name = strings.ToLower(name)
	_, ok := ctxfolder.ParseMessageFile(name)
	return ok || shortName.MatchString(name)
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

// ownerOf returns the committed message that an envelope claims to be, nil if there is none.
func (x *examination) ownerOf(env *message.Envelope) (ctxfolder.Line, *index.Entry, error) {
	line, ok := x.metadata.Line(env.Line)
	if !ok {
		return ctxfolder.Line{}, nil, nil
	}
	now, e, err := x.now(*line, env.Position)
	if err != nil || e == nil || e.ID != env.ID {
		return now, nil, err
	}
	return now, e, nil
}

// maxFound is the largest size read of a file that may be a message, in bytes.
const maxFound = 512 << 20

// readFound returns the content of a file that may be a message's.
func readFound(dir *ctxfolder.Dir, path string) ([]byte, error) {
	b, err := vfs.ReadFile(dir.FS, path, maxFound)
	return message.Text(b), err
}
