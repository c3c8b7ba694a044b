package main

import (
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
)

// rewriteRecord is a context whose messages archive, unarchive or externalise rewrote.
type rewriteRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Messages int64  `json:"messages"`
	Before   int64  `json:"bytes_before"`
	After    int64  `json:"bytes_after"`
	Stayed   int64  `json:"stayed,omitempty"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

// sizeChange is a number of messages, and their size before and after. A dry run of archive does not know the size after,
// and unarchive makes files beside what is there.
func sizeChange(r ctxdir.ArchiveResult) string {
	text := plain.Count(r.Messages, "message")
	switch {
	case r.Messages > 0 && (r.Before == 0 || r.After == 0):
		text += " (" + plain.Size(r.Before+r.After) + ")"
	case r.Messages > 0:
		text += fmt.Sprintf(" (%s before, %s after)", plain.Size(r.Before), plain.Size(r.After))
	}
	return text
}
