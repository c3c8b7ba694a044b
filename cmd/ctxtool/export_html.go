package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/yuin/goldmark"
	gfm "github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// htmlExport writes a page that needs nothing else: no scripts, no other files, images inside. Content cannot add
// markup: texts are Markdown without raw HTML, everything else is escaped.
type htmlExport struct {
	w       io.Writer
	reading reading
	conversation
}

func newHTML(w io.Writer, read reading) exporter {
	e := &htmlExport{w: w, reading: read}
	e.all, e.read, e.show = read.all, true, e.turn
	return e
}

//go:embed page.css
var pageStyle string

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-%[4]s'">
<title>%[1]s</title>
<style>%[5]s</style>
</head>
<body>
<header>
<h1>%[1]s</h1>
<p>Context %[2]s, branch %[3]s</p>
</header>
`

func (e *htmlExport) begin(c *ctxdir.Metadata, branch string) error {
	sum := sha256.Sum256([]byte(pageStyle))
	_, err := fmt.Fprintf(e.w, pageHead, html.EscapeString(cmp.Or(c.Title, "Untitled")), c.ID, html.EscapeString(branch),
		base64.StdEncoding.EncodeToString(sum[:]), pageStyle)
	return err
}

func (e *htmlExport) message(_ context.Context, m *record.Loaded) error { return e.add(m) }

func (e *htmlExport) omitted() omissions { return omissions{} }

func (e *htmlExport) end() error {
	if err := e.turns.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "</body>\n</html>\n")
	return err
}

func (e *htmlExport) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	var b strings.Builder
	for _, p := range t.Parts {
		b.WriteString(e.part(m, &p))
	}
	switch {
	case m.Unavailable != nil:
		fmt.Fprintf(&b, "<p class=\"aside\">Unavailable: %s</p>\n", html.EscapeString(m.Unavailable.Error()))
	case b.Len() == 0 && len(t.Parts) > 0:
		return nil
	}
	classes := []string{}
	if t.Voice != "" {
		classes = append(classes, t.Voice)
	}
	head := ""
	if t.Continues {
		classes = append(classes, "more")
	} else {
		head = fmt.Sprintf("<h2>%s <a href=\"#m%d\">%[2]d</a>", html.EscapeString(speaker(m.Message)), m.Position)
		if !m.CreatedAt.IsZero() {
			head += " <time>" + m.CreatedAt.Format("2006-01-02 15:04:05 MST") + "</time>"
		}
		head += "</h2>\n"
	}
	_, err := fmt.Fprintf(e.w, "<article class=\"%s\" id=\"m%d\">\n%s%s</article>\n", strings.Join(classes, " "), m.Position, head, b.String())
	return err
}

func (e *htmlExport) part(m *record.Loaded, p *transcript.Part) string {
	switch p.Kind {
	case transcript.Text:
		return "<div class=\"text\">" + htmlText(p.Text) + "</div>\n"
	case transcript.Thought:
		return details("Thinking", "", "<pre>"+html.EscapeString(strings.TrimSpace(p.Text))+"</pre>")
	case transcript.Attachment:
		return e.attachment(m, p)
	case transcript.Call:
		return e.call(p)
	case transcript.Result:
		if e.reading.tools == toolsNone {
			return ""
		}
		return details("Tool result", oneLine(p.Name), "<pre>"+html.EscapeString(p.Text)+"</pre>")
	}
	return details("Details", "", "<pre>"+html.EscapeString(indented(p.Text))+"</pre>")
}

func (e *htmlExport) call(p *transcript.Part) string {
	name, summary, diff := cmp.Or(p.Name, "Tool call"), shorten(oneLine(p.Summary()), foldColumns), p.Diff()
	if diff != nil {
		summary += " " + transcript.Changed(diff)
	}
	switch e.reading.tools {
	case toolsNone:
		return ""
	case toolsShort:
		return "<p class=\"aside\"><b>" + html.EscapeString(name) + "</b> <code>" + html.EscapeString(summary) + "</code></p>\n"
	}
	inner := "<pre>" + html.EscapeString(indented(p.Text)) + "</pre>"
	if diff != nil {
		inner = "<pre>" + htmlDiff(diff) + "</pre>"
	}
	for _, r := range p.Results {
		class := "result"
		if r.Failed {
			class = "result failed"
		}
		if diff == nil || r.Failed {
			inner += "<pre class=\"" + class + "\">" + html.EscapeString(strings.TrimRight(r.Text, "\n")) + "</pre>"
		}
	}
	return details(name, summary, inner)
}

func htmlDiff(diff []string) string {
	var b strings.Builder
	for _, l := range diff {
		text := html.EscapeString(l)
		switch {
		case strings.HasPrefix(l, "+"):
			text = "<ins>" + text + "</ins>"
		case strings.HasPrefix(l, "-"):
			text = "<del>" + text + "</del>"
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func details(label, summary, inner string) string {
	head := html.EscapeString(label)
	if summary != "" {
		head += " <code>" + html.EscapeString(summary) + "</code>"
	}
	return "<details><summary>" + head + "</summary>" + inner + "</details>\n"
}

// maxEmbedded bounds an image in the page, in bytes.
const maxEmbedded = 16 << 20

// embeddedTypes are the images that a page shows. SVG is not among them: it can hold scripts.
var embeddedTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func (e *htmlExport) attachment(m *record.Loaded, p *transcript.Part) string {
	caption := html.EscapeString(p.Text)
	data := ""
	if f := p.File; f != nil && embeddedTypes[f.MediaType] {
		data = contentOf(m.Message, f, maxEmbedded)
	}
	if data == "" {
		return "<p class=\"aside\">[" + caption + "]</p>\n"
	}
	return fmt.Sprintf("<figure><img src=\"data:%s;base64,%s\" alt=\"\"><figcaption>%s</figcaption></figure>\n",
		p.File.MediaType, html.EscapeString(data), caption)
}

// markdown renders texts. HTML in them is text, and links to scripts are left out.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(gfm.GFM),
)

func without(all []util.PrioritizedValue, one any) []util.PrioritizedValue {
	return slices.DeleteFunc(all, func(v util.PrioritizedValue) bool { return v.Value == one })
}

// maxMarkdown bounds a text that is rendered, in bytes: a longer one is shown as it is.
const maxMarkdown = 1 << 20

func htmlText(text string) string {
	var b bytes.Buffer
	if len(text) > maxMarkdown || markdown.Convert([]byte(text), &b) != nil {
		return "<pre>" + html.EscapeString(text) + "</pre>"
	}
	return b.String()
}
