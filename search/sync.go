package search

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// contextSync brings the rows of one open context up to date.
type contextSync struct {
	w     *writer
	c     *engine.Context
	m     *engine.Metadata
	row   *contextRow
	spans []loader.Span         // what the store has
	lines map[uuid.UUID]int64   // the numbers of lines
	old   map[uuid.UUID]rowSums // of lines that are compared as a whole
	edits bool                  // files may differ from the commit although the message does not
}

// rowSums are the rows of a line, by position.
type rowSums map[int64]rowSum

type rowSum struct {
	n           int64
	sum, edited int64
}

// positions are messages to read, for each line.
type positions map[uuid.UUID]*index.Spans

func (p positions) add(line uuid.UUID, position int64) {
	if p[line] == nil {
		p[line] = &index.Spans{}
	}
	p[line].Add(position)
}

// syncOpen brings an open context up to date, and reads the messages again that were edited by hand.
func (w *writer) syncOpen(ctx context.Context, c *engine.Context, edited positions) error {
	state := c.State()
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	at, err := c.Index.At()
	if err != nil {
		return err
	}
	s, err := w.newSync(ctx, c)
	if err != nil {
		return err
	}
	s.edits = edited != nil
	if err := s.describe(); err != nil {
		return err
	}
	due := edited
	whole := !s.row.complete || w.whole && edited == nil
	if !whole && s.row.at != at {
		due, err = s.committed(due)
		whole = errors.Is(err, index.ErrGap)
		if err != nil && !whole {
			return err
		}
	}
	if whole {
		if due, err = s.differing(ctx); err != nil {
			return err
		}
	}
	if err := s.read(ctx, due); err != nil {
		return err
	}
	if s.row.complete && s.row.at == at && s.row.state == state {
		return nil
	}
	b, err := json.Marshal(state)
	if err == nil {
		_, err = w.exec("UPDATE contexts SET seq = ?, chain = ?, state = ? WHERE n = ?", int64(at.Seq), int64(at.Chain), b, s.row.n)
	}
	return err
}

func (w *writer) newSync(ctx context.Context, c *engine.Context) (s *contextSync, err error) {
	id := c.ID()
	s = &contextSync{w: w, c: c, m: c.Current(), lines: map[uuid.UUID]int64{}, old: map[uuid.UUID]rowSums{}}
	if s.row, err = rowOf(ctx, w.tx, id); err != nil {
		return nil, w.fail(err)
	}
	if s.row == nil {
		s.row = &contextRow{id: id}
		if s.row.n, err = w.exec("INSERT INTO contexts (id, seq, chain, names) VALUES (?, 0, 0, '')", id[:]); err != nil {
			return nil, err
		}
	}
	s.spans, err = c.Spans(s.m)
	return s, err
}

// describe writes the names of the context if they changed, and removes the messages that the store has no more.
func (s *contextSync) describe() error {
	names, err := json.Marshal(namesOf(s.m))
	if err != nil {
		return err
	}
	if string(names) != s.row.names {
		if _, err = s.w.exec("UPDATE contexts SET names = ? WHERE n = ?", string(names), s.row.n); err == nil {
			err = s.w.renamed()
		}
		if err != nil {
			return err
		}
	}
	rows, err := s.w.tx.Query("SELECT n, id FROM lines WHERE context = ?", s.row.n)
	if err != nil {
		return s.w.fail(err)
	}
	for rows.Next() {
		var n int64
		var id []byte
		if err := rows.Scan(&n, &id); err != nil {
			return s.w.fail(errors.Join(err, rows.Close()))
		}
		s.lines[uuid.UUID(id)] = n
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return s.w.fail(err)
	}
	for id, n := range s.lines {
		end := int64(0)
		if i := slices.IndexFunc(s.spans, func(p loader.Span) bool { return p.Line == id }); i >= 0 {
			end = s.spans[i].To
		}
		if err := s.w.cut(n, end); err != nil {
			return err
		}
	}
	return nil
}

// line returns the number of a line.
func (s *contextSync) line(id uuid.UUID) (n int64, err error) {
	if n, ok := s.lines[id]; ok {
		return n, nil
	}
	if n, err = s.w.exec("INSERT INTO lines (context, id) VALUES (?, ?)", s.row.n, id[:]); err == nil {
		s.lines[id] = n
	}
	return n, err
}

// committed returns the messages that were committed since the rows were complete. It fails with [index.ErrGap] if the
// history does not tell, or tells of an erasure: rows may then be of what is erased.
func (s *contextSync) committed(due positions) (positions, error) {
	t, err := s.c.Index.Resume(s.row.at)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if due == nil {
		due = positions{}
	}
	for {
		rec, ok, err := t.Next()
		if err != nil || !ok {
			return due, err
		}
		switch {
		case rec.Kind == journal.Erase:
			return due, index.ErrGap
		case rec.Entry != nil:
			due.add(rec.Entry.Line, rec.Entry.Position)
		}
	}
}

// differing compares all rows with the store, and returns the messages whose rows are missing or of another version.
func (s *contextSync) differing(ctx context.Context) (positions, error) {
	due := positions{}
	for _, span := range s.spans {
		rows, err := s.rows(span.Line)
		if err != nil {
			return nil, err
		}
		s.old[span.Line] = rows
		for entries, err := range s.c.Index.Pages(ctx, span.Line, span.From, span.To) {
			if err != nil {
				return nil, err
			}
			for i := range entries {
				e := &entries[i]
				if row, ok := rows[e.Position]; ok != (e.Gone == archive.Here) || ok && row.sum != int64(e.Sum) {
					due.add(span.Line, e.Position)
				}
			}
		}
	}
	return due, nil
}

