package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rivo/uniseg"
)

// renderer writes messages for people.
type renderer struct {
	w         io.Writer
	colour    term.Painter
	terminal  bool
	fold      int                // columns of a folded line
	tools     string             // how tool calls and results show: toolsNone, toolsShort or toolsFull
	thoughts  bool               // in full
	headsOnly bool               // omits the content
	forks     map[int64][]string // the branches that fork off, by position
	forked    int64              // their lines are written up to this position
	begun     bool               // something was written: an empty line separates what follows
	instructs bool               // the message is of the system, whose long texts are folded
	asks      bool               // the message is of the user, whose texts are folded if a tool put them there
}

// shownInstructions is how many lines instructions to the model may have that are shown as they are.
const shownInstructions = 3

// How tool calls and their results show.
const (
	toolsNone  = "none"
	toolsShort = "short"
	toolsFull  = "full"
)

const foldColumns = 160 // if the width is unknown

func (a *app) newRenderer(full bool) *renderer {
	r := &renderer{w: a.out, colour: a.out.Colours(), terminal: a.out.OnTerminal(), tools: toolsShort}
	r.fold = cmp.Or(a.out.Columns(), foldColumns)
	if full {
		r.tools, r.thoughts = toolsFull, true
	}
	return r
}

// message writes one message alone.
func (r *renderer) message(m *record.Loaded) error {
	if r.headsOnly {
		return r.turn(&transcript.Turn[*record.Loaded]{Message: m})
	}
	return (&conversation.Reader{All: true, Show: r.turn}).One(m)
}

// turn writes a message with the results of its tool calls. One that continues the message before it has no head.
func (r *renderer) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	body := ""
	switch {
	case m.Unavailable != nil:
		body = r.colour.Paint(term.Red, "unavailable: "+plain.OneLine(m.Unavailable.Error())) + "\n"
	case !r.headsOnly:
		shown := 0
		r.instructs, r.asks = transcript.Voice(m.Role) == transcript.System, transcript.Voice(m.Role) == transcript.User
		for _, p := range t.Parts {
			if text := r.part(p); text != "" {
				body += text + "\n"
				shown++
			}
		}
		if shown == 0 && len(t.Parts) > 0 {
			return r.forksBefore(m.Position + 1) // all of it was left out
		}
		if shown == 0 {
			body += r.colour.Paint(term.Dim, "(no content)") + "\n"
		}
		body += r.references(m.Message)
		if m.Missing != nil {
			body += r.colour.Paint(term.Red, "incomplete: "+plain.OneLine(m.Missing.Error())) + "\n"
		}
	}
	if err := r.forksBefore(m.Position); err != nil {
		return err
	}
	if !t.Continues || m.Missing != nil || m.Edited {
		body = r.gap() + r.head(m) + "\n" + body
	}
	if _, err := io.WriteString(r.w, body); err != nil {
		return err
	}
	return r.forksBefore(m.Position + 1)
}

// gap is the empty line before what follows, if something precedes it.
func (r *renderer) gap() string {
	if !r.begun || r.headsOnly {
		r.begun = true
		return ""
	}
	return "\n"
}

// forksBefore writes a line for each position, up to a position, at which other branches fork off.
func (r *renderer) forksBefore(position int64) error {
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(r.forks)) {
		if at <= r.forked || at > position {
			continue
		}
		b.WriteString(r.gap() + r.colour.Paint(term.Dim, "├─ forks here: "+plain.OneLine(strings.Join(r.forks[at], ", "))) + "\n")
	}
	r.forked = max(r.forked, position)
	_, err := io.WriteString(r.w, b.String())
	return err
}

// head is a line like "12  assistant  2025-03-04 15:06:07  0195…", with the full id, which "branch fork" takes. On a
// terminal it is a rule.
func (r *renderer) head(m *record.Loaded) string {
	type word struct{ style, text string }
	words := []word{{term.Bold, fmt.Sprint(m.Position)}, {voiceStyle(m.Role), plain.OneLine(conversation.Speaker(m.Message))}}
	if !m.CreatedAt.IsZero() {
		words = append(words, word{term.Dim, m.CreatedAt.Local().Format("2006-01-02 15:04:05")})
	}
	words = append(words, word{term.Dim, m.ID.String()})
	if r.headsOnly {
		words = append(words, word{"", plain.Size(record.FullSize(m.Message))})
	}
	if m.Edited {
		words = append(words, word{term.Yellow, "edited by hand"})
	}
	var head []string
	columns := 3 // the dashes and a blank
	for _, w := range words {
		head = append(head, r.colour.Paint(w.style, w.text))
		columns += uniseg.StringWidth(w.text) + len("  ")
	}
	line := strings.Join(head, "  ")
	if r.terminal && !r.headsOnly {
		line = r.colour.Paint(term.Dim, "──") + " " + line + " " + r.colour.Paint(term.Dim, strings.Repeat("─", max(r.fold-columns, 1)))
	}
	return line
}

func voiceStyle(role string) string {
	switch transcript.Voice(role) {
	case "user":
		return term.BoldBlue
	case "assistant":
		return term.BoldGreen
	case "tool":
		return term.Purple
	}
	return term.Yellow
}

// part is a part for people, "" if it is left out.
func (r *renderer) part(p transcript.Part) string {
	switch p.Kind {
	case transcript.Text:
		text := strings.TrimRight(p.Text, "\n")
		if r.instructs && strings.Count(text, "\n") >= shownInstructions || r.asks && message.IsReminder(text) {
			return r.aside("", "", text, r.thoughts)
		}
		return r.plain(text)
	case transcript.Thought:
		return r.aside("~ ", "", p.Text, r.thoughts)
	case transcript.Call:
		return r.call(&p)
	case transcript.Result:
		if r.tools == toolsNone {
			return ""
		}
		return r.result(p, "")
	case transcript.Attachment:
		return r.colour.Paint(term.Dim, r.folded("+ ", p.Text))
	}
	if r.thoughts {
		return r.aside("  ", "", p.Text, true)
	}
	return r.colour.Paint(term.Dim, r.folded("  ", gist([]byte(p.Text))))
}

