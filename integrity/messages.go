package integrity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// messages looks at the messages of a line. What looks wrong becomes a suspect.
func (x *examination) messages(ctx context.Context, id uuid.UUID) error {
	counts, ok, err := x.Index.Counts(id)
	line, known := x.metadata.Line(id)
	if err != nil || !ok || !known {
		return err
	}
	x.done.Messages, x.done.Of = 0, counts.Count
	for entries, err := range x.Index.Pages(ctx, id, 0, math.MaxInt64) {
		if err != nil {
			return err
		}
		x.done.Messages += int64(len(entries))
		x.done.Total += int64(len(entries))
		for len(entries) > 0 {
			n := together(entries)
			x.glance(line, entries[:n])
			entries = entries[n:]
		}
		if x.Progress != nil {
			x.Progress(x.done)
		}
	}
	return nil
}

// together returns how many messages to read at once.
func together(entries []index.Entry) (n int) {
	const most = 8 << 20
	for size := int64(0); n < len(entries) && (n == 0 || size+entries[n].Size <= most); n++ {
		size += entries[n].Size
	}
	return n
}

// glance compares messages with their files: by size and time, or by their bytes if ReadData is set.
func (x *examination) glance(line *ctxfolder.Line, entries []index.Entry) {
	files := x.Dir.Files(line.Folder)
	defer files.Release()
	listed := x.seen[ctxfolder.Messages+"/"+line.Folder]
	ids := make([]uuid.UUID, len(entries))
	var read []int // the content of which is needed
	for i := range entries {
		ids[i] = entries[i].ID
		listed.take(ids[i])
		if x.ReadData || entries[i].Payloads > 0 {
			read = append(read, i)
		}
	}
	infos, err := files.Stat(ids)
	if err != nil {
		infos = make([]fs.FileInfo, len(entries)) // a closer look says why
	}
	committed, viewed := make([][]byte, len(entries)), make([][]byte, len(entries))
	for i, b := range x.read(entries, read) {
		committed[read[i]] = b
	}
	if x.ReadData {
		views.ReadAll(files, entries, viewed)
	}
	for i := range entries {
		e, fine := &entries[i], false
		switch {
		case e.IsErased():
			fine = infos[i] == nil
		case e.IsLost(), x.ReadData && committed[i] == nil:
		case infos[i] == nil:
			fine = !x.hasFile(line, e)
		case x.ReadData:
			fine = viewed[i] != nil
		default:
			fine = ctxfolder.Untouched(infos[i], e.Size, e.StoredAt())
		}
		if !fine || e.Payloads > 0 && (committed[i] == nil || len(x.payloadsOf(e, committed[i])) > 0) {
			x.suspects = append(x.suspects, place{line.ID, e.Position})
		}
	}
}

// read returns what was committed of some of the entries.
func (x *examination) read(entries []index.Entry, which []int) [][]byte {
	wanted, out := make([]index.Entry, len(which)), make([][]byte, len(which))
	for i, n := range which {
		wanted[i] = entries[n]
	}
	x.Index.Read(wanted, out)
	return out
}

// hasFile reports whether a message should have a file.
func (x *examination) hasFile(line *ctxfolder.Line, e *index.Entry) bool {
	return e.Position >= line.Archived && vfs.HasViews(x.Dir.FS)
}

// checkSuspects examines the suspects, and again after a pause those that it cannot clear: a writer may be at work. A file
// that is due is missing if no process is about to make it: the wait is for those of the commits that were there before.
func (x *examination) checkSuspects(ctx context.Context) error {
	look := func() ([]problem, error) { return x.recheck(ctx) }
	problems, err := look()
	awaited, made := commitsDue(problems), x.alone
	if err == nil && !x.alone && len(awaited) > 0 {
		made = x.awaitFiles(ctx)
		if err = x.refresh(); err == nil {
			problems, err = look()
		}
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(problems, func(p problem) bool { return !p.due }) { // a file that did not come needs no pause
		due := map[place]bool{}
		for _, p := range problems {
			due[p.place] = p.due
		}
		problems = slices.DeleteFunc(problems, func(p problem) bool { return !due[p.place] })
		x.suspects = slices.DeleteFunc(x.suspects, func(at place) bool { return due[at] })
		others, err := x.confirm(look)
		if err != nil {
			return err
		}
		problems = append(problems, others...)
	}
	problems = slices.DeleteFunc(problems, func(p problem) bool { return p.due && (!made || p.seq != awaited[p.place]) })
	problems = slices.DeleteFunc(problems, func(p problem) bool {
		if p.Kind == KindLost {
			x.lost = append(x.lost, p)
		}
		return p.Kind == KindLost
	})
	return x.reportAll(problems)
}

// commitsDue returns the number of the commit of each message whose file is due.
func commitsDue(problems []problem) map[place]uint64 {
	due := map[place]uint64{}
	for _, p := range problems {
		if p.due {
			due[p.place] = p.seq
		}
	}
	return due
}

// awaitFiles waits until no process is about to make files of the commits so far, and reports whether that is so: an append
// makes its files when its record is durable. If one still holds the lock after a while, usually five seconds, they may yet
// come.
func (x *examination) awaitFiles(ctx context.Context) (made bool) {
	const pauses = 1000
	patience, end := context.WithTimeout(ctx, pauses*x.Pause)
	defer end()
	return !errors.Is(x.Dir.AwaitFiles(patience), context.DeadlineExceeded) // another error: the file is missing all the same
}

// recheck examines the suspects once and keeps those that it cannot clear.
func (x *examination) recheck(ctx context.Context) (problems []problem, err error) {
	var left []place
	for _, at := range x.suspects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, e, err := x.now(at)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		raw, p, err := x.judge(line, e)
		if err != nil {
			return nil, err
		}
		var wrong []problem
		if p != nil {
			wrong = append(wrong, *p)
		}
		wrong = append(wrong, x.payloadsOf(e, raw)...)
		for i := range wrong {
			wrong[i].place = at
		}
		if len(wrong) > 0 {
			problems, left = append(problems, wrong...), append(left, at)
		}
	}
	x.suspects = left
	return problems, nil
}

