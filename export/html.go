package export

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/redact"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/yuin/goldmark"
	gfm "github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// htmlFormat writes a page that needs nothing else: no scripts, no other files, images inside. Content cannot add
// markup: texts are Markdown without raw HTML, everything else is escaped.
type htmlFormat struct {
	w        io.Writer
	tools    string
	branches int
	anchor   string // before the position in the id of a message, from the second branch on
}

func escaped(text redact.Text) string { return html.EscapeString(text.String()) }

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
<p>Context %[2]s%[3]s</p>
</header>
`

func (e *htmlFormat) begin(title redact.Text, id string, branch redact.Text) error {
	sum := sha256.Sum256([]byte(pageStyle))
	name := ""
	if branch.String() != "" {
		name = ", branch " + escaped(branch)
	}
	_, err := fmt.Fprintf(e.w, pageHead, cmp.Or(escaped(title), "Untitled"), id, name,
		base64.StdEncoding.EncodeToString(sum[:]), pageStyle)
	return err
}

func (e *htmlFormat) branch(name redact.Text, from int64) error {
	if e.branches++; e.branches > 1 {
		e.anchor = fmt.Sprintf("b%d-", e.branches)
	}
	_, err := fmt.Fprintf(e.w, "<header>\n<h1>Branch %s</h1>\n<p>From message %d</p>\n</header>\n", escaped(name), from)
	return err
}

func (e *htmlFormat) end() error {
	_, err := io.WriteString(e.w, "</body>\n</html>\n")
	return err
}

func (e *htmlFormat) turn(t *turn) error {
	var b strings.Builder
	for i := range t.parts {
		b.WriteString(e.part(&t.parts[i]))
	}
	switch {
	case t.unavailable != nil:
		fmt.Fprintf(&b, "<p class=\"aside\">Unavailable: %s</p>\n", escaped(*t.unavailable))
	case b.Len() == 0 && len(t.parts) > 0:
		return nil
	}
	classes := []string{}
	if t.voice != "" {
		classes = append(classes, t.voice)
	}
	head := ""
	if t.continues {
		classes = append(classes, "more")
	} else {
		head = fmt.Sprintf("<h2>%s <a href=\"#%sm%d\">%[3]d</a>", escaped(t.speaker), e.anchor, t.position)
		if !t.at.IsZero() {
			head += " <time>" + t.at.Format("2006-01-02 15:04:05 MST") + "</time>"
		}
		head += "</h2>\n"
	}
	_, err := fmt.Fprintf(e.w, "<article class=\"%s\" id=\"%sm%d\">\n%s%s</article>\n",
		strings.Join(classes, " "), e.anchor, t.position, head, b.String())
	return err
}

func (e *htmlFormat) part(p *part) string {
	switch p.kind {
	case transcript.Text:
		return "<div class=\"text\">" + htmlText(p.text) + "</div>\n"
	case transcript.Thought:
		return details("Thinking", "", "<pre>"+html.EscapeString(strings.TrimSpace(p.text.String()))+"</pre>")
	case transcript.Attachment:
		return attachment(p)
	case transcript.Call:
		return e.call(p)
	case transcript.Result:
		if e.tools == ToolsNone {
			return ""
		}
		return details("Tool result", oneLine(p.name), "<pre>"+escaped(p.text)+"</pre>")
	}
	return details("Details", "", "<pre>"+html.EscapeString(indented(p.text.String()))+"</pre>")
}

func (e *htmlFormat) call(p *part) string {
	name, summary := cmp.Or(p.name.String(), "Tool call"), summarised(p)
	switch e.tools {
	case ToolsNone:
		return ""
	case ToolsShort:
		return "<p class=\"aside\"><b>" + html.EscapeString(name) + "</b> <code>" + html.EscapeString(summary) + "</code></p>\n"
	}
	inner := "<pre>" + html.EscapeString(indented(p.text.String())) + "</pre>"
	if p.changes {
		inner = "<pre>" + htmlDiff(p.diff) + "</pre>"
	}
	for _, r := range p.results {
		class := "result"
		if r.failed {
			class = "result failed"
		}
		if !p.changes || r.failed {
			inner += "<pre class=\"" + class + "\">" + html.EscapeString(strings.TrimRight(r.text.String(), "\n")) + "</pre>"
		}
	}
	return details(name, summary, inner)
}

func htmlDiff(diff []redact.Text) string {
	var b strings.Builder
	for _, l := range diff {
		text := escaped(l)
		switch {
		case strings.HasPrefix(text, "+"):
			text = "<ins>" + text + "</ins>"
		case strings.HasPrefix(text, "-"):
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

func attachment(p *part) string {
	if p.media == "" {
		return "<p class=\"aside\">[" + escaped(p.text) + "]</p>\n"
	}
	return fmt.Sprintf("<figure><img src=\"data:%s;base64,%s\" alt=\"\"><figcaption>%s</figcaption></figure>\n",
		p.media, escaped(p.data), escaped(p.text))
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

func htmlText(t redact.Text) string {
	var b bytes.Buffer
	text := t.String()
	if len(text) > maxMarkdown || markdown.Convert([]byte(text), &b) != nil {
		return "<pre>" + html.EscapeString(text) + "</pre>"
	}
	return b.String()
}
