package index

import (
	"errors"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// keepHidden hands over the messages that a segment has whole and the history does not show: it belongs to another history,
// which has gone on in another way from some place on. The next merge leaves them out.
func (ix *Index) keepHidden(keep func(line uuid.UUID, position int64, envelope []byte) error) error {
	all, err := ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	cut, err := ix.trimmed()
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
				if err := ix.keepHiddenOf(o, line, from, min(from+pageEntries, end), keep); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trimmed returns where logs cut lines: what segments have from there on was removed, and must not come back.
func (ix *Index) trimmed() (cut map[uuid.UUID]int64, err error) {
	x := newSealing(ix)
	var logs []*openLog
	if err := ix.view(func(s *state) {
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

func (ix *Index) keepHiddenOf(
	o *openSegment, line uuid.UUID, from, to int64, keep func(line uuid.UUID, position int64, envelope []byte) error,
) error {
	var v lineView
	var shown []Entry
	var err error
	if verr := ix.view(func(s *state) {
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
			err = keep(line, row.Position, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads what is whole in a log, and reports whether that is not all.
func (x *sealing) readWhole(o *openLog, follows func(journal.Kind, []byte) bool) (damaged bool, err error) {
	l, err := journal.Open(x.ix.dir.Logs, o.Name())
	if err != nil {
		return false, err
	}
	defer func() { _ = l.Close() }() // it was only read
	from := &openLog{Log: l}
	damaged = l.State() == nil
	tail, err := l.Read(func(rec journal.Record) error {
		r := record{Record: rec, log: from}
		err := r.parse()
		if err == nil && follows(r.Kind, r.Body) {
			return x.take(&r)
		}
		if damaged = damaged || err != nil; errors.Is(err, ErrDamaged) {
			err = nil
		}
		return err
	}, func(uint64) { damaged = true })
	return damaged || tail == journal.Damaged, err
}