// judge returns the problem of a message, nil if it has none, and the message.
func (x *examination) judge(line *ctxfolder.Line, e *index.Entry) (raw []byte, p *problem, err error) {
	p = &problem{place: place{line.ID, e.Position}, seq: e.Seq}
	set := func(kind Kind, severity Severity, mends bool, detail string) {
		p.Kind, p.Severity, p.Repairable, p.Detail = kind, severity, mends, detail
	}
	if e.ID == uuid.Nil {
		set(KindLost, SeverityWarning, false, fmt.Sprintf("position %d of line %s is lost", e.Position, line.ID))
		return nil, p, nil
	}
	p.Path, p.ID = x.Dir.MessagePath(line.Folder, e.ID), e.ID
	if e.IsErased() {
		p, err = x.judgeErased(p)
		return nil, p, err
	}
	raw, is, why := views.Read(x.Dir, line.Folder, e)
	blocked := x.blocked[ctxfolder.Messages] || x.blocked[ctxfolder.Messages+"/"+line.Folder]
	if blocked {
		raw, is, why = nil, views.Missing, nil
	}
	if vfs.IsShortage(why) {
		return nil, nil, why
	}
	var committed []byte
	var unread error
	if is != views.Exact || x.ReadData {
		if committed, unread = x.Index.ReadOne(e); unread != nil && !errors.Is(unread, index.ErrDamaged) {
			return nil, nil, unread
		}
	}
	p.due = is == views.Missing || is == views.Stale
	switch {
	case e.IsLost() && is == views.Edited:
		set(KindFound, SeverityWarning, true, "it was lost, but has a file")
		return raw, p, nil
	case e.IsLost():
		set(KindLost, SeverityWarning, false, "it had no intact copy")
		return nil, p, nil
	case is == views.Edited:
		set(KindEdited, SeverityInfo, true, "its file was edited by hand")
		return raw, p, nil
	case is == views.Exact:
		return raw, nil, nil
	case unread != nil:
		set(KindLost, SeverityError, false, "no intact copy: "+unread.Error())
		return nil, p, nil
	case is == views.Missing && (blocked || !x.hasFile(line, e)):
		return committed, nil, nil
	case is == views.Missing && !e.IsSealed():
		set(KindMissing, SeverityInfo, true, "its file does not exist yet: the next writer creates it")
	case is == views.Missing: // another process may have sealed it before its writer makes the file
		set(KindMissing, SeverityWarning, true, "its file is missing")
	case is == views.Stale: // likewise
		set(KindDamaged, SeverityWarning, true, "its file holds an earlier version")
	case vfs.IsFault(why), errors.Is(why, ctxfolder.ErrVersion):
		set(KindUnread, SeverityWarning, false, why.Error())
	default:
		set(KindDamaged, SeverityWarning, true, describeFile(raw, why)+"; the committed message is intact")
	}
	return committed, p, nil
}

// judgeErased returns the problem of an erased message that has a file. Its id can have been appended again.
func (x *examination) judgeErased(p *problem) (*problem, error) {
	switch e, ok, err := x.Index.Find(p.line, p.ID, math.MaxInt64); {
	case ok && !e.IsErased(), errors.Is(err, index.ErrDamaged): // or unknown, until the history is repaired
		return nil, nil
	case err != nil:
		return nil, err
	}
	env, _, err := x.envelope(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && env.ID != p.ID: // see leftover
		return nil, nil
	case vfs.IsFault(err):
		p.Kind, p.Severity, p.Detail = KindUnread, SeverityWarning, err.Error()
	default:
		x.erased(p)
	}
	return p, nil
}
