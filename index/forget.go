package index

import (
	"encoding/json"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// ForgetVersions removes from segments the versions of messages that newer segments replaced. It returns the positions of
// the sealed messages that were ever replaced, in each line. The caller holds the lock for sealing.
//
// Crash order: as for an erasure, see [Index.Seal]. A second call finishes it.
func (ix *Index) ForgetVersions(opts archive.Options) (replaced map[uuid.UUID]map[int64]bool, err error) {
	all, err := ix.held()
	if err != nil {
		return nil, err
	}
	defer all.release()
	replaced = map[uuid.UUID]map[int64]bool{}
	for i := len(all.all) - 1; i >= 0; i-- { // by newer segments
		o := all.all[i]
		if err := o.need(); err != nil {
			return nil, err
		}
		var replaces []archive.Row
		old := false
		for line, span := range o.spans {
			for row, err := range o.Rows(line, span.From, span.To) {
				if err != nil {
					return nil, err
				}
				old = old || row.Gone == archive.Here && replaced[line][row.Position]
				if row.Replaces {
					replaces = append(replaces, row)
				}
			}
		}
		if old {
			x := archive.Rewrite{Fate: func(r *archive.Row) archive.Fate {
				if r.Gone == archive.Here && replaced[r.Line][r.Position] {
					return archive.Supersede
				}
				return archive.Keep
			}}
			state, err := o.State()
			if err == nil {
				err = ix.rewrite(o, opts, x, state)
			}
			if err != nil {
				return nil, err
			}
		}
		for _, r := range replaces {
			if replaced[r.Line] == nil {
				replaced[r.Line] = map[int64]bool{}
			}
			replaced[r.Line][r.Position] = true
		}
	}
	return replaced, nil
}

// ForgetMetadata removes from segments what the metadata was before: in its place is that of the newest segment. The caller
// holds the lock for sealing.
//
// Crash order: as for an erasure, see [Index.Seal]. A second call finishes it.
func (ix *Index) ForgetMetadata(opts archive.Options) error {
	all, err := ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	if len(all.all) == 0 {
		return nil
	}
	last, err := all.last().saved()
	if err != nil {
		return err
	}
	for _, o := range all.all {
		state, err := o.saved()
		if err != nil {
			return err
		}
		changes := string(state.Metadata) != string(last.Metadata)
		x := archive.Rewrite{Other: forgetMetadata(last.Metadata, &changes)}
		for r, err := range o.Others(0) {
			if err != nil {
				return err
			}
			x.Other(&r)
		}
		if !changes {
			continue
		}
		state.Metadata, x.Other = last.Metadata, forgetMetadata(last.Metadata, &changes)
		b, err := json.Marshal(state)
		if err == nil {
			err = ix.rewrite(o, opts, x, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetMetadata returns a function that makes the first record of metadata that of by, and leaves of the others only their
// numbers. It sets changes if it changes one.
func forgetMetadata(by json.RawMessage, changes *bool) func(*archive.Other) bool {
	first := true
	return func(r *archive.Other) bool {
		kind := journal.Kind(r.Kind)
		if kind != journal.Metadata && kind != journal.Change {
			return true
		}
		*changes = *changes || !first || kind != journal.Metadata || string(r.Body) != string(by)
		if r.Kind, r.Body = archive.KindForgotten, nil; first {
			r.Kind, r.Body, first = string(journal.Metadata), by, false
		}
		return true
	}
}

// saved returns the state at the end of the segment.
func (o *openSegment) saved() (saved, error) {
	b, err := o.state()
	if err != nil {
		return saved{}, err
	}
	return parseSaved(b)
}
