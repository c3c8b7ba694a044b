package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/ctxdir/ctxdir/transcript"
)

// markdownFormat writes a heading for each message. Thoughts and tool calls with their results are folded.
type markdownFormat struct {
	w     io.Writer
	tools string
}

func oneLine(text redact.Text) string { return plain.OneLine(text.String()) }

func (e *markdownFormat) begin(title redact.Text, id string, branch redact.Text) error {
	name := ""
	if branch.String() != "" {
		name = ", branch " + oneLine(branch)
	}
	_, err := fmt.Fprintf(e.w, "# %s\n\nContext `%s`%s\n", cmp.Or(oneLine(title), "Untitled"), id, name)
	return err
}

func (e *markdownFormat) branch(name redact.Text, from int64) error {
	_, err := fmt.Fprintf(e.w, "\n# Branch %s, from message %d\n", oneLine(name), from)
	return err
}

func (e *markdownFormat) end() error { return nil }

func (e *markdownFormat) turn(t *turn) error {
	var b strings.Builder
	for i := range t.parts {
		if text := e.part(&t.parts[i]); text != "" {
			b.WriteString("\n" + text + "\n")
		}
	}
	switch {
	case t.unavailable != nil:
		fmt.Fprintf(&b, "\n*Unavailable: %s*\n", oneLine(*t.unavailable))
	case b.Len() == 0 && len(t.parts) > 0:
		return nil
	}
	if !t.continues {
		head := fmt.Sprintf("\n## %d. %s\n", t.position, oneLine(t.speaker))
		if !t.at.IsZero() {
			head += fmt.Sprintf("\n*%s*\n", t.at.Format("2006-01-02 15:04:05 MST"))
		}
		if _, err := io.WriteString(e.w, head); err != nil {
			return err
		}
	}
	_, err := io.WriteString(e.w, b.String())
	return err
}

// part is a part in Markdown, "" if it is left out.
func (e *markdownFormat) part(p *part) string {
	switch p.kind {
	case transcript.Text:
		return strings.TrimRight(p.text.String(), "\n")
	case transcript.Thought:
		return folded("Thinking", "", strings.TrimSpace(p.text.String()))
	case transcript.Attachment:
		return "*[" + oneLine(p.text) + "]*"
	case transcript.Call:
		return e.call(p)
	case transcript.Result:
		if e.tools == ToolsNone {
			return ""
		}
		return folded("Tool result", oneLine(p.name), fenced("", p.text.String()))
	}
	return fenced("json", p.text.String())
}

// foldColumns bounds the summary of a call, in columns.
const foldColumns = 160

// summarised is the summary of a call, in one line.
func summarised(p *part) string {
	summary := plain.Shorten(oneLine(p.summary), foldColumns)
	if p.changes {
		summary += " " + p.changed
	}
	return summary
}

func (e *markdownFormat) call(p *part) string {
	name, summary := cmp.Or(oneLine(p.name), "Tool call"), summarised(p)
	switch e.tools {
	case ToolsNone:
		return ""
	case ToolsShort:
		return "*" + name + "* " + codeSpan(summary)
	}
	inner := fenced("json", indented(p.text.String()))
	if p.changes {
		var lines []string
		for _, l := range p.diff {
			lines = append(lines, l.String())
		}
		inner = fenced("diff", strings.Join(lines, "\n"))
	}
	for _, r := range p.results {
		if p.changes && !r.failed {
			continue
		}
		label := "Result"
		if r.failed {
			label = "Error"
		}
		inner += "\n\n" + label + "\n\n" + fenced("", r.text.String())
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
