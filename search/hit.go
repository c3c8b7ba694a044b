package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
)

// hitResult is the result of reading the message of a row.
type hitResult struct {
	hit Hit
	ok  bool
	err error
}

// hits reads the messages of some rows at the same time.
func (s *searching) hits(ctx context.Context, rows []found) []hitResult {
	all := make([]hitResult, len(rows))
	var group sync.WaitGroup
	for i := range rows {
		group.Go(func() { all[i].hit, all[i].ok, all[i].err = s.hit(ctx, &rows[i]) })
	}
	group.Wait()
	return all
}

// hit reads the message of a row. ok is false if the message is gone or, when it changed since the last update, has
// none of the words any more.
func (s *searching) hit(ctx context.Context, f *found) (h Hit, ok bool, err error) {
	var m *ctxdir.Message
	var current bool
	err = s.x.store.Use(ctx, f.place.context, func(c *ctxdir.Context) (err error) {
		m, current, err = readMessage(ctx, c, f)
		return err
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return h, false, nil
	}
	if err != nil || m == nil || m.Unavailable != nil {
		return h, false, err
	}
	h = Hit{
		Context: f.place.context, Title: f.place.names.Title, Labels: f.place.names.Labels, Branches: f.branches, Kind: f.branchKind,
		Line: m.Line, Position: m.Position, ID: m.ID, Role: m.Role, Type: m.Type, At: time.Unix(0, f.at).UTC(), Paths: f.paths, Score: f.score,
		Partial: f.partial,
	}
	after := cursor{score: f.score, at: f.at, n: f.n}
	h.Cursor = after.encode()
	marked := s.snippet(ctx, m, &h)
	return h, marked || current || s.q.Text == "", nil
}

// readMessage reads the message of a row, nil if the store has none. current says that it is the version of the row.
func readMessage(ctx context.Context, c *ctxdir.Context, f *found) (m *ctxdir.Message, current bool, err error) {
	line, err := c.Branch(f.place.line.String())
	if err != nil {
		return nil, false, err
	}
	all, err := line.Range(ctx, f.position, f.position+1)
	if err != nil || len(all) == 0 || all[0].ID != f.id {
		return nil, false, err
	}
	m = all[0]
	return m, sumOf(m.ID, m.StoredAt) == f.sum && !m.Edited, nil
}

// mark is a word of a text that a term matches.
type mark struct {
	from, to int
	term     int
}

// snippet sets pointer, snippet and marks of a hit: the place in the text that has most of the terms. It reports
// whether there is one.
func (s *searching) snippet(ctx context.Context, m *ctxdir.Message, h *Hit) bool {
	var terms []term
	for _, c := range s.parsed.all {
		if !c.not {
			terms = append(terms, c.any...)
		}
	}
	cutter := cutters.Get().(*cutter)
	defer cutters.Put(cutter)
	finder := newFinder(terms, cutter.stems)
	best := -1
	eachSearched(ctx, m, isText, func(t text) bool {
		value := inner(t.value)
		marks := finder.marks(value)
		if n := distinct(marks); n > best {
			best, h.Pointer = n, t.pointer
			h.Snippet, h.Marks = cutSnippet(value, marks)
		}
		return best < len(terms)
	})
	return best > 0
}

// finder finds the words that terms match.
type finder struct {
	terms []term
	stems stemmer
	by    map[string]int // the number of a term of one word, by its stem, or by the word itself behind a quotation mark
	other []int          // terms that are phrases or beginnings
}

func newFinder(terms []term, stems stemmer) *finder {
	f := &finder{terms: terms, stems: stems, by: map[string]int{}}
	for i := range terms {
		switch t := &terms[i]; {
		case len(t.words) > 1 || t.prefix:
			f.other = append(f.other, i)
		case t.exact:
			f.by[`"`+t.words[0]] = i
		default:
			f.by[stems.stem(t.words[0])] = i
		}
	}
	return f
}

// marks returns the words of a text that terms match, in order.
func (f *finder) marks(value string) (marks []mark) {
	var all []word
	words(value, func(w word) {
		if len(f.other) > 0 {
			all = append(all, w)
		}
		if term, ok := f.match(value, w); ok {
			marks = append(marks, mark{w.from, w.to, term})
		}
	})
	for i := range all {
		for _, term := range f.other {
			if to := f.phraseAt(value, all[i:], &f.terms[term]); to > 0 {
				marks = append(marks, mark{all[i].from, to, term})
			}
		}
	}
	return marks
}

// match returns the term of one word that a word matches.
func (f *finder) match(value string, w word) (term int, ok bool) {
	if term, ok = f.by[f.stems.stem(w.term)]; ok {
		return term, true
	}
	if term, ok = f.by[`"`+w.term]; ok || !w.parts {
		return term, ok
	}
	parts(value[w.from:w.to], func(part string) {
		if !ok {
			term, ok = f.by[f.stems.stem(part)]
		}
	})
	return term, ok
}

// phraseAt returns the end of a phrase at the beginning of the words, 0 if it is not there.
func (f *finder) phraseAt(value string, all []word, t *term) int {
	last := len(t.words) - 1
	if len(all) <= last {
		return 0
	}
	for i := range last {
		if all[i].term != t.words[i] {
			return 0
		}
	}
	w := all[last]
	if w.term == t.words[last] || t.prefix && strings.HasPrefix(w.term, t.words[last]) {
		return w.to
	}
	found := 0
	if last == 0 && t.prefix && w.parts {
		parts(value[w.from:w.to], func(part string) {
			if strings.HasPrefix(part, t.words[0]) {
				found = w.to
			}
		})
	}
	return found
}

// distinct returns the number of terms that the marks have.
func distinct(marks []mark) int {
	terms := map[int]bool{}
	for _, m := range marks {
		terms[m.term] = true
	}
	return len(terms)
}

// Lengths of a snippet, in bytes.
const (
	snippetLength = 200
	snippetBefore = 60 // before the first mark
)

// cutSnippet returns the part of a text with most of the terms, on one line, and its marks.
func cutSnippet(value string, marks []mark) (string, [][2]int) {
	first, most := 0, 0
	for i := range marks {
		end := i
		for end < len(marks) && marks[end].to-marks[i].from <= snippetLength-snippetBefore {
			end++
		}
		if n := distinct(marks[i:end]); n > most {
			first, most = i, n
		}
	}
	from := 0
	if len(marks) > 0 {
		from = boundary(value, marks[first].from-snippetBefore)
	}
	to := boundary(value, from+snippetLength)
	if to < len(value) { // end with a word
		end := from + strings.LastIndexFunc(value[from:to], unicode.IsSpace)
		if end > from+snippetLength*3/4 && !slices.ContainsFunc(marks, func(m mark) bool { return m.to > end && m.to <= to }) {
			to = end
		}
	}
	if from > 0 {
		if space := strings.IndexFunc(value[from:to], unicode.IsSpace); space >= 0 && from+space < marks[first].from {
			from += space
		}
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
	}
	at := make(map[int]int, to-from) // offsets in the snippet
	space := true
	for i, r := range value[from:to] {
		at[from+i] = b.Len()
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		b.WriteRune(r)
		space = false
	}
	at[to] = b.Len()
	var shown [][2]int
	for _, m := range marks {
		if m.from < from || m.to > to || len(shown) > 0 && at[m.from] < shown[len(shown)-1][1] {
			continue
		}
		shown = append(shown, [2]int{at[m.from], at[m.to]})
	}
	snippet := strings.TrimRight(b.String(), " ")
	if to < len(value) {
		snippet += " …"
	}
	return snippet, shown
}

// boundary returns the next beginning of a character at or after a byte of a text.
func boundary(value string, at int) int {
	at = min(max(at, 0), len(value))
	for at < len(value) && !utf8.RuneStart(value[at]) {
		at++
	}
	return at
}
