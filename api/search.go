package api

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

const (
	// found and maxFound are the default and the largest number of hits in a page.
	found    = 20
	maxFound = 200
)

type hitList struct {
	Hits   []record.Hit `json:"hits"`
	Next   string       `json:"next,omitempty"`
	Behind int64        `json:"behind"` // commits that the index does not have yet
}

// contextsOf returns the ids of the contexts in a parameter that may be repeated.
func (v view) contextsOf(ctx context.Context, p *parameters) (ids []uuid.UUID, err error) {
	for _, ref := range p.all("context") {
		id, err := v.resolve(ctx, short(ref))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func labelsOf(p *parameters) (labels map[string]string) {
	for _, label := range p.all("label") {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			p.fail("label", "%q is not KEY=VALUE", short(label))
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels
}

// conditionsOf reads the conditions that searches and lists of files have in common.
//
// In a limited view these have all contexts that are there. nothing says that there is none.
func (v view) conditionsOf(ctx context.Context, p *parameters) (q search.Query, nothing bool, err error) {
	q = search.Query{
		Text: p.text("q"), Phrase: p.yes("phrase"), Branch: p.text("branch"), Roles: p.all("role"), Types: p.all("type"), Kind: p.text("kind"),
		Labels: labelsOf(p), Project: p.text("project"), Since: p.time("since"), Until: p.time("until"), Path: p.text("path"),
		Removed: p.yes("removed"), Bookkeeping: p.yes("bookkeeping"), Cursor: p.text("cursor"),
	}
	if q.Contexts, err = v.contextsOf(ctx, p); err == nil {
		q.Contexts, nothing, err = v.among(ctx, q.Contexts, q.Kind)
	}
	return q, nothing, err
}

func (x *Server) search(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	v := x.store.of(r)
	q, nothing, err := v.conditionsOf(r.Context(), p)
	if err != nil {
		return err
	}
	q.Limit = p.limit(found, maxFound)
	if q.Text == "" && q.Path == "" {
		p.fail("q", "a search needs q or path")
	}
	if err := p.done(); err != nil {
		return err
	}
	if nothing {
		return sendDocument(w, http.StatusOK, hitList{Hits: []record.Hit{}})
	}
	index, behind, err := x.index.current(r.Context(), q.Contexts...)
	if err != nil {
		return err
	}
	all := hitList{Hits: []record.Hit{}, Behind: behind}
	for hit, err := range index.Search(r.Context(), q) {
		if err != nil {
			return err
		}
		if v.limited {
			hit.Score = 0 // the weight of a word tells how many messages of the whole store have it
		}
		all.Hits = append(all.Hits, record.OfHit(&hit))
		all.Next = hit.Cursor
	}
	if len(all.Hits) < q.Limit {
		all.Next = ""
	}
	return sendDocument(w, http.StatusOK, all)
}

const (
	// matched and maxMatched are the default and the largest number of lines of a grep.
	matched    = 1000
	maxMatched = 100_000
	// maxExpression bounds a regular expression, in bytes.
	maxExpression = 4 << 10
)

// grep sends the lines that match as JSON Lines, as it finds them.
func (x *Server) grep(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	text := p.text("regex")
	if p.yes("fixed") {
		text = regexp.QuoteMeta(text)
	}
	if p.yes("ignore_case") {
		text = "(?i)" + text
	}
	o := search.GrepOptions{Branch: p.text("branch"), Bookkeeping: p.yes("bookkeeping")}
	limit := p.limit(matched, maxMatched)
	var err error
	v, nothing := x.store.of(r), false
	if o.Contexts, err = v.contextsOf(r.Context(), p); err == nil {
		o.Contexts, nothing, err = v.among(r.Context(), o.Contexts, "")
	}
	if err != nil {
		return err
	}
	if len(text) > maxExpression {
		p.fail("regex", "exceeds the limit of %d bytes", maxExpression)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		p.fail("regex", "%v", err)
	}
	if text == "" {
		p.fail("regex", "it is missing")
	}
	if err := p.done(); err != nil {
		return err
	}
	w.Header().Set("Content-Type", ndjson)
	if nothing {
		return nil
	}
	out := bufio.NewWriterSize(w, flushed)
	for m, err := range search.Grep(r.Context(), v.s, expression, o) {
		switch {
		case err != nil && (m.Context == uuid.Nil || r.Context().Err() != nil):
			return err
		case err != nil:
			err = writeLine(out, contextFailure{"failed", m.Context.String(), record.Problem(err)})
		default:
			err = writeLine(out, record.OfMatch(&m))
			limit--
		}
		if err != nil || limit == 0 {
			break
		}
	}
	return out.Flush()
}

// contextFailure says that a context could not be read.
type contextFailure struct {
	Record  string `json:"record"`
	Context string `json:"context"`
	Error   string `json:"error"`
}

func writeLine(out *bufio.Writer, v any) error {
	_, err := out.Write(append(record.Encode(v), '\n'))
	return err
}
