package follow

import (
	"context"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/message"
)

// lookAtFiles queues the edits of message files that hints named.
func (f *follower) lookAtFiles(ctx context.Context) bool {
	for path := range f.files {
		folder, name, _ := strings.Cut(path, "/")
		f.edited(ctx, folder, name)
	}
	clear(f.files)
	return len(f.queue) > 0
}

// edited queues an event if a message's file was edited by hand. The engine gives a file a time that follows
// from the one it states.
func (f *follower) edited(ctx context.Context, folder, name string) {
	file, ok := ctxfolder.ParseMessageFile(name)
	if !ok || !ctxfolder.ValidFolder(folder) {
		return
	}
	info, err := f.c.Dir.StatMessage(folder, file)
	if err != nil {
		return
	}
	now := fileStateOf(info)
	head, err := f.c.Dir.LoadMessage(folder, file, headBytes)
	if err != nil || f.reported[folder+"/"+name] == now {
		return
	}
	a, ok := message.ParseAddress(message.Text(head))
	if ok && ctxfolder.HasFileTime(info, a.StoredAt) {
		return
	}
	if f.c.Refresh(ctx) != nil {
		return
	}
	for _, b := range f.c.Current().Branches {
		at, err := f.c.Branch(b.Name)
		if err != nil {
			continue
		}
		m, err := at.Message(ctx, file)
		if err != nil || !m.Edited {
			continue
		}
		if len(f.reported) >= maxReportedEdits {
			clear(f.reported)
		}
		f.reported[folder+"/"+name] = now
		e := f.messageEvent(MessageEdited, m)
		e.At = info.ModTime()
		f.queue = append(f.queue, e)
		return
	}
}

// headBytes is the length of a message file's beginning that holds all members before the message.
const headBytes = 4 << 10

// maxReportedEdits bounds the edits that are remembered, for editors that write a file several times.
const maxReportedEdits = 1 << 10
