package ctxdir

import (
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
)

// Summary describes a context in a list.
type Summary struct {
	ID           uuid.UUID
	Title        string
	Labels       map[string]string
	Kind         string
	ExternalID   string
	Model        string // config.model_id
	Branches     int
	ActiveBranch string
	Messages     int64 // shown by at least one branch, each counted once
	Bytes        int64 // of the messages and of metadata.json
	Archived     int64 // bytes of the messages without files
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Legacy       string // the format of a legacy context, "legacy" or "legacy-split"; empty for a context of this format
	Cursor       string // in a list: see [ListOptions]
	Sequence     uint64 // number of the newest commit that the summary shows; 0 if it is not known
	// Commit names that commit and all commits before it: where two copies of a context have the same Commit, they have
	// the same history. It is empty if it is not known.
	Commit  string
	Problem error // why the context, or a part of it, cannot be used; the other fields hold what is known
}

func summary(e listing.Summary) Summary {
	sequence, _, _ := strings.Cut(e.Commit, "-")
	number, _ := strconv.ParseUint(sequence, 10, 64) // 0 if it is empty
	return Summary{
		ID: e.ID, Title: e.Title, Labels: e.Labels, Kind: e.Kind, ExternalID: e.ExternalID, Model: e.Model,
		Branches: e.Branches, ActiveBranch: e.ActiveBranch, Messages: e.Messages, Bytes: e.Bytes, Archived: e.Archived,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Legacy: string(e.Format), Cursor: e.Cursor, Problem: e.Problem,
		Sequence: number, Commit: e.Commit,
	}
}
