package index

import (
	"errors"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// keepHidden hands over the messages that a segment has whole and the history does not show: it belongs to another history,
// which has gone on in another way from some place on. The next merge leaves them out.
func (r *rescue) keepHidden() error {
	if r.Hidden == nil {
		return nil
	}
	all, err := r.ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	cut, err := r.trimmed()
	if err != nil {
		return err
	}
	for _, o := range all.all {
		if err := o.need(); errors.Is(err, ErrDamaged) {
			continue // a copy is in the trash
		} else if err != nil {
			return err
		}
		for line, span := range o.spans {
			end := span.To
			if at, ok := cut[line]; ok {
				end = min(end, at)
			}
			for from := span.From; from < end; from += pageEntries {
				if err := r.keepHiddenOf(o, line, from, min(from+pageEntries, end)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trimmed returns where logs cut lines: what segments have from there on was removed, and must not come back.
func (r *rescue) trimmed() (cut map[uuid.UUID]int64, err error) {
	x := newSealing(r.ix)
	var logs []*openLog
	if err := r.ix.view(func(s *state) {
		for _, o := range s.logs {
			o.hold()
			logs = append(logs, o)
		}
	}); err != nil {
		return nil, err
	}
	for _, o := range logs {
		if err == nil {
			_, err = x.readWhole(o, func(journal.Kind, []byte) bool { return true })
		}
		o.release()
	}
	return x.cut, err
}

func (r *rescue) keepHiddenOf(o *openSegment, line uuid.UUID, from, to int64) error {
	var v lineView
	var shown []Entry
	var err error
	if verr := r.ix.view(func(s *state) {
		v = lineView{Counts{Line: line}, nil, nil, s.segments}
		if ln := s.lines[line]; ln != nil {
			v = lineView{ln.Counts, ln.recent, ln.changed, s.segments}
		}
		shown, err = v.entries(from, to)
	}); verr != nil || err != nil {
		return errors.Join(verr, err)
	}
	at := map[int64]*Entry{}
	for i := range shown {
		at[shown[i].Position] = &shown[i]
	}
	for row, err := range o.Rows(line, from, to) {
		if errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		if e := at[row.Position]; row.Gone != archive.Here || e != nil && (e.ID == row.ID || e.Gone == archive.Erased) {
			continue
		}
		raw, err := o.ReadMessage(row)
		if errors.Is(err, ErrDamaged) {
			continue
		}
		if err == nil {
			err = r.Hidden(line, row.Position, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
