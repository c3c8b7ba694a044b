package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rivo/uniseg"
)

// renderer writes messages for people.
type renderer struct {
	w         io.Writer
	colour    painter
	terminal  bool
	fold      int                // columns of a folded line
	full      bool               // folds nothing
	headsOnly bool               // omits the content
	forks     map[int64][]string // the branches that fork off, by position
}

const foldColumns = 160 // if the width is unknown

func (a *app) newRenderer() *renderer {
	return &renderer{w: a.out, colour: a.colours(a.out.w), terminal: a.onTerminal(), fold: cmp.Or(a.width(), foldColumns)}
}

// message writes one message and an empty line.
func (r *renderer) message(m *loadedMessage) error {
	var b strings.Builder
	b.WriteString(r.head(m) + "\n")
	switch {
	case m.Unavailable != nil:
		b.WriteString(r.colour.paint(red, "unavailable: "+oneLine(m.Unavailable.Error())) + "\n\n")
	case !r.headsOnly:
		parts := slices.DeleteFunc(partsOf(m.Body), func(p part) bool { return p.kind == textPart && strings.TrimSpace(p.text) == "" })
		for _, p := range parts {
			b.WriteString(r.part(p) + "\n")
		}
		if len(parts) == 0 {
			b.WriteString(r.colour.paint(dim, "(no content)") + "\n")
		}
		if m.missing != nil {
			b.WriteString(r.colour.paint(red, "incomplete: "+oneLine(m.missing.Error())) + "\n")
		}
		b.WriteByte('\n')
	}
	if names := r.forks[m.Position+1]; len(names) > 0 {
		b.WriteString(r.colour.paint(dim, "├─ forks here: "+oneLine(strings.Join(names, ", "))) + "\n")
		if !r.headsOnly {
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(r.w, b.String())
	return err
}

// head is a line like "12  assistant  2025-03-04 15:06:07  0195…", with the full id, which "branch fork" takes. On a
// terminal it is a rule.
func (r *renderer) head(m *loadedMessage) string {
	type word struct{ style, text string }
	words := []word{{bold, fmt.Sprint(m.Position)}, {voiceStyle(m.Role), oneLine(speaker(m.Message))}}
	if !m.CreatedAt.IsZero() {
		words = append(words, word{dim, m.CreatedAt.Local().Format("2006-01-02 15:04:05")})
	}
	words = append(words, word{dim, m.ID.String()})
	if r.headsOnly {
		words = append(words, word{"", humanSize(int64(fullSize(m.Message)))})
	}
	if m.Edited {
		words = append(words, word{yellow, "edited by hand"})
	}
	var head []string
	columns := 3 // the dashes and a blank
	for _, w := range words {
		head = append(head, r.colour.paint(w.style, w.text))
		columns += uniseg.StringWidth(w.text) + len("  ")
	}
	line := strings.Join(head, "  ")
	if r.terminal && !r.headsOnly {
		line = r.colour.paint(dim, "──") + " " + line + " " + r.colour.paint(dim, strings.Repeat("─", max(r.fold-columns, 1)))
	}
	return line
}

// voice unifies the roles of frameworks: "user", "assistant", "tool", "system", or "" for others.
func voice(role string) string {
	switch role = strings.ToLower(role); role {
	case "user", "assistant", "tool", "system":
		return role
	case "human":
		return "user"
	case "model", "ai":
		return "assistant"
	case "function", "toolresult":
		return "tool"
	case "developer":
		return "system"
	}
	return ""
}

func voiceStyle(role string) string {
	switch voice(role) {
	case "user":
		return boldBlue
	case "assistant":
		return boldGreen
	case "tool":
		return purple
	}
	return yellow
}

// speaker is the role of a message, or else its type.
func speaker(m *ctxdir.Message) string {
	switch {
	case m.Role != "":
		return m.Role
	case m.Type != "":
		return "[" + m.Type + "]"
	}
	return "message"
}

func (r *renderer) part(p part) string {
	switch p.kind {
	case textPart:
		return r.plain(strings.TrimRight(p.text, "\n"))
	case thoughtPart:
		return r.aside("~ ", "", p.text)
	case callPart:
		return r.aside("> ", p.name, p.text)
	case resultPart:
		return r.aside("< ", p.name, p.text)
	case attachedPart:
		return r.colour.paint(dim, r.folded("+ ", p.text))
	}
	if r.full {
		return r.aside("  ", "", p.text)
	}
	return r.colour.paint(dim, r.folded("  ", gist([]byte(p.text))))
}

// plain is a text without the characters that control a terminal.
func (r *renderer) plain(text string) string {
	if r.terminal {
		return withoutControls(text)
	}
	return text
}

// aside is a thought, a tool call or a tool result: folded to a line, or in full and indented.
func (r *renderer) aside(mark, name, text string) string {
	if !r.full {
		return r.colour.paint(dim, r.folded(mark, strings.TrimSpace(name+" "+text)))
	}
	var pretty bytes.Buffer
	if kindOf(json.RawMessage(text)) == '{' && json.Indent(&pretty, []byte(text), "", "  ") == nil {
		text = pretty.String()
	}
	text = strings.TrimRight(r.plain(text), "\n")
	if name != "" {
		text = oneLine(name) + "\n" + text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = r.colour.paint(dim, strings.TrimRight(mark+l, " ")) // a pager resets the colour at each line
		mark = "  "
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
		note = fmt.Sprintf(" (%s lines)", humanCount(int64(n+1)))
	}
	// The rest of a long text is not visible.
	if limit := r.fold * 8; len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return mark + shorten(strings.Join(strings.Fields(oneLine(text)), " "), r.fold-len(mark)-len(note)) + note
}
