package search

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// RankQuery says which messages to rank.
type RankQuery struct {
	Terms    []string          // see [TermCutter.Query]
	Dates    []Date            // a message of such a date counts as one with a term
	Contexts []uuid.UUID       // in these contexts; empty for all without a kind
	Except   []uuid.UUID       // not in these contexts
	Branch   string            // shown by a branch of this name
	Labels   map[string]string // in contexts with all these labels
	Speech   bool              // without messages that only call tools, and without what tools answer
	Limit    int
}

// Date is a date in UTC, of which a part may be unknown and 0.
type Date struct{ Year, Month, Day int }

// Ranked is the place of a message, with its score.
type Ranked struct {
	Context  uuid.UUID
	Title    string // of the context
	Branches []string
	Line     uuid.UUID
	Position int64
	ID       uuid.UUID
	At       time.Time // the message's own time, or that of its commit
	Score    float64
	Dated    float64 // the part of Score for the date of the message
}

// Ranking is the result of [Index.Rank].
type Ranking struct {
	Messages []Ranked           // best first
	Weights  map[string]float64 // the weight of each term, larger for a rare one
}

// Rank returns the places of the messages that have any of the terms, best first, as of the last update. It reads no
// message. It ranks up to about 5,000 messages: the words that would make it more, the most frequent ones, are left out.
// Records of bookkeeping are not messages here.
func (x *Index) Rank(ctx context.Context, q RankQuery) (*Ranking, error) {
	of := &Query{Contexts: q.Contexts, Except: q.Except, Branch: q.Branch, Labels: q.Labels, Limit: q.Limit, Text: " "}
	s := &searching{x: x, q: of, stems: stemmer{}, talk: true, speech: q.Speech, weights: byWords}
	db, err := x.open(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it was only read
	if s.names, err = x.current(ctx, tx); err != nil {
		return nil, err
	}
	scope, err := s.scope(ctx, tx)
	r := &Ranking{Weights: map[string]float64{}}
	if err != nil || scope == "()" {
		return r, err
	}
	inside, args, err := s.inside(ctx, tx)
	if err != nil {
		return nil, err
	}
	var total int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM messages m"+inside, args...).Scan(&total); err != nil {
		return nil, err
	}
	all, err := s.rankTerms(ctx, tx, q.Terms, scope, total, r)
	dated := map[int64]float64{}
	if err == nil {
		all, err = s.addDated(ctx, tx, q.Dates, total, all, dated)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		f := &all[i]
		r.Messages = append(r.Messages, Ranked{
			Context: f.place.context, Title: f.place.names.Title, Branches: f.branches, Line: f.place.line, Position: f.position, ID: f.id,
			At: time.Unix(0, f.at).UTC(), Score: f.score, Dated: dated[f.n],
		})
	}
	return r, nil
}

// maxRankTerms bounds the terms of a ranking.
const maxRankTerms = 100

// rankTerms returns the messages with any of the terms, and notes the weights of the terms.
func (s *searching) rankTerms(ctx context.Context, tx *sql.Tx, terms []string, scope string, total int, r *Ranking) ([]found, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	var any []term
	for _, t := range terms[:min(len(terms), maxRankTerms)] {
		any = append(any, term{words: []string{t}, stem: true, prefix: isSpaceless(first(t)) && utf8.RuneCountInString(t) == 1})
	}
	s.parsed = query{all: []condition{{any: slices.Clone(any)}}, prune: true}
	counts, err := s.pruneTerms(ctx, tx, scope)
	if err != nil {
		return nil, err
	}
	for i := range any {
		r.Weights[any[i].words[0]] = weight(total, counts[any[i].match(s.stems)])
	}
	s.parsed.prune = false
	all, err := s.best(ctx, tx, scope, nil)
	return all[:min(len(all), cmp.Or(s.q.Limit, len(all)))], err
}

// weight is the weight of a term that n of all messages have.
func weight(all, n int) float64 {
	n = min(n, all)
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

// inside returns the condition for the rows of messages in the contexts of the query.
func (s *searching) inside(ctx context.Context, tx *sql.Tx) (where string, args []any, err error) {
	if len(s.q.Contexts) == 0 {
		return "", nil, nil
	}
	for _, id := range s.q.Contexts {
		row, err := rowOf(ctx, tx, id)
		if err != nil {
			return "", nil, err
		}
		if row != nil {
			args = append(args, row.n)
		}
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(args)), ",")
	return " WHERE m.line IN (SELECT n FROM lines WHERE context IN (" + marks + "))", args, nil
}

