package search

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// contextSync brings the rows of one open context up to date.
type contextSync struct {
	w       *writer
	c       *ctxdir.Context
	row     *contextRow
	folders map[uuid.UUID]string  // of the lines that the store has
	lines   map[uuid.UUID]int64   // the numbers of lines
	old     map[uuid.UUID]rowSums // of lines that are compared as a whole
	edits   edits                 // read again
}

// rowSums are the rows of a line, by position.
type rowSums map[int64]rowSum

type rowSum struct {
	n           int64
	sum, edited int64
}

// positions are messages to read, for each line.
type positions map[uuid.UUID][]span

// span is the range of positions [from, to).
type span struct{ from, to int64 }

func (p positions) add(line uuid.UUID, position int64) {
	spans := p[line]
	if n := len(spans); n > 0 && spans[n-1].to == position {
		spans[n-1].to++
		return
	}
	p[line] = append(spans, span{position, position + 1})
}

// edits are messages that were edited by hand, by line and position, with the times of their files.
type edits map[uuid.UUID]map[int64]int64

// syncOpen brings an open context up to date, and reads the messages again that were edited by hand.
func (w *writer) syncOpen(ctx context.Context, c *ctxdir.Context, edited edits) error {
	s, err := w.newSync(ctx, c)
	if err != nil {
		return err
	}
	s.edits = edited
	since, changed := "", w.changed
	if s.row.complete && (!w.whole || edited != nil) {
		since = s.row.state
	}
	state, rows := c.Changes(ctx, since)
	if err := s.describe(); err != nil {
		return err
	}
	var due positions
	if since != "" {
		due, err = s.committed(rows)
		if errors.Is(err, ctxdir.ErrNotExist) {
			since = ""
			state, rows = c.Changes(ctx, "")
		}
	}
	if since == "" {
		due, err = s.differing(rows)
	}
	if err != nil {
		return err
	}
	for line, all := range edited {
		for position := range all {
			due.add(line, position)
		}
	}
	if err := s.read(ctx, due); err != nil {
		return err
	}
	if since != "" && s.row.state == state {
		state = ""
	}
	return s.complete(state, since == "" || w.changed != changed)
}

// complete notes that the rows of the context are those of a state, unless that is empty.
func (s *contextSync) complete(state string, changed bool) (err error) {
	switch {
	case state != "":
		_, err = s.w.exec("UPDATE contexts SET state = ?, changes = changes + ? WHERE n = ?", state, changed, s.row.n)
	case changed:
		_, err = s.w.exec("UPDATE contexts SET changes = changes + 1 WHERE n = ?", s.row.n)
	}
	return err
}

func (w *writer) newSync(ctx context.Context, c *ctxdir.Context) (s *contextSync, err error) {
	id := c.ID()
	s = &contextSync{w: w, c: c, lines: map[uuid.UUID]int64{}, old: map[uuid.UUID]rowSums{}}
	if s.row, err = rowOf(ctx, w.tx, id); err != nil {
		return nil, w.fail(err)
	}
	if s.row == nil {
		s.row = &contextRow{id: id}
		s.row.n, err = w.exec("INSERT INTO contexts (id, names, metadata, changes) VALUES (?, '', 0, 0)", id[:])
		return s, err
	}
	rows, err := s.w.tx.Query("SELECT n, id FROM lines WHERE context = ?", s.row.n)
	if err != nil {
		return nil, s.w.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var id []byte
		if err := rows.Scan(&n, &id); err != nil {
			return nil, s.w.fail(err)
		}
		s.lines[uuid.UUID(id)] = n
	}
	return s, s.w.fail(rows.Err())
}

