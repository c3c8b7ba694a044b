package index

import (
	"bytes"
	"encoding/json"
	"errors"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// metadata is the newest metadata: what a copy and the changes after it lead to.
type metadata struct {
	context uuid.UUID
	m       *ctxfolder.Metadata // nil if the context has none yet
	raw     json.RawMessage     // its copy; nil after a change
	copied  int                 // bytes of the last copy
	changes int                 // changes since
	changed int                 // bytes of them
}

// take applies a record.
func (x *metadata) take(kind journal.Kind, body []byte) error {
	m, err := x.after(kind, body)
	if err != nil {
		return err
	}
	if kind == journal.Metadata {
		x.set(m, bytes.Clone(body))
		return nil
	}
	x.m, x.raw, x.changes, x.changed = m, nil, x.changes+1, x.changed+len(body)
	return nil
}

// after returns the metadata after a record.
func (x *metadata) after(kind journal.Kind, body []byte) (m *ctxfolder.Metadata, err error) {
	switch {
	case kind == journal.Metadata:
		m, err = ctxfolder.ParseMetadata(body)
	case x.m == nil:
		err = errors.New("no metadata to apply the change to")
	default:
		m, err = x.m.Apply(body)
	}
	return m, err
}

// set makes m, of which raw is the copy, the newest metadata. The folder may be a copy of that of another context.
func (x *metadata) set(m *ctxfolder.Metadata, raw json.RawMessage) {
	x.m, x.raw, x.copied, x.changes, x.changed = m, raw, len(raw), 0, 0
	if m.ID != x.context {
		m.ID, x.raw = x.context, nil
	}
}

// copy returns the metadata as a copy has it.
func (x *metadata) copy() (json.RawMessage, error) {
	if x.raw == nil && x.m != nil {
		return ctxfolder.CommittableMetadata(x.m)
	}
	return x.raw, nil
}

// has reports whether the metadata names a line.
func (x *metadata) has(line uuid.UUID) bool {
	if x.m == nil {
		return false
	}
	_, ok := x.m.Line(line)
	return ok
}

// maxChanges is how many changes of the metadata can follow a copy: whoever opens the context applies them.
const maxChanges = 64

// item returns the record that commits m: a change, or a copy where the changes since the last one would be longer than
// that, or many.
func (x *metadata) item(m *ctxfolder.Metadata) (journal.Item, error) {
	if x.m != nil && x.changes < maxChanges && x.changed < x.copied {
		change, err := x.m.Change(m)
		if err != nil {
			return journal.Item{}, err
		}
		size := x.changed + len(change)
		if change != nil && size <= x.copied && x.copied+size <= ctxfolder.MaxMetadata/2 {
			return journal.Item{Kind: journal.Change, Body: change}, nil
		}
	}
	raw, err := ctxfolder.CommittableMetadata(m)
	return journal.Item{Kind: journal.Metadata, Body: raw}, err
}
