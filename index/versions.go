package index

import (
	"errors"
	"iter"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Version is a version of a message that a segment has.
type Version struct {
	Entry
	File     string // in the folder of the context
	Envelope []byte
}

// Versions yields the versions of messages that segments have: a replaced one is there until its segment is merged. It
// reads these segments as a whole. It may yield a version twice if segments are merged meanwhile. The error wraps
// [ErrDamaged] if one of them is damaged, or may have a version in a part that is.
func (ix *Index) Versions(entries []Entry) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		err := ix.anew(func() error {
			all, err := ix.held()
			if err != nil {
				return err
			}
			defer all.release()
			return ix.versions(all, entries, func(v Version) bool { return yield(v, nil) })
		})
		if err != nil {
			yield(Version{}, err)
		}
	}
}

func (ix *Index) versions(all *segments, entries []Entry, yield func(Version) bool) error {
	for _, o := range all.all {
		if err := o.need(); err != nil {
			return err
		}
		verified := false
		for i := range entries {
			e := &entries[i]
			if span, ok := o.spans[e.Line]; !ok || e.Position < span.From || e.Position >= span.To {
				continue
			}
			row, err := o.Lookup(e.Line, e.Position)
			if errors.Is(err, archive.ErrNotFound) || err == nil && (row.ID != e.ID || row.Gone != archive.Here) {
				continue
			}
			if err != nil {
				return err
			}
			if !verified {
				for d := range o.Verify() {
					return d.Err
				}
				verified = true
			}
			b, err := o.ReadMessage(row)
			if err != nil {
				return err
			}
			if !yield(Version{entryOfRow(&row, o), ctxfolder.Segments + "/" + o.name.File(), b}) {
				return nil
			}
		}
	}
	return nil
}
