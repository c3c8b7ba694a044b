package integrity

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// glance is the result of the first look at a message's file.
type glance struct {
	fine bool   // the file is what was committed
	raw  []byte // the content of a message with payloads
}

// glances looks at message files, several at a time.
func (x *examination) glances(folder string, entries []index.Entry) []glance {
	out := make([]glance, len(entries))
	var next atomic.Int64
	var looking sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8) {
		looking.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				out[i] = x.glance(folder, &entries[i])
			}
		})
	}
	looking.Wait()
	return out
}

// glance compares a message's file with what was committed: by size and time, or by its bytes if ReadData is set.
func (x *examination) glance(folder string, e *index.Entry) glance {
	if e.Lost != "" {
		return glance{}
	}
	if e.Pack != uuid.Nil {
		return x.glanceAtArchived(folder, e)
	}
	if !x.ReadData {
		info, err := x.Dir.StatMessage(folder, e.FileID())
		fine := err == nil && ctxfolder.Untouched(info, e.Size, e.StoredAt())
		if !fine || e.Payloads == 0 {
			return glance{fine: fine}
		}
	}
	raw, is, _ := e.ReadFile(x.Dir, folder)
	if e.Payloads == 0 {
		raw = nil
	}
	return glance{is == index.FileExact, raw}
}

// suspect is a message that looked wrong.
type suspect struct {
	line     ctxfolder.Line
	position int64
}

// checkSuspects examines the suspects, and again after a pause those that it cannot clear: a writer may be at work.
func (x *examination) checkSuspects(ctx context.Context) error {
	look := func() ([]problem, error) { return x.recheck(ctx) }
	problems, err := x.confirm(look)
	if err == nil && !x.alone && slices.ContainsFunc(problems, func(p problem) bool { return p.due }) {
		problems, err = x.checkDue(ctx, problems, look)
	}
	if err != nil {
		return err
	}
	return x.reportAll(problems)
}

// recheck examines the suspects once and keeps those that it cannot clear.
func (x *examination) recheck(ctx context.Context) (problems []problem, err error) {
	var left []suspect
	for _, s := range x.suspects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, e, err := x.now(s.line, s.position)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		raw, p := x.judge(line, e)
		var wrong []problem
		if p != nil {
			wrong = append(wrong, *p)
		}
		if p == nil || p.Severity == SeverityWarning {
			wrong = append(wrong, x.payloadsOf(e, raw)...)
		}
		if len(wrong) > 0 {
			problems, left = append(problems, wrong...), append(left, s)
		}
	}
	x.suspects = left
	return problems, nil
}

// checkDue waits until no process is about to make message files of the commits so far, and looks once more: an append
// makes its files when its record is durable, and holds only the files' lock then. If one still holds it after a while,
// usually five seconds, checkDue drops the due files: they may still come, and the settle makes them in any case. It
// does so, too, if it may not ask.
func (x *examination) checkDue(ctx context.Context, problems []problem, look func() ([]problem, error)) ([]problem, error) {
	const pauses = 1000
	patience, end := context.WithTimeout(ctx, pauses*x.Pause)
	defer end()
	err := x.Dir.AwaitFiles(patience)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	made := err == nil || errors.Is(err, syscall.EROFS) // nobody writes on a read-only file system
	if err := x.refresh(); err != nil {
		return nil, err
	}
	again, err := look()
	return slices.DeleteFunc(again, func(p problem) bool {
		return p.due && (!made || !slices.ContainsFunc(problems, p.isOfSameCommit))
	}), err
}

// isOfSameCommit reports whether two problems are of one message at one path, and nothing replaced it meanwhile.
func (p *problem) isOfSameCommit(other problem) bool {
	return p.Path == other.Path && p.entry.ID == other.entry.ID && p.entry.Sum == other.entry.Sum
}

// refresh rereads metadata and log, even if only index.json was replaced, and forgets the problems of blobs.
func (x *examination) refresh() error {
	err := x.Log.Refresh()
	if m, _, _, _ := x.Log.Metadata(); m != nil {
		x.metadata = m
	}
	x.Log.IndexChanged(x.Log.IndexVersion())
	x.Payloads.again()
	return err
}

// now returns the current state of a line and of the entry at a position; nil if there is none.
func (x *examination) now(line ctxfolder.Line, position int64) (ctxfolder.Line, *index.Entry, error) {
	if l, ok := x.metadata.Line(line.ID); ok {
		line = *l
	}
	entries, err := x.Log.Entries(line.ID, position, position+1)
	if err != nil || len(entries) == 0 {
		return line, nil, err
	}
	return line, &entries[0], nil
}

