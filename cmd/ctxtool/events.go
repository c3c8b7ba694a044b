package main

import (
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
)

type readyRecord struct {
	Record  string  `json:"record"`
	Context string  `json:"context,omitempty"`
	Seq     *uint64 `json:"seq,omitempty"`
	Polling string  `json:"polling,omitempty"` // why it polls
}

// changesOf says what changed in the metadata.
func changesOf(e *ctxdir.Event) string {
	if e.Before == nil || e.Metadata == nil {
		return "changed the metadata"
	}
	var changed []string
	if e.Before.Title != e.Metadata.Title {
		changed = append(changed, "set the title to "+strconv.Quote(e.Metadata.Title))
	}
	if e.Before.ActiveBranch != e.Metadata.ActiveBranch {
		changed = append(changed, "switched to branch "+plain.OneLine(e.Metadata.ActiveBranch))
	}
	if len(changed) == 0 {
		return "changed the metadata"
	}
	return strings.Join(changed, ", ")
}