// rows returns the rows of a line.
func (s *contextSync) rows(id uuid.UUID) (rowSums, error) {
	all := rowSums{}
	line, ok := s.lines[id]
	if !ok {
		return all, nil
	}
	rows, err := s.w.tx.Query("SELECT n, position, sum, edited FROM messages WHERE line = ?", line)
	if err != nil {
		return nil, s.w.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r rowSum
		var position int64
		if err := rows.Scan(&r.n, &position, &r.sum, &r.edited); err != nil {
			return nil, s.w.fail(err)
		}
		all[position] = r
	}
	return all, s.w.fail(rows.Err())
}

// read reads messages, and writes their rows.
func (s *contextSync) read(ctx context.Context, due positions) error {
	for _, span := range s.spans {
		spans := due[span.Line]
		if spans == nil {
			continue
		}
		line, err := s.line(span.Line)
		if err != nil {
			return err
		}
		for _, p := range *spans {
			from, to := max(p.From, span.From), min(p.To, span.To)
			if from >= to {
				continue
			}
			if err := s.readSpan(ctx, line, loader.Span{Line: span.Line, Folder: span.Folder, From: from, To: to}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSpan reads the messages of a span in parts that fit into a transaction.
func (s *contextSync) readSpan(ctx context.Context, line int64, span loader.Span) error {
	for from := span.From; from < span.To; from += maxRows {
		if s.w.isFull() {
			if err := s.pause(ctx); err != nil {
				return err
			}
		}
		part := span
		part.From, part.To = from, min(from+maxRows, span.To)
		entries, err := s.c.Index.Entries(part.Line, part.From, part.To)
		if err != nil {
			return err
		}
		at := make(map[int64]*index.Entry, len(entries))
		for i := range entries {
			at[entries[i].Position] = &entries[i]
		}
		cut := newCutting(func(m *loader.Message) *index.Entry { return at[m.Position] })
		go cut.run(ctx, func(yield func(m *loader.Message) bool) error {
			return s.c.Loader.Each(ctx, []loader.Span{part}, loader.Plainly, yield)
		})
		for d := range cut.documents() {
			if err == nil {
				err = s.write(line, part, d)
			}
			if err != nil {
				cut.stop()
			}
		}
		// Texts that were not read because ctx ended are missing in the rows.
		if err = errors.Join(err, cut.err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// pause ends a transaction in the middle of a context, and begins another one. The rows of the context are incomplete
// until it ends.
func (s *contextSync) pause(ctx context.Context) error {
	if _, err := s.w.exec("UPDATE contexts SET state = NULL WHERE n = ?", s.row.n); err != nil {
		return err
	}
	s.row.complete = false
	if err := s.w.commit(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.w.begin(ctx); err != nil {
		return err
	}
	now, err := rowOf(ctx, s.w.tx, s.row.id)
	if err != nil {
		return s.w.fail(err)
	}
	if now == nil || now.n != s.row.n || now.complete {
		return errOvertaken
	}
	clear(s.old)
	return nil
}

// errOvertaken reports that another process removed or completed the rows of the context meanwhile.
var errOvertaken = errors.New("another process updates the search index")

// write writes the row of a message, or removes it if the message is not available.
func (s *contextSync) write(line int64, span loader.Span, d *document) error {
	if err := s.removeOld(line, span.Line, d.position); err != nil {
		return err
	}
	if d.entry == nil || d.entry.Gone != archive.Here || d.failed {
		return s.w.lose()
	}
	edited := int64(0)
	if d.edited || s.edits {
		edited = s.editTime(span.Folder, d.entry)
	}
	w := s.w
	w.rows++
	w.changed++
	o := &d.note
	n, err := w.exec("INSERT INTO messages (line, position, id, sum, edited, at, role, type, voice, text, usage, "+
		"marks, calls, failed, added, removed, begins) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		line, d.position, d.id[:], int64(d.entry.Sum), edited, d.at, d.role, d.kind, d.voice, d.text, d.usage,
		int64(o.Marks), packCalls(&o.Calls), o.Failed, o.Added, o.Removed, o.Text)
	if err == nil {
		_, err = w.exec("INSERT INTO terms (rowid, said, rest, said_stems, rest_stems, scope) VALUES (?, ?, ?, ?, ?, ?)",
			n, d.said, d.rest, d.saidStems, d.restStems, scope(s.row.n))
	}
	for i := range d.files {
		if f := &d.files[i]; err == nil {
			_, err = w.exec("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				n, i, f.path, f.access, f.mediaType, f.size, f.isText, f.pointer, f.payload)
		}
	}
	return err
}

func (s *contextSync) removeOld(line int64, id uuid.UUID, position int64) error {
	if rows, ok := s.old[id]; ok {
		if row, ok := rows[position]; ok {
			return s.w.remove(row.n)
		}
		return nil
	}
	all, err := s.w.numbers("SELECT n FROM messages WHERE line = ? AND position = ?", line, position)
	for _, n := range all {
		if err == nil {
			err = s.w.remove(n)
		}
	}
	return err
}

// editTime returns the time of a message's file, 0 if the file is as it was committed.
func (s *contextSync) editTime(folder string, e *index.Entry) int64 {
	info, err := s.c.Dir.StatMessage(folder, e.ID)
	if err != nil {
		return 0
	}
	return editTime(info, e)
}

func editTime(info fs.FileInfo, e *index.Entry) int64 {
	if info == nil || ctxfolder.Untouched(info, e.Size, e.StoredAt()) {
		return 0
	}
	return info.ModTime().UnixNano()
}
