package main

import (
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
)

// maxItems is the number of items of a kind that each have a line.
const maxItems = 5

// itemLines prints items that moved to the trash, or were purged. With --json or --verbose, it prints each at once. Else
// many items of a kind are one line, with their number.
type itemLines struct {
	a     *app
	kinds []*itemKind
}

// itemKind is the items with which the same happened.
type itemKind struct {
	did, kind, reason string // no reason if the items have several
	first             []itemRecord
	purged            bool
	count             int
	bytes             int64
}

func (l *itemLines) add(x ctxdir.TrashItem, purged bool) error {
	r := itemRecordOf(x, purged, l.a.dryRun)
	if l.a.json {
		return l.a.record(r)
	}
	did := r.Record
	if l.a.dryRun {
		did = map[string]string{"trashed": "would trash", "purged": "would purge"}[did]
	}
	if l.a.verbose {
		return l.a.printf("%-7s  %9s  %s  %s\n", did, plain.Size(r.Bytes), r.Path, plain.OneLine(r.Reason))
	}
	k := l.of(did, r)
	if k.count++; k.count <= maxItems {
		k.first = append(k.first, r)
	}
	if k.bytes += r.Bytes; k.reason != r.Reason {
		k.reason = ""
	}
	return nil
}

func (l *itemLines) of(did string, r itemRecord) *itemKind {
	for _, k := range l.kinds {
		if k.did == did && k.kind == r.Kind {
			return k
		}
	}
	k := &itemKind{did: did, kind: r.Kind, purged: r.Record == "purged", reason: r.Reason}
	l.kinds = append(l.kinds, k)
	return k
}

// print prints the lines that wait for the number of their items.
func (l *itemLines) print() error {
	t := &term.Table{
		Head: []string{"", "", "", ""}, Bare: true, Right: []int{1}, Shrink: []int{3, 2}, Ends: []int{2},
	}
	for _, k := range l.kinds {
		if k.count > maxItems {
			t.Add(nil, k.did, plain.Size(k.bytes), plain.Count(k.count, k.noun()), k.reason)
			continue
		}
		for _, r := range k.first {
			t.Add(nil, k.did, plain.Size(r.Bytes), shortItemPath(r), r.Reason)
		}
	}
	return l.a.printTable(t)
}

// shortItemPath is the path of an item with the beginning of the context's id and the end of its own, as "trash ls" shows
// them.
func shortItemPath(r itemRecord) string {
	path := r.Path
	if r.Context != "" {
		path = strings.ReplaceAll(path, r.Context, r.Context[:minShortID]+"…")
	}
	if id, err := uuid.Parse(r.Item); err == nil {
		path = strings.ReplaceAll(path, r.Item, "…"+endOf(id))
	}
	return path
}

// noun is what a person calls an item. A purge removes blobs by the item of the trash that has them.
func (k *itemKind) noun() string {
	switch {
	case k.kind == "blobs" && !k.purged:
		return "blob"
	case k.kind == "line":
		return "removed branch"
	case k.kind == "version":
		return "replaced message"
	}
	return "item"
}

// itemRecord is an item that moved to the trash, or was purged from it.
type itemRecord struct {
	record.TrashItem
	DryRun bool `json:"dry_run,omitempty"`
}

func itemRecordOf(t ctxdir.TrashItem, purged, dryRun bool) itemRecord {
	r := itemRecord{record.OfTrashItem(t), dryRun}
	if r.Record = "trashed"; purged {
		r.Record = "purged"
	}
	return r
}
