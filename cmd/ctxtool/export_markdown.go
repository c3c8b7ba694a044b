package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// markdownExport writes a heading for each message. Thoughts and tool calls with their results are folded.
type markdownExport struct {
	w       io.Writer
	reading reading
	conversation
}

// reading says what exports for people show.
type reading struct {
	all   bool   // bookkeeping of agent tools, too
	tools string // tool calls and results: toolsNone, toolsShort or toolsFull
}

func newMarkdown(w io.Writer, read reading) exporter {
	e := &markdownExport{w: w, reading: read}
	e.all, e.read, e.show = read.all, true, e.turn
	return e
}

func (e *markdownExport) begin(c *ctxdir.Metadata, branch string) error {
	_, err := fmt.Fprintf(e.w, "# %s\n\nContext `%s`, branch %s\n", oneLine(cmp.Or(c.Title, "Untitled")), c.ID, oneLine(branch))
	return err
}

func (e *markdownExport) message(_ context.Context, m *record.Loaded) error { return e.add(m) }
func (e *markdownExport) end() error                                        { return e.turns.Flush() }
func (e *markdownExport) omitted() omissions                                { return omissions{} }

func (e *markdownExport) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	var b strings.Builder
	for _, p := range t.Parts {
		if text := markdownPart(&p, e.reading.tools); text != "" {
			b.WriteString("\n" + text + "\n")
		}
	}
	switch {
	case m.Unavailable != nil:
		fmt.Fprintf(&b, "\n*Unavailable: %s*\n", oneLine(m.Unavailable.Error()))
	case b.Len() == 0 && len(t.Parts) > 0:
		return nil
	}
	if !t.Continues {
		head := fmt.Sprintf("\n## %d. %s\n", m.Position, oneLine(speaker(m.Message)))
		if !m.CreatedAt.IsZero() {
			head += fmt.Sprintf("\n*%s*\n", m.CreatedAt.Format("2006-01-02 15:04:05 MST"))
		}
		if _, err := io.WriteString(e.w, head); err != nil {
			return err
		}
	}
	_, err := io.WriteString(e.w, b.String())
	return err
}

// markdownPart is a part in Markdown, "" if it is left out.
func markdownPart(p *transcript.Part, tools string) string {
	switch p.Kind {
	case transcript.Text:
		return strings.TrimRight(p.Text, "\n")
	case transcript.Thought:
		return folded("Thinking", "", strings.TrimSpace(p.Text))
	case transcript.Attachment:
		return "*[" + oneLine(p.Text) + "]*"
	case transcript.Call:
		return markdownCall(p, tools)
	case transcript.Result:
		if tools == toolsNone {
			return ""
		}
		return folded("Tool result", oneLine(p.Name), fenced("", p.Text))
	}
	return fenced("json", p.Text)
}

func markdownCall(p *transcript.Part, tools string) string {
	name := cmp.Or(oneLine(p.Name), "Tool call")
	summary := shorten(oneLine(p.Summary()), foldColumns)
	diff := p.Diff()
	if diff != nil {
		summary += " " + transcript.Changed(diff)
	}
	switch tools {
	case toolsNone:
		return ""
	case toolsShort:
		return "*" + name + "* " + codeSpan(summary)
	}
	inner := fenced("json", indented(p.Text))
	if diff != nil {
		inner = fenced("diff", strings.Join(diff, "\n"))
	}
	for _, r := range p.Results {
		if diff != nil && !r.Failed {
			continue
		}
		label := "Result"
		if r.Failed {
			label = "Error"
		}
		inner += "\n\n" + label + "\n\n" + fenced("", r.Text)
	}
	return folded(name, summary, inner)
}

// folded is a Markdown text behind a summary, which opens it.
func folded(label, summary, inner string) string {
	head := "<b>" + html.EscapeString(label) + "</b>"
	if summary != "" {
		head += " <code>" + html.EscapeString(summary) + "</code>"
	}
	return "<details><summary>" + head + "</summary>\n\n" + inner + "\n\n</details>"
}

// indented is JSON on several lines, or another text as it is.
func indented(text string) string {
	var pretty bytes.Buffer
	if transcript.KindOf(json.RawMessage(text)) == '{' && json.Indent(&pretty, []byte(text), "", "  ") == nil {
		return pretty.String()
	}
	return text
}

// codeSpan is a text as code within a line.
func codeSpan(text string) string {
	mark := strings.Repeat("`", longestRun(text)+1)
	return mark + " " + text + " " + mark
}

// fenced is a text in a code block, with a fence longer than any in the text.
func fenced(language, text string) string {
	fence := strings.Repeat("`", max(longestRun(text), 2)+1)
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// longestRun is the length of the longest run of backticks in a text.
func longestRun(text string) (longest int) {
	run := 0
	for _, c := range []byte(text) {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
