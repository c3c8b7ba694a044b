package trash

import (
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/collected"
)

// logOf returns the line of collected.jsonl about a result.
func logOf(x CollectResult) collected.Line {
	record := "trashed"
	if x.Purged {
		record = "purged"
	}
	line := collected.Line{Record: record, Context: x.Context, Path: x.Path, Bytes: x.Bytes, Reason: x.Reason}
	if x.Kind == ctxfolder.TrashLine { // a purge leaves no name of a branch
		line.Path, line.Reason = x.Context.String()+"/"+ctxfolder.Messages, "messages that no branch shows"
	}
	return line
}

// logOfArchived returns the line about what was archived.
func logOfArchived(r archiving.Result) collected.Line {
	return collected.Line{
		Record: "archived", Context: r.Context, Bytes: r.After, Messages: r.Messages, Reason: "old, as the settings of the store say",
	}
}
