package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// takenMetadata is metadata that a journal or index.json has. parsed is nil if it was not parsed yet.
type takenMetadata struct {
	raw    json.RawMessage
	parsed *ctxfolder.Metadata
}

// takeMetadata takes metadata that is newer than the previous one, unless raw is nil. It counts from parseMetadata on.
func (s *state) takeMetadata(raw json.RawMessage, parsed *ctxfolder.Metadata) {
	if raw != nil {
		s.unparsed = append(s.unparsed, takenMetadata{raw, parsed})
	}
}

// parseMetadata parses the newest usable metadata that was taken.
func (s *state) parseMetadata() error {
	unparsed := s.unparsed
	s.unparsed = nil
	for _, taken := range slices.Backward(unparsed) {
		m, err := taken.parsed, error(nil)
		if m == nil {
			m, err = ctxfolder.ParseMetadata(taken.raw)
		}
		if errors.Is(err, ctxfolder.ErrVersion) {
			return err
		}
		if err == nil && m.ID != s.dir.ID {
			err = fmt.Errorf("it belongs to context %s", m.ID)
		}
		if err == nil {
			if s.meta == nil || s.meta.FoldersMoved(m) {
				s.dir.SetRenaming(m.Renaming) // an open folder may have another name now
			}
			s.metadata, s.meta = taken.raw, m
			break
		}
		s.note("journal", "metadata in a journal: %v", err)
	}
	return nil
}

// Metadata returns the metadata that counts: what the journals committed, with what a person changed in metadata.json.
// With [ctxfolder.ProjectionUnusable], err is about metadata.json; m is nil if nothing replaces it.
func (l *Log) Metadata() (m *ctxfolder.Metadata, is ctxfolder.Projection, stamp ctxfolder.Stamp, err error) {
	for try := 0; ; try++ {
		committed, cerr := l.Committed()
		if cerr != nil {
			return nil, ctxfolder.ProjectionUnusable, stamp, cerr
		}
		m, is, stamp, err = l.dir.EffectiveMetadata(committed, l.revision)
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

// revision returns the committed metadata of an earlier revision, nil if no journal has it.
func (l *Log) revision(n int64) (m *ctxfolder.Metadata) {
	is := func(raw json.RawMessage) {
		if c, err := ctxfolder.ParseMetadata(raw); err == nil && !c.IsBefore() && c.Revision == n {
			m = c
		}
	}
	gens, err := generations(l.dir)
	for i := len(gens) - 1; err == nil && i >= 0 && m == nil; i-- {
		j, err := openJournal(l.dir, gens[i], nil)
		if err != nil {
			continue
		}
		is(j.begin.Metadata)
		_, _, _ = j.scan(j.first, j.begin.Seq, j.begin.chain, nil, func(rec record) error {
			var c change
			if err := c.parse(j, rec); err == nil && c.metadata != nil {
				is(c.metadata)
			}
			return nil
		}, nil)
		_ = j.f.Close()
	}
	return m
}

// FoldersOf returns the folders that may hold the files of a line now, see [ctxfolder.Metadata.FoldersOf]. It returns
// none for an unknown line.
func (l *Log) FoldersOf(line uuid.UUID) []string {
	_ = l.Refresh() // without it the folders are those before
	return l.foldersOf(line)
}

func (l *Log) foldersOf(line uuid.UUID) []string {
	var committed *ctxfolder.Metadata
	_ = l.view(func(s *state) { committed = s.meta })
	m, _, _, _ := l.dir.EffectiveMetadata(committed, nil)
	if m == nil {
		return nil
	}
	ln, ok := m.Line(line)
	if !ok {
		return nil
	}
	return m.FoldersOf(ln)
}
