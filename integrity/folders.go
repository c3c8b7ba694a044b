package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// listing is what a folder held, and which of it messages account for.
type listing struct {
	files []uuid.UUID // sorted
	taken []bool
	other []string // names that are of no message
	cased []string // names of message files in another case
}

// take notes that a file is a message's.
func (l *listing) take(file uuid.UUID) {
	if l == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(l.files, file, compareID); found {
		l.taken[i] = true
	}
}

func compareID(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// list reads the names in messages/ and in the folders there.
func (x *examination) list(ctx context.Context, folder string) error {
	l := &listing{}
	var below []string
	if info, err := x.Dir.FS.Lstat(folder); err == nil && !info.IsDir() {
		return x.tell(problem{found: folder, Finding: Finding{
			Kind: KindFolder, Severity: SeverityError, Path: folder, Repairable: true, Detail: "it is no folder",
		}})
	}
	for e, err := range x.Dir.FS.ReadDir(folder) {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			break // it was renamed meanwhile
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
	l.taken = make([]bool, len(l.files))
	x.seen[folder] = l
	for _, folder := range below {
		if err := x.list(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// leftovers looks at the files that no message accounts for, and again after a while at those that are not explained: a
// reader of names may be ahead of one of journals.
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
	return x.patiently(func() (problems []problem, err error) {
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

// abandoned is how old a temporary file must be to be nobody's.
const abandoned = time.Hour

// other looks at a file whose name is no message's.
func (x *examination) other(folder, name string) error {
	path := folder + "/" + name
	p := problem{Finding: Finding{Kind: KindStray, Severity: SeverityInfo, Path: path, Detail: "no message of ours"}}
	if strings.HasPrefix(name, ".") {
		info, err := x.Dir.FS.Lstat(path)
		if err != nil || time.Since(info.ModTime()) < abandoned || !info.Mode().IsRegular() {
			return nil
		}
		p.Kind, p.Severity, p.Detail, p.Repairable = KindTemporary, SeverityInfo, "left by a writer that was stopped", true
	}
	return x.tell(p)
}

// leftover says what a file is that no message accounts for; nil when one does after all.
func (x *examination) leftover(found string) (*problem, error) {
	p := &problem{found: found, Finding: Finding{Path: found}}
	raw, err := readFound(x.Dir, p.found)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was moved meanwhile
	}
	if err != nil {
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, err.Error()
		return p, nil
	}
	env, err := message.Parse(raw)
	if err != nil {
		newer := errors.Is(err, message.ErrVersion)
		if name, ok := ctxfolder.ParseMessageFile(strings.ToLower(path.Base(found))); ok && !newer {
			if item, cleared := x.collected(name, nil); item != "" {
				return p.ofTrash(item, cleared, "a damaged copy of a message that is in "), nil
			}
		}
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, "it bears a message's name, and "+describe(raw, err)
		p.Repairable = !newer
		return p, nil
	}
	p.ID, p.line = env.ID, env.Line
	line, e, err := x.ownerOf(&env)
	if err != nil {
		return nil, err
	}
	if e == nil {
		if item, cleared := x.collected(env.FileID(), &env); item != "" {
			return p.ofTrash(item, cleared, "the same message is in "), nil
		}
		p.Kind, p.Severity, p.Detail = KindForeign, SeverityWarning, "a valid message that was never committed here"
		return p, nil
	}
	p.entry = *e
	if x.Dir.MessagePath(line.Folder, e.FileID()) == p.found {
		return nil, nil // it was committed meanwhile, or its folder is being renamed
	}
	own := pathOf(line.Folder, e.FileID())
	if x.same(p.found, own) {
		return nil, nil // the file system takes both names for one
	}
	_, is, why := x.Log.ReadFile(line.ID, e, line.Folder)
	whole := int64(len(raw)) == e.Size && message.Sum(raw) == e.Sum
	switch {
	case errors.Is(why, index.ErrTaken):
		p.Kind, p.Severity, p.Repairable, p.Detail = KindDuplicate, SeverityWarning, true, "a message of its id was stored again: "+own
	case is == index.FileMissing || is == index.FileDamaged:
		if e.Lost == index.Erased {
			p.Kind, p.Severity, p.Repairable, p.Detail = KindErased, SeverityError, true, "the message was erased, a copy of it is there"
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

// shortName is what file systems make of a message file's name that know only names of eight characters and three.
var shortName = regexp.MustCompile(`^[0-9a-f]{1,6}~[0-9]{1,6}\.json?$`)

// respelled reports whether a name can be that of a message file in another case, or cut short: what is in the file tells.
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

// ownerOf returns the committed message that an envelope claims to be, nil when there is none.
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

// maxFound bounds what is read of a file that may be a message, in bytes.
const maxFound = 512 << 20

// readFound returns what a file holds that may be a message's.
func readFound(dir *ctxfolder.Dir, path string) ([]byte, error) {
	b, err := vfs.ReadFile(dir.FS, path, maxFound)
	return message.Text(b), err
}
