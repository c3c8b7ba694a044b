package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// FileQuery says which files to list. A file must meet all conditions.
type FileQuery struct {
	// Query says which messages are looked at. Path is the path of the file; Text is optional. Limit and Cursor count
	// files.
	Query
	Access string // [Attached], [Read] or [Written]; empty for all
	Type   string // of a media type like this, with *, ?, [a-z]; "-" for files whose type is unknown
	IsText *bool  // only files that are text, or only others
	Newest bool   // of each path, or content, in a context only the newest
}

// FileRow is a file that a message attaches, or that a tool reads or writes. A file that several messages touch has a
// row for each.
type FileRow struct {
	Path     string // as the message states it; empty for an attachment without a name
	Access   string
	Type     string // the media type, stated or by the path; empty if unknown
	Size     int64  // of its content in the message, in bytes; -1 if the message does not have the whole content
	IsText   bool   // the content, or else the media type, is text
	At       time.Time
	Context  uuid.UUID
	Title    string            // of the context
	Labels   map[string]string // of the context
	Branches []string          // that show the message
	Line     uuid.UUID
	Position int64
	ID       uuid.UUID // of the message
	Role     string
	// Pointer is that to the path or the content in the message (RFC 6901). Into JSON in a string, such as the arguments
	// of a call, it continues behind the pointer to the string.
	Pointer string
	Payload string // SHA-256 of the content, if it is a payload
	Cursor  string
}

// Files yields the files attached to messages, and those that tool calls read or write, the newest first, as of the
// last [Index.Update].
func (x *Index) Files(ctx context.Context, q FileQuery) iter.Seq2[FileRow, error] {
	return func(yield func(FileRow, error) bool) {
		if err := x.files(ctx, &q, func(r *FileRow) bool { return yield(*r, nil) }); err != nil {
			yield(FileRow{}, err)
		}
	}
}

const fileColumns = "m.n, m.line, m.position, m.id, m.sum, m.at, m.role, m.type, " +

	"f.n, f.path, f.access, f.type, f.size, f.text, f.pointer, f.payload"

// PathCount says how often messages touch the files of a path.
type PathCount struct {
	Path     string
	Times    int       // a message counts for each way that it touches the file; the answer to a call that counts does not
	Contexts int       // with such messages
	Last     time.Time // when the newest of them was made
}

// CountPaths counts by path what [Index.Files] yields with q, the most often touched first. Limit bounds the paths; Cursor
// and Newest must not be set.
func (x *Index) CountPaths(ctx context.Context, q FileQuery) ([]PathCount, error) {
	if q.Cursor != "" || q.Newest {
		return nil, fmt.Errorf("%w: counting paths takes no cursor and no order", ctxdir.ErrInvalid)
	}
	limit := q.Limit
	q.Limit = 0
	type use struct{ calls, answers int }
	last := map[string]time.Time{}
	uses := map[[3]string]use{} // by path, context and access
	err := x.files(ctx, &q, func(r *FileRow) bool {
		if r.Path == "" {
			return true
		}
		if _, ok := last[r.Path]; !ok { // the newest comes first
			last[r.Path] = r.At
		}
		key := [3]string{r.Path, r.Context.String(), r.Access}
		u := uses[key]
		if r.Role == "tool" {
			u.answers++
		} else {
			u.calls++
		}
		uses[key] = u
		return true
	})
	if err != nil {
		return nil, err
	}
	counts := map[string]*PathCount{}
	contexts := map[[2]string]bool{}
	for key, u := range uses {
		c := counts[key[0]]
		if c == nil {
			c = &PathCount{Path: key[0], Last: last[key[0]]}
			counts[key[0]] = c
		}
		c.Times += cmp.Or(u.calls, u.answers)
		if !contexts[[2]string(key[:2])] {
			contexts[[2]string(key[:2])] = true
			c.Contexts++
		}
	}
	all := make([]PathCount, 0, len(counts))
	for _, c := range counts {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b PathCount) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), b.Last.Compare(a.Last), strings.Compare(a.Path, b.Path))
	})
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, nil
}

// files calls yield for each file that meets the conditions, the newest first, until it returns false.
func (x *Index) files(ctx context.Context, q *FileQuery, yield func(*FileRow) bool) error {
	if q.Access != "" && !slices.Contains([]string{Attached, Read, Written}, q.Access) {
		return fmt.Errorf("%w: unknown access %q; use attached, read or written", ctxdir.ErrInvalid, q.Access)
	}
	for _, glob := range []string{q.Path, q.Type} {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%w: %q is not a valid pattern", ctxdir.ErrInvalid, glob)
		}
	}
	s := newSearch(x, &q.Query)
	if err := s.after.decode(q.Cursor); err != nil {
		return err
	}
	within, err := s.matching(ctx)
	if err != nil {
		return err
	}
	return s.fileRows(ctx, q, within, yield)
}