// call is a tool call with its results. A call that changes a file shows the change, or how many lines it has.
func (r *renderer) call(p *transcript.Part) string {
	if r.tools == toolsNone {
		return ""
	}
	diff := p.Diff()
	summary := strings.TrimSpace(p.Name + " " + r.shortPath(p.Summary(), len(p.Name)+len(" +99 −99")))
	var lines []string
	switch {
	case r.tools == toolsShort && diff != nil:
		changed := "  " + transcript.Changed(diff)
		lines = append(lines, r.colour.Paint(term.Dim, plain.Shorten(r.folded("> ", summary), r.fold-len(changed))+changed))
	case r.tools == toolsShort:
		lines = append(lines, r.colour.Paint(term.Dim, r.folded("> ", summary)))
	case diff != nil:
		lines = append(lines, r.colour.Paint(term.Dim, r.folded("> ", summary)))
		for _, l := range diff {
			lines = append(lines, r.colour.Paint(diffStyle(l), "  "+strings.TrimRight(r.plain(l), " ")))
		}
	default:
		lines = append(lines, r.aside("> ", p.Name, p.Text, true))
	}
	for _, result := range p.Results {
		if result.Name == p.Name {
			result.Name = ""
		}
		if diff == nil || result.Failed {
			lines = append(lines, r.result(result, "  "))
		}
	}
	return strings.Join(lines, "\n")
}

// shortPath cuts the beginning of a path that is too long for a line with so many other columns.
func (r *renderer) shortPath(path string, other int) string {
	room := r.fold - other - len(">  ")
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \n") || len(path) <= room || room < term.MinWidth {
		return path
	}
	if _, rest, ok := strings.Cut(path[len(path)-room+len("…"):], "/"); ok {
		return "…/" + rest
	}
	return path
}

func (r *renderer) result(p transcript.Part, indent string) string {
	style := term.Dim
	if p.Failed {
		style = term.Red
	}
	if r.tools == toolsShort {
		text := strings.TrimSpace(p.Name + " " + outputOf(p.Text))
		if text == "" {
			text = "(nothing)"
		}
		return r.colour.Paint(style, r.folded(indent+"< ", text))
	}
	return r.aside(indent+"< ", p.Name, p.Text, true)
}

// outputOf is what a command printed, without the lines that Codex puts before it.
func outputOf(result string) string {
	if strings.HasPrefix(result, "Chunk ID: ") || strings.HasPrefix(result, "Exit code: ") {
		if _, output, ok := strings.Cut(result, "\nOutput:\n"); ok {
			return output
		}
	}
	return result
}

func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return term.Green
	case strings.HasPrefix(line, "-"):
		return term.Red
	}
	return term.Dim
}

// plain is a text without the characters that control a terminal.
func (r *renderer) plain(text string) string {
	if r.terminal {
		return plain.WithoutControls(text)
	}
	return text
}

// aside is a thought, a tool call or a tool result: folded to a line, or in full and indented.
func (r *renderer) aside(mark, name, text string, full bool) string {
	if !full {
		return r.colour.Paint(term.Dim, r.folded(mark, strings.TrimSpace(name+" "+text)))
	}
	var pretty bytes.Buffer
	if transcript.KindOf(json.RawMessage(text)) == '{' && json.Indent(&pretty, []byte(text), "", "  ") == nil {
		text = pretty.String()
	}
	text = strings.TrimRight(r.plain(text), "\n")
	if name != "" {
		text = plain.OneLine(name) + "\n" + text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = r.colour.Paint(term.Dim, strings.TrimRight(mark+l, " ")) // a pager resets the colour at each line
		mark = strings.Repeat(" ", len(mark))
	}
	return strings.Join(lines, "\n")
}

// commonMembers are members of every record of a session; the others distinguish a record.
var commonMembers = map[string]bool{
	"parentUuid": true, "isSidechain": true, "userType": true, "cwd": true, "sessionId": true, "version": true, "gitBranch": true,
	"uuid": true, "timestamp": true, "type": true, "logicalParentUuid": true, "slug": true,
}

// gist is a JSON object without the common members.
func gist(object []byte) string {
	var b strings.Builder
	err := message.Members(object, func(key string, v jsontext.Value) error {
		if !commonMembers[key] {
			fmt.Fprintf(&b, "%s: %s  ", key, v)
		}
		return nil
	})
	if err != nil || b.Len() == 0 {
		return string(object)
	}
	return b.String()
}

// folded is a text cut to one line, with the number of its lines.
func (r *renderer) folded(mark, text string) string {
	note := ""
	if n := strings.Count(strings.TrimSpace(text), "\n"); n > 0 {
		note = fmt.Sprintf(" (%s lines)", plain.Number(int64(n+1)))
	}
	// The rest of a long text is not visible.
	if limit := r.fold * 8; len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return mark + plain.Shorten(strings.Join(strings.Fields(plain.OneLine(text)), " "), r.fold-len(mark)-len(note)) + note
}

// references is a line with the references that a message bears, "" without any.
func (r *renderer) references(m *ctxdir.Message) string {
	refs, _ := reference.Stored(m) // ref ls reports those that are invalid
	if len(refs) == 0 {
		return ""
	}
	names := make([]string, len(refs))
	for i := range refs {
		names[i] = refs[i].String()
	}
	return r.colour.Paint(term.Yellow, "@ "+plain.OneLine(strings.Join(names, ", "))) + "\n"
}
