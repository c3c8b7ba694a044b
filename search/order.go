package search

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/google/uuid"
)

// Weights of the columns of terms for BM25: said, rest, and the stems of both.
const (
	bySpeech = "4.0, 1.0, 4.0, 1.0, 0.0" // what is said counts four times
	byWords  = "1.0, 1.0, 0.7, 0.7, 0.0"
)

// ranked is the number of the best messages by words that are ranked by voice and surroundings, too.
const ranked = 200

// voiceWeight is the factor for the words of a message by its voice. Of 30 judged questions over real conversations, a
// result of a tool answers one in five when it is the first hit, and what the model says four in five.
var voiceWeight = map[voice]float64{speechVoice: 1, otherVoice: 0.85, callVoice: 0.75, resultVoice: 0.65, promptVoice: 0.5}

// What is said around a message helps: a conversation comes back to its subject in other words.
const (
	aroundWeight  = 0.05 // of the messages around
	aroundMost    = 8    // positions before and behind
	aroundHalf    = 3.0  // positions by which the weight is halved
	contextWeight = 0.5  // of the best messages of the context
	contextBest   = 5    // so many
	quietWeight   = 0.5  // of messages that neither a person nor the model says, around others
)

// noteWhole notes which rows lack some of the words of a query in plain language.
func (s *searching) noteWhole(ctx context.Context, tx *sql.Tx, all []found) error {
	if len(s.parsed.words) == 0 || len(all) == 0 {
		for i := range all {
			all[i].partial = s.partial
		}
		return nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT rowid FROM terms WHERE terms MATCH ?", match(s.parsed.words, s.stems))
	if err != nil {
		return err
	}
	defer rows.Close()
	whole := map[int64]bool{}
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		whole[n] = true
	}
	for i := range all {
		all[i].partial = !whole[all[i].n]
	}
	return rows.Err()
}

// rank orders rows, the best by their words first, by voice and surroundings. The rest stays behind them.
func (s *searching) rank(all []found) {
	best, rest := all[:min(len(all), ranked)], all[min(len(all), ranked):]
	type lineOf struct {
		context uuid.UUID
		line    int64
	}
	scores := make([]float64, len(best)) // what a message gives to those around it
	ofContext, ofLine := map[uuid.UUID][]float64{}, map[lineOf][]int{}
	for i := range best {
		f := &best[i]
		switch f.voice {
		case speechVoice:
			scores[i] = f.score
		case promptVoice:
		default:
			scores[i] = quietWeight * f.score
		}
		ofContext[f.place.context] = append(ofContext[f.place.context], scores[i])
		at := lineOf{f.place.context, f.line}
		ofLine[at] = append(ofLine[at], i)
	}
	contexts := map[uuid.UUID]float64{}
	for id, of := range ofContext {
		slices.SortFunc(of, func(a, b float64) int { return cmp.Compare(b, a) })
		for _, score := range of[:min(len(of), contextBest)] {
			contexts[id] += score / contextBest
		}
	}
	for _, of := range ofLine {
		for _, i := range of {
			f := &best[i]
			around := 0.0
			for _, j := range of {
				if d := max(best[j].position-f.position, f.position-best[j].position); d > 0 && d <= aroundMost {
					around += scores[j] * math.Exp2(-float64(d-1)/aroundHalf)
				}
			}
			f.rank = voiceWeight[f.voice]*f.score + aroundWeight*around + contextWeight*contexts[f.place.context]
		}
	}
	bothFirst := len(s.parsed.words) == 2
	slices.SortStableFunc(best, func(a, b found) int {
		if bothFirst && a.partial != b.partial {
			if a.partial {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.n, b.n))
	})
	least := math.Inf(1)
	for i := range best {
		least = min(least, best[i].rank)
		best[i].score = least
	}
	for i := range rest {
		least = min(least, rest[i].score)
		rest[i].score = least
	}
}

// withoutCopies returns the rows without those whose words are the same as those of an earlier one.
func withoutCopies(all []found) []found {
	seen := make(map[int64]bool, len(all))
	return slices.DeleteFunc(all, func(f found) bool {
		if seen[f.text] {
			return true
		}
		seen[f.text] = true
		return false
	})
}

// page returns the rows behind the cursor, up to the limit.
func (s *searching) page(all []found) []found {
	if s.q.Cursor != "" {
		at := slices.IndexFunc(all, func(f found) bool { return f.n == s.after.n })
		if at < 0 { // the message is gone
			at = slices.IndexFunc(all, func(f found) bool {
				if s.q.Text == "" {
					return f.at < s.after.at
				}
				return f.score < s.after.score
			}) - 1
			if at < -1 {
				return nil
			}
		}
		all = all[at+1:]
	}
	if s.q.Limit > 0 {
		all = all[:min(len(all), s.q.Limit)]
	}
	return all
}
