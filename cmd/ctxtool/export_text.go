package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
)

// markdownExport writes a heading for each message, and tool calls and results as code blocks.
type markdownExport struct{ w io.Writer }

func (e *markdownExport) end() error { return nil }

func (e *markdownExport) begin(c *ctxdir.Metadata, branch string) error {
	_, err := fmt.Fprintf(e.w, "# %s\n\nContext `%s`, branch %s\n", oneLine(cmp.Or(c.Title, "Untitled")), c.ID, oneLine(branch))
	return err
}

func (e *markdownExport) message(_ context.Context, m *loadedMessage) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %d. %s\n", m.Position, oneLine(speaker(m.Message)))
	if !m.CreatedAt.IsZero() {
		fmt.Fprintf(&b, "\n*%s*\n", m.CreatedAt.Format("2006-01-02 15:04:05 MST"))
	}
	if m.Unavailable != nil {
		fmt.Fprintf(&b, "\n*Unavailable: %s*\n", oneLine(m.Unavailable.Error()))
	} else {
		for _, p := range partsOf(m.Body) {
			b.WriteString("\n" + markdownPart(p) + "\n")
		}
	}
	_, err := io.WriteString(e.w, b.String())
	return err
}

func markdownPart(p part) string {
	switch p.kind {
	case textPart:
		return strings.TrimRight(p.text, "\n")
	case thoughtPart:
		return "> " + strings.ReplaceAll(strings.TrimSpace(p.text), "\n", "\n> ")
	case attachedPart:
		return "*[" + oneLine(p.text) + "]*"
	}
	label := partLabel(p)
	if label != "" {
		label = "**" + oneLine(label) + "**\n\n"
	}
	return label + fenced(p.text)
}

func partLabel(p part) string {
	switch p.kind {
	case thoughtPart:
		return "Thinking"
	case callPart:
		return strings.TrimSpace("Tool call: " + p.name)
	case resultPart:
		return "Tool result"
	}
	return ""
}

// fenced is a text in a code block, with a fence longer than any in the text.
func fenced(text string) string {
	longest, run := 2, 0
	for _, c := range []byte(text) {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// htmlExport writes a self-contained page.
type htmlExport struct{ w io.Writer }

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%[1]s</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
article { border-left: 4px solid #ccc; padding: 0 1rem; margin: 1.5rem 0; }
article.user { border-color: #36c; }
article.assistant { border-color: #393; }
h2 { font-size: 1rem; margin: 0; }
h2 small { font-weight: normal; color: #666; }
p, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
pre { font: 13px/1.4 ui-monospace, monospace; background: #f5f5f5; padding: .5rem; }
summary, .aside { color: #666; }
</style>
</head>
<body>
<h1>%[1]s</h1>
<p class="aside">Context %[2]s, branch %[3]s</p>
`

func (e *htmlExport) begin(c *ctxdir.Metadata, branch string) error {
	_, err := fmt.Fprintf(e.w, pageHead, html.EscapeString(cmp.Or(c.Title, "Untitled")), c.ID, html.EscapeString(branch))
	return err
}

func (e *htmlExport) end() error {
	_, err := io.WriteString(e.w, "</body>\n</html>\n")
	return err
}

func (e *htmlExport) message(_ context.Context, m *loadedMessage) error {
	var b strings.Builder
	class := ""
	if v := voice(m.Role); v != "" {
		class = ` class="` + v + `"`
	}
	fmt.Fprintf(&b, "<article%s id=\"m%d\">\n<h2>%s <small>%d", class, m.Position, html.EscapeString(speaker(m.Message)), m.Position)
	if !m.CreatedAt.IsZero() {
		b.WriteString(" · " + m.CreatedAt.Format("2006-01-02 15:04:05 MST"))
	}
	b.WriteString("</small></h2>\n")
	if m.Unavailable != nil {
		fmt.Fprintf(&b, "<p class=\"aside\">Unavailable: %s</p>\n", html.EscapeString(m.Unavailable.Error()))
	} else {
		for _, p := range partsOf(m.Body) {
			b.WriteString(htmlPart(p) + "\n")
		}
	}
	b.WriteString("</article>\n")
	_, err := io.WriteString(e.w, b.String())
	return err
}

func htmlPart(p part) string {
	text := html.EscapeString(strings.TrimRight(p.text, "\n"))
	switch p.kind {
	case textPart:
		return "<p>" + text + "</p>"
	case attachedPart:
		return `<p class="aside">[` + text + "]</p>"
	case otherPart:
		return "<details><summary>Details</summary><pre>" + text + "</pre></details>"
	}
	return "<details><summary>" + html.EscapeString(partLabel(p)) + "</summary><pre>" + text + "</pre></details>"
}
