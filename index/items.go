package index

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// TrimItem returns the record that ends a line at a position: its messages from there on are no part of the history any
// more. After the next [Index.Rotate], [Index.Seal] removes them from older segments. The caller holds the lock of the
// context, and has called Prepare.
func (ix *Index) TrimItem(line uuid.UUID, end int64) (item journal.Item, err error) {
	counts, ok, err := ix.Counts(line)
	if err != nil {
		return item, err
	}
	if !ok || end < counts.Base || end > counts.End() {
		return item, fmt.Errorf("cannot end line %s at position %d: out of range", line, end)
	}
	t := trim{Line: line, End: end, Bytes: counts.Bytes}
	for from := end; from < counts.End(); from += pageEntries {
		page, err := ix.Entries(line, from, from+pageEntries)
		if err != nil {
			return item, err
		}
		for i := range page {
			t.Bytes -= page[i].Size
		}
	}
	t.Bytes = max(t.Bytes, 0)
	if end > counts.Base {
		e, _, err := ix.Entry(line, end-1)
		if err != nil {
			return item, err
		}
		t.Last = e.ID
	}
	return itemOf(journal.Trim, t)
}

// EraseItem returns the record that erases messages of a line: from its commit on they are gone for every reader. After the
// next [Index.Rotate], [Index.Seal] removes them from the files of the history. Positions that are erased already count
// once more. The caller holds the lock of the context, and has called Prepare.
func (ix *Index) EraseItem(line uuid.UUID, positions []int64) (item journal.Item, err error) {
	counts, ok, err := ix.Counts(line)
	if err != nil {
		return item, err
	}
	x := erasure{Line: line, Positions: slices.Compact(slices.Sorted(slices.Values(positions))), Bytes: counts.Bytes}
	for _, p := range x.Positions {
		e, there, err := ix.Entry(line, p)
		if err != nil {
			return item, err
		}
		if !ok || !there {
			return item, fmt.Errorf("cannot erase from line %s: position %d is out of range", line, p)
		}
		x.Bytes -= e.Size
	}
	x.Bytes = max(x.Bytes, 0)
	return itemOf(journal.Erase, x)
}

// GoneItem returns the record that declares a message gone which the same commit appends: erased, or lost. bytes is what
// remains of its line.
func GoneItem(line uuid.UUID, position, bytes int64, lost bool) (journal.Item, error) {
	return itemOf(journal.Erase, erasure{Line: line, Positions: []int64{position}, Bytes: max(bytes, 0), Lost: lost})
}

func itemOf(kind journal.Kind, body any) (journal.Item, error) {
	b, err := json.Marshal(body)
	return journal.Item{Kind: kind, Body: b}, err
}
