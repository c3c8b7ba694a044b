// Package baseline has the usual ways to choose what a model sees of a long conversation, to compare with package
// assemble, and statistics of what they find.
package baseline

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// Turn is a message as a baseline sees it.
type Turn struct {
	Text   string
	Role   string
	Result bool // of a tool
	Tokens int
}

// take joins turns in the given order of importance until the budget is full, and returns them in the order of the
// conversation.
func take(turns []Turn, order []int, budget int, skip bool) string {
	var chosen []int
	for _, i := range order {
		if turns[i].Tokens > budget {
			if skip {
				continue
			}
			break
		}
		budget -= turns[i].Tokens
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	var b strings.Builder
	for _, i := range chosen {
		b.WriteString(turns[i].Text + "\n")
	}
	return b.String()
}

func newestFirst(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	return order
}

// LastN returns the newest turns. A turn that is too large is passed over.
func LastN(turns []Turn, budget int) string {
	return take(turns, newestFirst(len(turns)), budget, true)
}

// Opencode returns the newest turns by opencode's rule: results of tools beyond the newest half of the budget are
// replaced with a note.
func Opencode(turns []Turn, budget int) string {
	pruned := slices.Clone(turns)
	results := 0
	for _, i := range newestFirst(len(turns)) {
		t := &pruned[i]
		if !t.Result {
			continue
		}
		if results += t.Tokens; results > budget/2 {
			t.Text, t.Tokens = "[Old tool result content cleared]", 8
		}
	}
	return LastN(pruned, budget)
}

// Codex returns the newest messages of the user, as Codex keeps them beside its summary.
func Codex(turns []Turn, budget int) string {
	var users []Turn
	for _, t := range turns {
		if t.Role == "user" && !t.Result {
			users = append(users, t)
		}
	}
	return LastN(users, budget)
}

// Random returns pieces of turns by chance.
func Random(turns []Turn, budget int, seed uint64) string {
	const piece, perToken = 400, 4
	var pieces []Turn
	for _, t := range turns {
		for at := 0; at < len(t.Text); at += piece {
			text := t.Text[at:min(at+piece, len(t.Text))]
			pieces = append(pieces, Turn{Text: text, Tokens: len(text)/perToken + 1})
		}
	}
	order := rand.New(rand.NewPCG(seed, 1)).Perm(len(pieces))
	return take(pieces, order, budget, true)
}

var word = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// Words returns the words of a text in lower case.
func Words(text string) []string { return word.FindAllString(strings.ToLower(text), -1) }

// Corpus is a conversation for BM25 over whole turns.
type Corpus struct {
	turns  []Turn
	counts []map[string]int
	length []int
}

// NewCorpus counts the words of turns.
func NewCorpus(turns []Turn) *Corpus {
	c := &Corpus{turns: turns}
	for _, t := range turns {
		counts, n := map[string]int{}, 0
		for _, w := range Words(t.Text) {
			counts[w]++
			n++
		}
		c.counts, c.length = append(c.counts, counts), append(c.length, n)
	}
	return c
}

// BM25 returns the first n turns that are best for a query, whole, until the budget is full.
func (c *Corpus) BM25(n int, query string, budget int) string {
	const k, b = 1.2, 0.75
	wanted, with, total := map[string]bool{}, map[string]int{}, 0
	for _, w := range Words(query) {
		wanted[w] = true
	}
	for i := range n {
		total += c.length[i]
		for w := range wanted {
			if c.counts[i][w] > 0 {
				with[w]++
			}
		}
	}
	average := max(float64(total)/float64(max(n, 1)), 1)
	scores := make([]float64, n)
	var order []int
	words := slices.Sorted(func(yield func(string) bool) {
		for w := range wanted {
			if !yield(w) {
				return
			}
		}
	})
	for i := range n {
		for _, w := range words {
			f := float64(c.counts[i][w])
			idf := math.Log(1 + (float64(n-with[w])+0.5)/(float64(with[w])+0.5))
			scores[i] += idf * f * (k + 1) / (f + k*(1-b+b*float64(c.length[i])/average))
		}
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(scores[y], scores[x]) })
	return take(c.turns, order, budget, true)
}

// Share is a share of cases, with the bounds of its 95 % interval.
type Share struct{ Value, From, To float64 }

// Estimate returns the share of cases that are true, and its interval by resampling groups of cases: those of one
// conversation depend on each other.
func Estimate(groups [][]bool) Share {
	return estimate(len(groups), func(i int) (sum, n int) {
		for _, hit := range groups[i] {
			sum += number(hit)
		}
		return sum, len(groups[i])
	})
}

// Lead returns by how much the share of ours is above that of theirs, in the same groups of the same cases, and its
// interval as of [Estimate]. What makes a case hard for both leaves it alone, so it is narrower than two of those.
func Lead(ours, theirs [][]bool) Share {
	return estimate(len(ours), func(i int) (sum, n int) {
		for k, hit := range ours[i] {
			sum += number(hit) - number(theirs[i][k])
		}
		return sum, len(ours[i])
	})
}

func number(hit bool) int {
	if hit {
		return 1
	}
	return 0
}

// estimate returns the mean over groups of cases, of which group gives the sum and the number.
func estimate(groups int, group func(i int) (sum, n int)) Share {
	const samples = 2000
	random := rand.New(rand.NewPCG(1, 2))
	mean := func(pick func(i int) int) float64 {
		sum, n := 0, 0
		for i := range groups {
			s, cases := group(pick(i))
			sum, n = sum+s, n+cases
		}
		return float64(sum) / float64(max(n, 1))
	}
	values := make([]float64, samples)
	for i := range values {
		values[i] = mean(func(int) int { return random.IntN(groups) })
	}
	slices.Sort(values)
	return Share{mean(func(i int) int { return i }), values[samples*25/1000], values[samples*975/1000]}
}

// String is a table's cell: percent, with the bounds.
func (s Share) String() string {
	return fmt.Sprintf("%.1f %% (%.1f–%.1f)", 100*s.Value, 100*s.From, 100*s.To)
}

// Points is the cell of a [Lead]: percentage points with their sign.
func (s Share) Points() string {
	return strings.ReplaceAll(fmt.Sprintf("%+.1f (%+.1f to %+.1f)", 100*s.Value, 100*s.From, 100*s.To), "-", "−")
}

// Alone makes each case a group.
func Alone(cases []bool) (groups [][]bool) {
	for _, c := range cases {
		groups = append(groups, []bool{c})
	}
	return groups
}