// describe writes the names of the context if the metadata changed, and removes the lines that the store has no more.
func (s *contextSync) describe() error {
	m := s.c.Metadata()
	n, lines := namesOf(m)
	s.folders = make(map[uuid.UUID]string, len(lines))
	for i := range lines {
		s.folders[lines[i].ID] = lines[i].Folder
	}
	for id, n := range s.lines {
		if _, ok := s.folders[id]; !ok {
			if err := s.w.cut(n, 0); err != nil {
				return err
			}
		}
	}
	sum := int64(xxhash.Sum64(m.Raw))
	if sum == s.row.metadata && s.row.names != "" {
		return nil
	}
	names, err := json.Marshal(n)
	if err == nil {
		_, err = s.w.exec("UPDATE contexts SET names = ?, metadata = ?, changes = changes + 1 WHERE n = ?", string(names), sum, s.row.n)
	}
	if err == nil && string(names) != s.row.names {
		err = s.w.renamed()
	}
	return err
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

// committed returns the messages that were committed since the rows were complete.
func (s *contextSync) committed(rows iter.Seq2[ctxdir.Row, error]) (positions, error) {
	due := positions{}
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		due.add(r.Line, r.Position)
	}
	return due, nil
}

// differing compares all rows with the store, and returns the messages whose rows are missing or of another version. It
// removes the rows of messages that the store has no more.
func (s *contextSync) differing(rows iter.Seq2[ctxdir.Row, error]) (positions, error) {
	due, ends := positions{}, map[uuid.UUID]int64{}
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		known, ok := s.old[r.Line]
		if !ok {
			if known, err = s.rows(r.Line); err != nil {
				return nil, err
			}
			s.old[r.Line] = known
		}
		if row, ok := known[r.Position]; ok == r.Gone || ok && row.sum != sumOf(r.ID, r.StoredAt) {
			due.add(r.Line, r.Position)
		}
		ends[r.Line] = r.Position + 1
	}
	for id, n := range s.lines {
		if err := s.w.cut(n, ends[id]); err != nil {
			return nil, err
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
	for id, spans := range due {
		if _, ok := s.folders[id]; !ok {
			continue
		}
		line, err := s.line(id)
		if err != nil {
			return err
		}
		for _, p := range spans {
			if err := s.readSpan(ctx, id, line, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSpan reads messages of a line in parts that fit into a transaction.
func (s *contextSync) readSpan(ctx context.Context, id uuid.UUID, line int64, p span) error {
	messages, err := s.c.Branch(id.String())
	if err != nil {
		return err
	}
	for from := p.from; from < p.to; from += maxRows {
		if s.w.isFull() {
			if err := s.pause(ctx); err != nil {
				return err
			}
		}
		cut := newCutting()
		go cut.run(ctx, messages.Messages(ctx, from, min(from+maxRows, p.to)))
		for d := range cut.documents() {
			if err == nil {
				err = s.write(line, id, d)
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
var errOvertaken = errors.New("another process has changed the search index meanwhile")

// write writes the row of a message, or removes it if the message is not available.
func (s *contextSync) write(line int64, id uuid.UUID, d *document) error {
	if err := s.removeOld(line, id, d.position); err != nil {
		return err
	}
	if d.failed {
		return s.w.lose()
	}
	edited, ok := s.edits[id][d.position]
	if !ok && d.edited {
		edited = s.editTime(id, d.id)
	}
	w := s.w
	w.rows++
	w.changed++
	o := &d.note
	n, err := w.exec("INSERT INTO messages (line, position, id, sum, edited, at, role, type, voice, text, usage, "+
		"marks, calls, failed, added, removed, begins) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		line, d.position, d.id[:], d.sum, edited, d.at, d.role, d.kind, d.voice, d.text, d.usage,
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

// editTime returns the time of the file of an edited message, 0 if the file is gone.
func (s *contextSync) editTime(line, id uuid.UUID) int64 {
	path := filepath.Join(s.w.x.dir, s.c.ID().String(), ctxfolder.Messages, s.folders[line], ctxfolder.MessageFile(id))
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// sync brings a context up to date.
func (w *writer) sync(ctx context.Context, id uuid.UUID) error {
	err := errOvertaken
	for errors.Is(err, errOvertaken) {
		if err = w.begin(ctx); err == nil {
			err = w.x.store.Use(ctx, id, func(c *ctxdir.Context) error { return w.syncOpen(ctx, c, nil) })
		}
	}
	if err == nil && w.isFull() {
		err = w.commit()
	}
	return err
}
