package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// takenMetadata is metadata that a journal or index.json has: a copy, or a change of what was taken before. parsed is
// what it leads to, nil if it was not parsed yet.
type takenMetadata struct {
	kind   Kind
	raw    json.RawMessage
	parsed *ctxfolder.Metadata
}

// takeMetadata takes metadata that is newer than the previous one, unless raw is nil. It counts from parseMetadata on.
func (s *state) takeMetadata(kind Kind, raw json.RawMessage, parsed *ctxfolder.Metadata) {
	if raw != nil {
		s.unparsed = append(s.unparsed, takenMetadata{kind, raw, parsed})
	}
}

// parseMetadata parses the newest usable copy that was taken, and applies the changes after it.
func (s *state) parseMetadata() error {
	unparsed := s.unparsed
	s.unparsed = nil
	newest := 0
	for i, taken := range slices.Backward(unparsed) {
		if taken.kind == KindChange {
			continue
		}
		err := s.parse(taken)
		if errors.Is(err, ctxfolder.ErrVersion) {
			return err
		}
		if err == nil {
			newest = i + 1
			break
		}
		s.note("journal", "metadata in a journal: %v", err)
	}
	changes := slices.DeleteFunc(unparsed[newest:], func(taken takenMetadata) bool { return taken.kind != KindChange })
	if err := s.parse(changes...); err != nil {
		for _, taken := range changes {
			if err := s.parse(taken); err != nil {
				s.note("journal", "a change of the metadata in a journal: %v", err)
			}
		}
	}
	return nil
}

// parse makes what a copy, or changes, lead to the newest metadata.
func (s *state) parse(taken ...takenMetadata) error {
	if len(taken) == 0 {
		return nil
	}
	last := taken[len(taken)-1]
	m, err := last.parsed, error(nil)
	if m == nil {
		raw := make([]json.RawMessage, len(taken))
		for i := range taken {
			raw[i] = taken[i].raw
		}
		m, err = metadataAfter(s.meta, last.kind, raw...)
	}
	if err == nil && m.ID != s.dir.ID {
		err = fmt.Errorf("it belongs to context %s", m.ID)
	}
	if err == nil {
		s.setMetadata(m, taken...)
	}
	return err
}

// setMetadata makes m, to which a copy or changes lead, the newest metadata.
func (s *state) setMetadata(m *ctxfolder.Metadata, taken ...takenMetadata) {
	s.meta = m
	for _, t := range taken {
		if t.kind == KindChange {
			s.metadata, s.changes, s.changed = nil, s.changes+1, s.changed+len(t.raw)
		} else {
			s.metadata, s.changes, s.changed, s.copied = t.raw, 0, 0, len(t.raw)
		}
	}
}

// metadataCopy returns the newest metadata as a journal begins with it.
func (s *state) metadataCopy() json.RawMessage {
	if s.metadata == nil && s.meta != nil {
		return ctxfolder.RawMetadata(s.meta)
	}
	return s.metadata
}

// maxChanges is how many changes of the metadata can follow a copy: whoever opens the context applies them.
const maxChanges = 64

// MetadataItem returns the record that commits m, the next revision of the metadata: a change, or a copy where the changes
// since the last one would be longer than that, or many. The caller holds the context lock and has called Prepare under it.
func (l *Log) MetadataItem(m *ctxfolder.Metadata) (Item, error) {
	l.advance.Lock()
	defer l.advance.Unlock()
	if s := l.state; s.meta != nil && s.changes < maxChanges && s.changed < s.copied {
		change, err := s.meta.Change(m)
		if err != nil {
			return Item{}, err
		}
		size := s.changed + len(change)
		if change != nil && size <= s.copied && s.copied+size <= ctxfolder.MaxMetadata/2 {
			return Item{Kind: KindChange, Body: change, Metadata: m}, nil
		}
	}
	raw, err := ctxfolder.CommittableMetadata(m)
	return Item{Kind: KindMetadata, Body: raw, Metadata: m}, err
}

// Metadata returns the metadata that counts: what the journals committed, with what a person changed in metadata.json.
// With [ctxfolder.ProjectionUnusable], err is about metadata.json; m is nil if nothing replaces it.
func (l *Log) Metadata() (m *ctxfolder.Metadata, is ctxfolder.Projection, stamp ctxfolder.Stamp, err error) {
	for try := 0; ; try++ {
		committed, cerr := l.Committed()
		if cerr != nil {
			return nil, ctxfolder.ProjectionUnusable, stamp, cerr
		}
		m, is, stamp, err = l.dir.EffectiveMetadata(committed)
		if is != ctxfolder.ProjectionNewer || committed == nil || committed.IsBefore() || try > 0 {
			return m, is, stamp, err
		}
		if err := l.Refresh(); err != nil { // another process committed meanwhile
			return nil, ctxfolder.ProjectionUnusable, stamp, err
		}
	}
}

// Committed returns the newest metadata that the journals have, nil for none. It must not be changed.
func (l *Log) Committed() (m *ctxfolder.Metadata, err error) {
	err = l.view(func(s *state) { m = s.meta })
	return m, err
}

// metadataAfter returns the metadata after a copy, or after changes of m, which may be nil.
func metadataAfter(m *ctxfolder.Metadata, kind Kind, raw ...json.RawMessage) (*ctxfolder.Metadata, error) {
	switch {
	case kind != KindChange:
		return ctxfolder.ParseMetadata(raw[0])
	case m == nil:
		return nil, errors.New("no journal has what the change applies to")
	}
	return m.Apply(raw...)
}
