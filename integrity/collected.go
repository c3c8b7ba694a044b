package integrity

import (
	"bytes"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// collected returns the context's trash item that keeps the message of a file, "" if none: env's message, or without
// env any with that file name. cleared reports that such files are removed; else the next collection removes them.
func (x *examination) collected(file uuid.UUID, env *message.Envelope) (item string, cleared bool) {
	for t := range trashedLines(x.Dir) {
		i := &t.Item
		if env != nil && (i.Line != env.Line || env.Position < i.From || env.Position >= i.To) || !x.messagesIn(t.Path)[file] {
			continue
		}
		if !t.Has(ctxfolder.ClearedFile) {
			return t.Path, false
		}
		item, cleared = t.Path, true
	}
	return item, cleared
}

// trashedLines yields the ends of lines in the context's trash, as far as the trash is readable.
func trashedLines(dir *ctxfolder.Dir) iter.Seq[*ctxfolder.TrashEntry] {
	return func(yield func(*ctxfolder.TrashEntry) bool) {
		for t, err := range ctxfolder.EachTrash(dir.FS, func(_ uuid.UUID, folder bool) bool { return folder }) {
			if err != nil || t.Problem == nil && t.Item.Kind == ctxfolder.TrashLine && !yield(t) {
				return
			}
		}
	}
}

// messagesIn returns the file names of the messages in a trash item of the end of a line, if they are readable.
func (x *examination) messagesIn(item string) map[uuid.UUID]bool {
	if kept, ok := x.kept[item]; ok {
		return kept
	}
	kept := map[uuid.UUID]bool{}
	for n := 1; ; n++ {
		b, err := vfs.ReadFile(x.Dir.FS, item+"/"+ctxfolder.PieceFile(n), ctxfolder.MaxMessage)
		if err != nil {
			break
		}
		for line := range bytes.Lines(b) {
			if env, err := message.ParseTrusted(bytes.TrimRight(line, "\n")); err == nil {
				kept[env.FileID()] = true
			}
		}
	}
	if x.kept == nil {
		x.kept = map[string]map[uuid.UUID]bool{}
	}
	x.kept[item] = kept
	return kept
}

// ofTrash turns p into a finding about a file whose message is in the trash; nil if the next collection removes it.
func (p *problem) ofTrash(item string, cleared bool, detail string) *problem {
	if !cleared {
		return nil
	}
	p.Kind, p.Severity, p.Repairable, p.Detail = KindDuplicate, SeverityWarning, true, detail+item
	return p
}
