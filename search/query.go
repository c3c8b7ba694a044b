package search

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
)

// hitsAtOnce is the number of messages that are read at the same time.
const hitsAtOnce = 8

// maxQuestion bounds the messages that a query in plain language ranks.
const maxQuestion = 5000

// Search yields the messages that a query finds, best first, as of the last [Index.Update]. A query without Text yields
// the newest first. It fails with [ctxdir.ErrInvalid] for a query that cannot be understood.
func (x *Index) Search(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		s := newSearch(x, &q)
		rows, err := s.find(ctx)
		if err != nil {
			yield(Hit{}, err)
			return
		}
		if q.Text != "" && !q.Bookkeeping {
			rows = withoutCopies(rows)
		}
		for block := range slices.Chunk(s.page(rows), hitsAtOnce) {
			for _, r := range s.hits(ctx, block) {
				if (r.ok || r.err != nil) && !yield(r.hit, r.err) || r.err != nil {
					return
				}
			}
		}
	}
}

func newSearch(x *Index, q *Query) *searching {
	return &searching{x: x, q: q, stems: stemmer{}, talk: !q.Bookkeeping && len(q.Roles) == 0, weights: bySpeech}
}

func (s *searching) find(ctx context.Context) (all []found, err error) {
	if s.q.Text != "" {
		if s.parsed, err = parse(s.q.Text, s.q.Phrase); err != nil {
			return nil, err
		}
	} else if s.q.Path == "" {
		return nil, fmt.Errorf("%w: a query needs a text or a path", ctxdir.ErrInvalid)
	}
	if err := s.after.decode(s.q.Cursor); err != nil {
		return nil, err
	}
	db, err := s.x.open(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it was only read
	if s.names, err = s.x.current(ctx, tx); err != nil {
		return nil, err
	}
	scope, err := s.scope(ctx, tx)
	if err != nil || scope == "()" {
		return nil, err
	}
	paths, err := s.paths(ctx, tx)
	if err != nil {
		return nil, err
	}
	all, err = s.best(ctx, tx, scope, paths)
	if err == nil && len(all) == 0 && len(s.parsed.any) > 0 {
		s.parsed.all, s.parsed.prune, s.partial = []condition{{any: s.parsed.any}}, true, true
		all, err = s.best(ctx, tx, scope, paths)
	}
	if err != nil || s.q.Text == "" {
		return all, err
	}
	if err := s.noteWhole(ctx, tx, all); err != nil {
		return nil, err
	}
	s.rank(all)
	return all, nil
}

// best returns the best rows that meet the conditions, up to the limit.
func (s *searching) best(ctx context.Context, tx *sql.Tx, scope string, paths map[int64][]string) (all []found, err error) {
	for _, most := range s.most() {
		s.read = 0
		candidates, err := s.candidates(ctx, tx, scope, most)
		if err != nil {
			return nil, err
		}
		all, err = s.choose(ctx, tx, candidates, paths)
		if err != nil || most < 0 || s.read < most || len(all) >= max(ranked, s.q.Limit) {
			return all, err
		}
	}
	return all, nil
}

// most returns how many of the best candidates to read, -1 for all: first those that suffice as a rule, since the whole
// order costs more.
func (s *searching) most() []int {
	q := s.q
	filtered := s.speech || len(q.Roles)+len(q.Types)+len(q.Labels) > 0 || len(q.Contexts) > maxScope || !q.Since.IsZero() || !q.Until.IsZero()
	if q.Limit == 0 || filtered || q.Branch+q.Kind+q.Project+q.Path+q.Cursor != "" {
		return []int{-1}
	}
	return []int{3*ranked + 4*q.Limit, -1}
}

// open returns the open index.
func (x *Index) open(ctx context.Context) (*database, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.db, x.reopen(ctx)
}

// maxScope bounds the contexts of an expression; more contexts are filtered.
const maxScope = 100

// scope returns the expression for the contexts of the query, empty for all contexts.
func (s *searching) scope(ctx context.Context, tx *sql.Tx) (string, error) {
	if len(s.q.Contexts) == 0 || len(s.q.Contexts) > maxScope {
		return "", nil
	}
	var terms []string
	for _, id := range s.q.Contexts {
		row, err := rowOf(ctx, tx, id)
		if err != nil {
			return "", err
		}
		if row != nil {
			terms = append(terms, `"`+scope(row.n)+`"`)
		}
	}
	return "(" + strings.Join(terms, " OR ") + ")", nil
}

const columns = "m.n, m.line, m.position, m.id, m.sum, m.at, m.role, m.type, m.voice, m.text"

// candidates returns the query for the messages with the terms, best first, at most so many.
func (s *searching) candidates(ctx context.Context, tx *sql.Tx, scope string, most int) (rows *sql.Rows, err error) {
	if s.q.Text == "" {
		return tx.QueryContext(ctx, "SELECT "+columns+", 0.0 FROM messages m ORDER BY m.at DESC, m.n DESC")
	}
	if s.parsed.prune {
		if _, err := s.pruneTerms(ctx, tx, scope); err != nil {
			return nil, err
		}
	}
	expression := match(s.parsed.all, s.stems)
	if scope != "" {
		expression = scope + " AND (" + expression + ")"
	}
	// The rank column would do, but FTS5 sorts it with all positions of the words.
	return tx.QueryContext(ctx, "SELECT "+columns+", t.r FROM (SELECT rowid AS n, bm25(terms, "+s.weights+") AS r FROM terms "+
		"WHERE terms MATCH ? ORDER BY r, n LIMIT ?) t CROSS JOIN messages m ON m.n = t.n ORDER BY t.r, t.n", expression, most)
}

// pruneTerms keeps the rarest terms of a query in plain language. It returns the number of messages with each, up to maxQuestion + 1.
func (s *searching) pruneTerms(ctx context.Context, tx *sql.Tx, scope string) (map[string]int, error) {
	terms := s.parsed.all[0].any
	slices.SortFunc(terms, func(a, b term) int { return strings.Compare(a.match(s.stems), b.match(s.stems)) })
	terms = slices.CompactFunc(terms, func(a, b term) bool { return a.match(s.stems) == b.match(s.stems) })
	counts := map[string]int{}
	for i := range terms {
		expression := terms[i].match(s.stems)
		query := expression
		if scope != "" {
			query = scope + " AND " + query
		}
		var n int
		err := tx.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM terms WHERE terms MATCH ? LIMIT ?)", query, maxQuestion+1).Scan(&n)
		if err != nil {
			return nil, err
		}
		counts[expression] = n
	}
	count := func(t term) int { return counts[t.match(s.stems)] }
	sort.SliceStable(terms, func(i, j int) bool { return count(terms[i]) < count(terms[j]) })
	total, keep := 0, 0
	for keep < len(terms) {
		total += count(terms[keep])
		if total > maxQuestion && keep > 0 && count(terms[keep-1]) > 0 {
			break
		}
		keep++
	}
	s.parsed.all[0].any = terms[:keep]
	return counts, nil
}