// judge returns the problem of a message, nil if none, and the content of its file or of its substitute.
func (x *examination) judge(line ctxfolder.Line, e *index.Entry) (raw []byte, p *problem) {
	raw, is, why := x.Log.ReadFile(line.ID, e, line.Folder)
	p = &problem{line: line.ID, entry: *e}
	p.Path, p.ID = pathOf(line.Folder, e.FileID()), e.ID
	switch {
	case e.Lost == index.Erased && is == index.FileMissing:
		return raw, nil
	case e.Lost == index.Erased:
		p.Kind, p.Severity, p.Repairable, p.Detail = KindErased, SeverityError, true, "the message was erased, but its file remains"
		return raw, p
	case e.Lost != "" && (is.Whole() || is == index.FileEdited):
		p.Kind, p.Severity, p.Repairable, p.Detail = KindFound, SeverityWarning, true, "the message was lost: "+e.Lost
		return raw, p
	case e.Lost != "":
		p.Kind, p.Severity, p.Detail = KindLost, SeverityWarning, e.Lost
		return raw, p
	case is == index.FileExact, is == index.FileRespelled && e.Pack != uuid.Nil:
		return raw, nil
	case is == index.FileRespelled:
		p.Kind, p.Severity, p.Repairable, p.spelled = KindEdited, SeverityWarning, true, true
		p.Detail = "its file spells the message differently than it was written: a byte order mark, other white space, or ids in upper case"
		return raw, p
	case is == index.FileEdited:
		p.Kind, p.Severity, p.Repairable, p.Detail = KindEdited, SeverityWarning, true, "its file was edited by hand"
		return raw, p
	}
	record, journal := x.Log.ReadRecord(e)
	if e.Pack != uuid.Nil && !journal {
		if err := x.Log.CheckPack(e.Pack); vfs.IsShortage(err) {
			why = err
		}
	}
	if vfs.IsShortage(why) {
		p.Kind, p.Severity, p.Detail, p.short = KindUnread, SeverityError, why.Error(), why
		return nil, p
	}
	if e.Pack != uuid.Nil && (is == index.FileMissing || journal) {
		return x.judgePacked(p, is, record)
	}
	p.Severity, p.Repairable = SeverityError, true
	switch {
	case errors.Is(why, index.ErrTaken):
		_, text, _ := strings.Cut(why.Error(), ": ")
		p.Kind, p.Detail, p.taken = KindMissing, text, true
	case is == index.FileMissing:
		p.Kind, p.Detail = KindMissing, "its file is missing"
	case errors.Is(why, index.ErrDamaged):
		p.Kind, p.Detail = KindDamaged, describe(raw, why)
	case errors.Is(why, fs.ErrPermission):
		p.Kind, p.Detail, p.Repairable = KindUnread, why.Error(), journal
	case errors.Is(why, ctxfolder.ErrVersion):
		p.Kind, p.Detail, p.Repairable = KindUnread, why.Error(), false
	default:
		p.Kind, p.Detail = KindDamaged, why.Error()
	}
	if journal {
		p.Severity = SeverityWarning
		p.Detail += "; the journal has a copy"
		raw = record
		p.due = is == index.FileMissing && x.Log.Unsettled(e)
	}
	return raw, p
}

// describe describes a damaged file in a few words.
func describe(raw []byte, why error) string {
	switch {
	case len(raw) == 0:
		return "the file is empty"
	case len(bytes.Trim(raw, "\x00")) == 0:
		return fmt.Sprintf("the file consists of %d zero bytes", len(raw))
	}
	_, text, _ := strings.Cut(why.Error(), ctxfolder.MessageEnd+" ")
	return cmp.Or(text, why.Error())
}

func pathOf(folder string, file uuid.UUID) string {
	return ctxfolder.Messages + "/" + folder + "/" + ctxfolder.MessageFile(file)
}

// messages checks the messages of a line.
func (x *examination) messages(ctx context.Context, line ctxfolder.Line) error {
	counts, ok, err := x.Log.Counts(line.ID)
	if err != nil || !ok {
		return err
	}
	x.done.Messages, x.done.Of = 0, counts.Count
	for entries, err := range x.Log.Pages(ctx, line.ID, counts.Base, counts.End()) {
		if err != nil {
			return err
		}
		for i, g := range x.glances(line.Folder, entries) {
			x.message(line, &entries[i], g)
		}
		x.done.Messages += int64(len(entries))
		x.done.Total += int64(len(entries))
		if x.Progress != nil {
			x.Progress(x.done)
		}
	}
	return nil
}

// message checks one message. If it looks wrong, it becomes a suspect.
func (x *examination) message(line ctxfolder.Line, e *index.Entry, g glance) {
	x.seen[ctxfolder.Messages+"/"+line.Folder].take(e.FileID())
	if !g.fine || e.Payloads > 0 && len(x.payloadsOf(e, g.raw)) > 0 {
		x.suspects = append(x.suspects, suspect{line, e.Position})
	}
}
