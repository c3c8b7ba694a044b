package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// listing is what a branch folder held, and which of it messages account for.
type listing struct {
	files []uuid.UUID // sorted
	taken []bool
	other []string // names that are of no message
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

// list reads the names in all branch folders.
func (x *examination) list(ctx context.Context) error {
	for e, err := range x.Dir.FS.ReadDir(ctxfolder.Messages) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.IsDir() && ctxfolder.ValidFolder(e.Name()) {
			if x.seen[e.Name()], err = listFolder(ctx, x.Dir, e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

func listFolder(ctx context.Context, dir *ctxfolder.Dir, folder string) (*listing, error) {
	l := &listing{}
	for e, err := range dir.FS.ReadDir(ctxfolder.Messages + "/" + folder) {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			break // it was renamed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if id, ok := ctxfolder.ParseMessageFile(e.Name()); ok {
			l.files = append(l.files, id)
		} else {
			l.other = append(l.other, e.Name())
		}
	}
	slices.SortFunc(l.files, compareID)
	l.taken = make([]bool, len(l.files))
	return l, nil
}

// leftovers looks at the files that no message accounts for.
func (x *examination) leftovers(ctx context.Context) error {
	folders := make([]string, 0, len(x.seen))
	for folder := range x.seen {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	for _, folder := range folders {
		l := x.seen[folder]
		for _, name := range l.other {
			if err := x.other(folder, name); err != nil {
				return err
			}
		}
		for i, file := range l.files {
			if l.taken[i] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			p, err := x.leftover(folder, file)
			if err == nil && p != nil {
				err = x.tell(*p)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// abandoned is how old a temporary file must be to be nobody's.
const abandoned = time.Hour

// other looks at a file whose name is no message's.
func (x *examination) other(folder, name string) error {
	path := ctxfolder.Messages + "/" + folder + "/" + name
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
func (x *examination) leftover(folder string, file uuid.UUID) (*problem, error) {
	p := &problem{folder: folder, file: file}
	p.Path = pathOf(folder, file)
	raw, _, err := x.Dir.ReadMessage(folder, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was moved meanwhile
	}
	if err != nil {
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, err.Error()
		return p, nil
	}
	env, err := parse(raw)
	if err != nil {
		p.Kind, p.Severity, p.Detail = KindStray, SeverityWarning, "it bears a message's name, and "+describe(raw, err)
		return p, nil
	}
	p.ID, p.line = env.ID, env.Line
	line, e, err := x.ownerOf(&env)
	if err != nil {
		return nil, err
	}
	if e == nil {
		p.Kind, p.Severity, p.Detail = KindForeign, SeverityWarning, "a valid message that was never committed here"
		return p, nil
	}
	p.entry = *e
	if line.Folder == folder && e.FileID() == file {
		return nil, nil // it was committed meanwhile
	}
	_, is, _ := e.ReadFile(x.Dir, line.Folder)
	whole := int64(len(raw)) == e.Size && message.Sum(raw) == e.Sum
	switch own := pathOf(line.Folder, e.FileID()); {
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

// ownerOf returns the committed message that an envelope claims to be, nil when there is none.
func (x *examination) ownerOf(env *message.Envelope) (ctxfolder.Line, *index.Entry, error) {
	for try := range tries - 2 { // a reader of names may be ahead of one of the journal
		wait(try)
		line, ok := x.metadata.Line(env.Line)
		if !ok {
			if m, _, err := x.Dir.ReadMetadata(); err == nil {
				line, ok = m.Line(env.Line)
			}
		}
		if !ok {
			continue
		}
		now, e, err := x.again(*line, env.Position)
		if err != nil {
			return now, nil, err
		}
		if e != nil && e.ID == env.ID {
			return now, e, nil
		}
	}
	return ctxfolder.Line{}, nil, nil
}

func parse(raw []byte) (message.Envelope, error) { return message.Parse(raw) }