// paths returns the messages with a path like the pattern of the query, nil without one.
func (s *searching) paths(ctx context.Context, tx *sql.Tx) (map[int64][]string, error) {
	if s.q.Path == "" {
		return nil, nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT message, path FROM paths WHERE path GLOB ?1 OR path GLOB '*/' || ?1", s.q.Path)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[int64][]string{}
	for rows.Next() {
		var n int64
		var path string
		if err := rows.Scan(&n, &path); err != nil {
			return nil, err
		}
		all[n] = append(all[n], path)
	}
	return all, rows.Err()
}

// choose returns the rows that meet the other conditions.
func (s *searching) choose(ctx context.Context, tx *sql.Tx, rows *sql.Rows, paths map[int64][]string) (all []found, err error) {
	defer rows.Close()
	for rows.Next() {
		var f found
		var id []byte
		s.read++
		if err := rows.Scan(&f.n, &f.line, &f.position, &id, &f.sum, &f.at, &f.role, &f.kind, &f.voice, &f.text, &f.score); err != nil {
			return nil, err
		}
		copy(f.id[:], id)
		if f.score = -f.score; s.q.Text == "" {
			f.score = 0
		}
		if s.q.Path != "" && paths[f.n] == nil {
			continue
		}
		f.paths = paths[f.n]
		ok, err := s.meets(ctx, tx, &f)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if all = append(all, f); s.q.Text+s.q.Cursor == "" && len(all) == s.q.Limit {
			break
		}
	}
	return all, rows.Err()
}

// meets reports whether a row meets the conditions that are not in the index of terms.
func (s *searching) meets(ctx context.Context, tx *sql.Tx, f *found) (bool, error) {
	q := s.q
	if len(q.Roles) > 0 && !slices.Contains(q.Roles, f.role) || len(q.Types) > 0 && !slices.Contains(q.Types, f.kind) ||
		!q.Since.IsZero() && f.at < q.Since.UnixNano() || !q.Until.IsZero() && f.at >= q.Until.UnixNano() ||
		s.talk && message.IsBookkeeping(f.role) || s.speech && (f.voice == callVoice || f.voice == resultVoice) {
		return false, nil
	}
	p, err := s.names.place(ctx, tx, f.line)
	if err != nil {
		return false, err
	}
	f.place, f.branches = p, p.names.showing(p.line, f.position)
	f.branchKind = p.names.kindOf(f.branches)
	if len(q.Contexts) > 0 && !slices.Contains(q.Contexts, p.context) || slices.Contains(q.Except, p.context) || !s.isKind(f) ||
		q.Project != "" && p.names.Labels["project"] != q.Project {
		return false, nil
	}
	for key, value := range q.Labels {
		if is, ok := p.names.Labels[key]; !ok || is != value {
			return false, nil
		}
	}
	if q.Branch != "" {
		return slices.Contains(f.branches, q.Branch), nil
	}
	return len(f.branches) > 0 || q.Removed, nil
}

// isKind reports whether messages of a context, or of branches, of this kind are wanted. A context that the query names
// may have any, and so may the branches of messages whose role it names.
func (s *searching) isKind(f *found) bool {
	kind := s.q.Kind
	if kind == "" {
		return (f.branchKind == "" || slices.Contains(s.q.Roles, f.role)) && (f.place.names.Kind == "" || len(s.q.Contexts) > 0)
	}
	return kind == "*" || kind == f.place.names.Kind || kind == f.branchKind
}