// addDated adds the messages of some dates, and notes what their dates score. Each part of a date counts as a term.
func (s *searching) addDated(
	ctx context.Context, tx *sql.Tx, dates []Date, total int, all []found, scores map[int64]float64,
) ([]found, error) {
	at := make(map[int64]int, len(all))
	for i := range all {
		at[all[i].n] = i
	}
	for _, d := range dates {
		for _, c := range d.conditions() {
			inside, args, err := s.inside(ctx, tx)
			if err != nil {
				return nil, err
			}
			where := " WHERE "
			if inside != "" {
				where = inside + " AND "
			}
			rows, err := tx.QueryContext(ctx, "SELECT "+columns+", 0.0 FROM messages m"+where+c.where+" ORDER BY m.n LIMIT ?",
				append(append(args, c.args...), maxQuestion)...)
			if err != nil {
				return nil, err
			}
			dated, err := s.choose(ctx, tx, rows, nil)
			if err != nil {
				return nil, err
			}
			w := weight(total, len(dated))
			for _, f := range dated {
				scores[f.n] += w
				if i, ok := at[f.n]; ok {
					all[i].score += w
				} else {
					f.score = w
					at[f.n] = len(all)
					all = append(all, f)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.n, b.n)) })
	return all, nil
}

// dateCondition is a condition for the time of a message.
type dateCondition struct {
	where string
	args  []any
}

// conditions returns a condition for each known part of a date.
func (d Date) conditions() (all []dateCondition) {
	const part = "CAST(strftime(?, m.at / 1000000000, 'unixepoch') AS INTEGER) = ?"
	from := time.Date(d.Year, time.Month(max(d.Month, 1)), max(d.Day, 1), 0, 0, 0, 0, time.UTC)
	between := func(until time.Time) {
		all = append(all, dateCondition{"m.at >= ? AND m.at < ?", []any{from.UnixNano(), until.UnixNano()}})
	}
	switch {
	case d.Year != 0 && d.Month != 0 && d.Day != 0:
		between(from.AddDate(0, 0, 1))
		fallthrough
	case d.Year != 0 && d.Month != 0:
		from = time.Date(d.Year, time.Month(d.Month), 1, 0, 0, 0, 0, time.UTC)
		between(from.AddDate(0, 1, 0))
	case d.Year != 0:
		between(from.AddDate(1, 0, 0))
	case d.Month != 0:
		all = append(all, dateCondition{part, []any{"%m", d.Month}})
		if d.Day != 0 {
			all = append(all, dateCondition{part + " AND " + part, []any{"%m", d.Month, "%d", d.Day}})
		}
	}
	return all
}

// PathUse says that a message attaches, reads or writes a file, or has its path as a word of a shell command.
type PathUse struct {
	Path     string
	Line     uuid.UUID
	Branches []string // that show the message
	Position int64
	ID       uuid.UUID
	At       time.Time
}

// Paths returns the files that the messages of a context name, the newest message first, up to a limit. branch restricts
// them to messages that it shows.
func (x *Index) Paths(ctx context.Context, id uuid.UUID, branch string, limit int) (all []PathUse, err error) {
	db, err := x.open(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it was only read
	names, err := x.current(ctx, tx)
	if err != nil {
		return nil, err
	}
	// The view paths would be made for the whole index.
	rows, err := tx.QueryContext(ctx, "SELECT DISTINCT f.path, m.line, m.position, m.id, m.at, m.role FROM messages m "+
		"JOIN files f ON f.message = m.n WHERE m.line IN (SELECT l.n FROM lines l JOIN contexts c ON c.n = l.context WHERE c.id = ?) "+
		"ORDER BY m.position DESC, m.line, f.path", id[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() && len(all) < limit {
		var u PathUse
		var line, at int64
		var of []byte
		var role string
		if err := rows.Scan(&u.Path, &line, &u.Position, &of, &at, &role); err != nil {
			return nil, err
		}
		p, err := names.place(ctx, tx, line)
		if err != nil {
			return nil, err
		}
		u.Branches = p.names.showing(p.line, u.Position)
		if message.IsBookkeeping(role) || len(u.Branches) == 0 || branch != "" && !slices.Contains(u.Branches, branch) {
			continue
		}
		copy(u.ID[:], of)
		u.Line, u.At = p.line, time.Unix(0, at).UTC()
		all = append(all, u)
	}
	return all, rows.Err()
}
