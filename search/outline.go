package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/outline"
	"github.com/google/uuid"
)

// spread is a part of a line that a line shows, by the number of the line in the index.
type spread struct {
	line     int64
	from, to int64
}

// spreads returns what a line of a context shows at the positions from to, without to. Lines that the index does not
// have are left out.
func (x *Index) spreads(ctx context.Context, id, line uuid.UUID, from, to int64) (*database, []spread, error) {
	db, n, row, err := x.namesOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	all, err := db.spreads(ctx, row, n.stretches(line, from), to)
	return db, all, err
}

// spreads are the stretches of the context with a number, up to a position.
func (db *database) spreads(ctx context.Context, context int64, stretches []stretch, to int64) (all []spread, err error) {
	for _, s := range stretches {
		is := spread{from: s.from, to: min(s.to, to)}
		err := db.QueryRowContext(ctx, "SELECT n FROM lines WHERE context = ? AND id = ?", context, s.line[:]).Scan(&is.line)
		switch {
		case errors.Is(err, sql.ErrNoRows) || is.from >= is.to:
		case err != nil:
			return nil, err
		default:
			all = append(all, is)
		}
	}
	return all, nil
}

// Outline returns where the branch of a context with a line and a length has marks, as of the last update. It reads some
// 60 bytes for 64 messages. It fails with [ctxdir.ErrNotExist] if the index does not have the context.
func (x *Index) Outline(ctx context.Context, id, line uuid.UUID, length int64) (*outline.Branch, error) {
	db, all, err := x.spreads(ctx, id, line, 0, length)
	if err != nil {
		return nil, err
	}
	b := outline.NewBranch(length)
	for _, s := range all {
		rows, err := db.QueryContext(ctx, "SELECT n, prompts, replies, calls, edits, failures, breaks FROM strips "+
			"WHERE line = ? AND n >= ? AND n <= ? ORDER BY n", s.line, s.from/outline.StripLength, (s.to-1)/outline.StripLength)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var n int64
			var v [outline.MarkCount]int64
			if err := rows.Scan(&n, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			var strip outline.Strip
			for i := range v {
				strip[i] = uint64(v[i])
			}
			b.Add(n, strip, s.from, s.to)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Notes yields the notes of the messages that a line of a context has at the positions from to, without to, in order. It
// has none of messages that cannot be read. It fails with [ctxdir.ErrNotExist] if the index does not have the context.
func (x *Index) Notes(ctx context.Context, id, line uuid.UUID, from, to int64) iter.Seq2[outline.Note, error] {
	return func(yield func(outline.Note, error) bool) {
		db, all, err := x.spreads(ctx, id, line, from, to)
		for i := range all {
			if err == nil {
				var more bool
				if more, err = db.notes(ctx, all[i], yield); !more {
					return
				}
			}
		}
		if err != nil {
			yield(outline.Note{}, err)
		}
	}
}

func (db *database) notes(ctx context.Context, s spread, yield func(outline.Note, error) bool) (more bool, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, id, at, marks, calls, failed, added, removed, begins FROM messages "+
		"WHERE line = ? AND position >= ? AND position < ? ORDER BY position", s.line, s.from, s.to)
	if err != nil {
		return true, err
	}
	defer rows.Close()
	for rows.Next() {
		var n outline.Note
		var id, calls []byte
		var at int64
		if err := rows.Scan(&n.Position, &id, &at, &n.Marks, &calls, &n.Failed, &n.Added, &n.Removed, &n.Text); err != nil {
			return true, err
		}
		copy(n.ID[:], id)
		n.At, n.Calls = time.Unix(0, at).UTC(), unpackCalls(calls)
		if !yield(n, nil) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// Turns returns turns of a branch of a context, whose outline is b: those with the numbers from to, without to.
func (x *Index) Turns(ctx context.Context, id, line uuid.UUID, b *outline.Branch, from, to int64) ([]outline.Turn, error) {
	from, to = max(from, 0), min(to, b.Turns()+1)
	if from >= to {
		return nil, nil
	}
	all := make([]outline.Turn, 0, to-from)
	for n := from; n < to; n++ {
		all = append(all, outline.NewTurn(b, n))
	}
	at := 0
	for n, err := range x.Notes(ctx, id, line, all[0].From, all[len(all)-1].To) {
		if err != nil {
			return nil, err
		}
		for n.Position >= all[at].To {
			at++
		}
		all[at].Add(&n)
	}
	return all, nil
}

// Brief is a branch in a few words.
type Brief struct {
	Added, Removed int64  // lines, by calls that change files: as they were called
	Answer         string // the beginning of the newest reply with a text
}

// maxBack bounds the messages in which the newest reply is looked for.
const maxBack = 1000

// Brief returns what the index knows of a branch of a context, as of the last update. It fails with [ctxdir.ErrNotExist]
// if the index does not have the branch.
func (x *Index) Brief(ctx context.Context, id uuid.UUID, branch string) (is Brief, err error) {
	db, n, row, err := x.namesOf(ctx, id)
	if err != nil {
		return is, err
	}
	i := slices.IndexFunc(n.Branches, func(b branchName) bool { return b.Name == branch })
	if i < 0 {
		return is, fmt.Errorf("%w: branch %q of context %s is missing from the search index", ctxdir.ErrNotExist, branch, id)
	}
	all, err := db.spreads(ctx, row, n.stretches(n.Branches[i].Line, 0), math.MaxInt64)
	if err != nil {
		return is, err
	}
	for _, s := range slices.Backward(all) {
		if err := db.brief(ctx, s, &is); err != nil {
			return is, err
		}
	}
	return is, nil
}

// brief adds a part of a line, the newest part first. The strip that the part ends in may have other messages, too.
func (db *database) brief(ctx context.Context, s spread, is *Brief) error {
	whole := s.to / outline.StripLength * outline.StripLength
	var added, removed int64
	err := db.QueryRowContext(ctx, "SELECT a.added + b.added, a.removed + b.removed FROM "+
		"(SELECT coalesce(sum(added), 0) AS added, coalesce(sum(removed), 0) AS removed FROM strips WHERE line = ?1 AND n < ?2 / 64) a, "+
		"(SELECT coalesce(sum(added), 0) AS added, coalesce(sum(removed), 0) AS removed FROM messages "+
		"WHERE line = ?1 AND position >= ?2 AND position < ?3) b",
		s.line, whole, s.to).Scan(&added, &removed)
	is.Added, is.Removed = is.Added+added, is.Removed+removed
	if err != nil || is.Answer != "" {
		return err
	}
	err = db.QueryRowContext(ctx, "SELECT begins FROM (SELECT position, marks, begins FROM messages WHERE line = ? AND position < ? "+
		"ORDER BY position DESC LIMIT ?) WHERE marks & 2 AND begins <> '' ORDER BY position DESC LIMIT 1",
		s.line, s.to, maxBack).Scan(&is.Answer)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err
}

// FindTurns returns the numbers of the turns whose prompts begin with a text that has the words of a filter, each as a
// part of a word and in any case: the first ones from a number on, at most so many.
func (x *Index) FindTurns(
	ctx context.Context, id, line uuid.UUID, b *outline.Branch, filter string, from int64, most int,
) ([]int64, error) {

	begin, _ := b.Turn(max(from, 1))
	db, spreads, err := x.spreads(ctx, id, line, begin, b.Length())
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(filter))
	var all []int64
	for _, s := range spreads {
		more, err := db.prompts(ctx, s, func(position int64, text string) bool {
			text = strings.ToLower(text)
			for _, word := range words {
				if !strings.Contains(text, word) {
					return true
				}
			}
			if n := b.TurnAt(position); n > 0 && (len(all) == 0 || all[len(all)-1] != n) {
				all = append(all, n)
			}
			return len(all) < most
		})
		if err != nil || !more {
			return all, err
		}
	}
	return all, nil
}

// prompts yields the beginnings of the prompts of a part of a line.
func (db *database) prompts(ctx context.Context, s spread, yield func(position int64, text string) bool) (more bool, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, begins FROM messages INDEXED BY prompts "+
		"WHERE marks & 1 AND line = ? AND position >= ? AND position < ? ORDER BY position", s.line, s.from, s.to)
	if err != nil {
		return true, err
	}
	defer rows.Close()
	for rows.Next() {
		var position int64
		var text string
		if err := rows.Scan(&position, &text); err != nil {
			return true, err
		}
		if !yield(position, text) {
			return false, nil
		}
	}
	return true, rows.Err()
}