// matching returns the messages that the words of a query find, nil without words: those with all words, if there are any.
func (s *searching) matching(ctx context.Context) (map[int64]bool, error) {
	if s.q.Text == "" {
		return nil, nil
	}
	q := *s.q
	q.Limit, q.Cursor, q.Path = 0, "", ""
	rows, err := newSearch(s.x, &q).find(ctx)
	some := !slices.ContainsFunc(rows, func(f found) bool { return !f.partial })
	all := map[int64]bool{}
	for i := range rows {
		if some || !rows[i].partial {
			all[rows[i].n] = true
		}
	}
	return all, err
}

// fileRows goes through the files of the messages within, of all messages if that is nil.
func (s *searching) fileRows(ctx context.Context, q *FileQuery, within map[int64]bool, yield func(*FileRow) bool) error {
	tx, rows, err := s.selectFiles(ctx, q)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it was only read
	defer rows.Close()
	seen, n := map[[3]string]bool{}, 0
	for rows.Next() {
		var f found
		var r FileRow
		at, err := r.scan(rows, &f)
		if err != nil {
			return err
		}
		if within != nil && !within[f.n] {
			continue
		}
		if ok, err := s.meets(ctx, tx, &f); err != nil {
			return err
		} else if !ok {
			continue
		}
		r.describe(&f)
		if key := r.key(); q.Newest {
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		if s.q.Cursor != "" && !s.after.precedes(&at) {
			continue
		}
		r.Cursor = at.encode()
		if n++; !yield(&r) || n == s.q.Limit {
			break
		}
	}
	return rows.Err()
}

// scan reads a row, and returns its place in the list: the score of the cursor is the number of the file.
func (r *FileRow) scan(rows *sql.Rows, f *found) (at cursor, err error) {
	var n int64
	var id []byte
	err = rows.Scan(&f.n, &f.line, &f.position, &id, &f.sum, &f.at, &f.role, &f.kind,
		&n, &r.Path, &r.Access, &r.Type, &r.Size, &r.IsText, &r.Pointer, &r.Payload)
	copy(f.id[:], id)
	return cursor{n: f.n, at: f.at, score: float64(n)}, err
}

// describe adds what the message says about its file.
func (r *FileRow) describe(f *found) {
	r.Context, r.Title, r.Labels, r.Branches = f.place.context, f.place.names.Title, f.place.names.Labels, f.branches
	r.At, r.Line, r.Position, r.ID, r.Role = time.Unix(0, f.at).UTC(), f.place.line, f.position, f.id, f.role
}

// key is what rows of the same file in a context have in common.
func (r *FileRow) key() [3]string {
	if r.Path == "" && r.Payload == "" {
		return [3]string{r.Context.String(), "", r.ID.String() + r.Pointer}
	}
	return [3]string{r.Context.String(), r.Path, r.Payload}
}

// selectFiles returns the files that meet the conditions of a file, in order. The caller ends the transaction.
func (s *searching) selectFiles(ctx context.Context, q *FileQuery) (tx *sql.Tx, rows *sql.Rows, err error) {
	db, err := s.x.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return nil, nil, err
	}
	var conditions []string
	var args []any
	when := func(set bool, condition string, arg any) {
		if set {
			conditions, args = append(conditions, condition), append(args, arg)
		}
	}
	when(q.Path != "", "(f.path GLOB ?1 OR f.path GLOB '*/' || ?1)", q.Path)
	when(q.Access != "", "f.access = ?", q.Access)
	when(q.Type == "-", "f.type = ?", "")
	when(q.Type != "" && q.Type != "-", "f.type GLOB ?", q.Type)
	when(q.IsText != nil, "f.text = ?", q.IsText)
	when(true, "f.access <> ?", named)
	query := "SELECT " + fileColumns + " FROM files f JOIN messages m ON m.n = f.message WHERE " + strings.Join(conditions, " AND ")
	if s.names, err = s.x.current(ctx, tx); err == nil {
		rows, err = tx.QueryContext(ctx, query+" ORDER BY m.at DESC, m.n DESC, f.n", args...)
	}
	if err != nil {
		return nil, nil, errors.Join(err, tx.Rollback())
	}
	return tx, rows, nil
}
