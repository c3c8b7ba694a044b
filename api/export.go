package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/export"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/redact"
)

// exportRequest says what of a context to write. It is a body, and not a query: words that someone wants hidden have no
// place in a URL.
type exportRequest struct {
	Format      export.Format `json:"format"`
	Branch      string        `json:"branch"` // "" is the active one
	AllBranches bool          `json:"all_branches"`
	Bookkeeping bool          `json:"bookkeeping"`
	Tools       string        `json:"tools"` // none, short or full
	Replace     []redact.Kind `json:"replace"`
	Words       []string      `json:"words"`
}

// mediaTypes are the media types of files, and fileEnds the ends of their names.
var (
	mediaTypes = map[export.Format]string{
		export.HTML: "text/html; charset=utf-8", export.Markdown: "text/markdown; charset=utf-8", export.JSONL: ndjson,
	}
	fileEnds = map[export.Format]string{export.HTML: "html", export.Markdown: "md", export.JSONL: "jsonl"}
)

// withExport calls f with the request and the context in the path.
func (x *Server) withExport(r *http.Request, f func(e *exportRequest, c *ctxdir.Context) error) error {
	var e exportRequest
	if err := readDocument(r, &e); err != nil {
		return err
	}
	if e.AllBranches && e.Branch != "" {
		return invalid("branch: cannot be used with all_branches")
	}
	err := e.options(e.Replace).Check()
	if err == nil && mediaTypes[e.Format] == "" {
		err = export.ErrOptions
	}
	if err != nil {
		return badExport(err)
	}
	return x.withContext(r, func(c *ctxdir.Context) error { return f(&e, c) })
}

func (e *exportRequest) options(replace []redact.Kind) export.Options {
	o := export.Options{Format: e.Format, All: e.Bookkeeping, Tools: e.Tools}
	if len(replace)+len(e.Words) > 0 {
		o.Redact = &redact.Options{Kinds: replace, Words: e.Words}
	}
	return o
}

// badExport is a fault of the request in the words of the API.
func badExport(err error) error {
	if errors.Is(err, redact.ErrOptions) {
		return invalid("replace: expected some of key, token, mail, path, host, base64, word; words: expected at most %d of 1 to %d bytes",
			redact.MaxWords, redact.MaxWord)
	}
	return invalid("format: expected html, markdown or jsonl; tools: expected none, short or full")
}

// write writes the file of a request.
func (e *exportRequest) write(ctx context.Context, w io.Writer, c *ctxdir.Context, o export.Options) error {
	if e.AllBranches {
		return export.AllBranches(ctx, w, c, o)
	}
	b := c.Active()
	if e.Branch != "" {
		var err error
		if b, err = c.Branch(e.Branch); err != nil {
			return err
		}
	}
	return export.Branch(ctx, w, c, b, o)
}

// exportContext sends a file as it is written: memory does not grow with the messages. The file is anybody's text, so a
// browser must not show it as a page of this server.
func (x *Server) exportContext(w http.ResponseWriter, r *http.Request) error {
	return x.withExport(r, func(e *exportRequest, c *ctxdir.Context) error {
		h := w.Header()
		h.Set("Content-Type", mediaTypes[e.Format])
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="ctxdir-%s.%s"`, record.ID(c.ID()), fileEnds[e.Format]))
		out := bufio.NewWriterSize(w, flushed)
		if err := e.write(r.Context(), out, c, e.options(e.Replace)); err != nil {
			return err
		}
		return out.Flush()
	})
}

// exportPreview is what an export would replace.
type exportPreview struct {
	Kinds   []kindFound `json:"kinds"`   // all kinds, in the order of [redact.Kinds]
	Missing int64       `json:"missing"` // messages that the file does not have completely
}

type kindFound struct {
	Kind   redact.Kind  `json:"kind"`
	Count  int64        `json:"count"`
	Places []placeFound `json:"places"`
}

// placeFound is where something was found. The title and the name of a branch have no message.
type placeFound struct {
	ID       string `json:"id,omitempty"`
	Position *int64 `json:"position,omitempty"`
	Before   string `json:"before"`
	Text     string `json:"text"`
	After    string `json:"after"`
}

const (
	// placesShown is the number of places for each kind.
	placesShown = 2
	// excerpted bounds a text in a place, in bytes.
	excerpted = 60
)

// previewExport says what patterns of every kind find in a file, whatever the request replaces.
func (x *Server) previewExport(w http.ResponseWriter, r *http.Request) error {
	return x.withExport(r, func(e *exportRequest, c *ctxdir.Context) error {
		p := exportPreview{}
		at := map[redact.Kind]int{}
		for i, k := range redact.Kinds {
			p.Kinds, at[k] = append(p.Kinds, kindFound{k, 0, []placeFound{}}), i
		}
		o := e.options(redact.Kinds)
		o.Found = func(m *ctxdir.Message, text string, f redact.Finding) { p.Kinds[at[f.Kind]].add(m, text, f) }
		o.Missing = func(*ctxdir.Message, error) { p.Missing++ }
		if err := e.write(r.Context(), io.Discard, c, o); err != nil {
			return err
		}
		return sendDocument(w, http.StatusOK, p)
	})
}

// add counts a finding, and keeps the first one and the next one that has another text.
func (k *kindFound) add(m *ctxdir.Message, text string, f redact.Finding) {
	k.Count++
	full := len(k.Places) == placesShown
	if full && k.Places[0].Text != k.Places[1].Text {
		return
	}
	place := placeFound{
		Before: excerpt(text[:f.Start], true), Text: excerpt(text[f.Start:f.End], false), After: excerpt(text[f.End:], false),
	}
	if m != nil {
		place.ID, place.Position = m.ID.String(), &m.Position
	}
	if !full {
		k.Places = append(k.Places, place)
	} else if place.Text != k.Places[0].Text {
		k.Places[1] = place
	}
}

// excerpt is the beginning or the end of a text, in one line.
func excerpt(text string, end bool) string {
	cut := len(text) > excerpted
	if cut && end {
		text = text[len(text)-excerpted:]
		for text != "" && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	} else if cut {
		text = text[:excerpted]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	switch {
	case cut && end:
		return "…" + text
	case cut:
		return text + "…"
	}
	return text
}
