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
	fold      int                // columns of what is folded to a line
	full      bool               // folds nothing
	headsOnly bool               // leaves out what was said
	forks     map[int64][]string // the branches that leave the shown one, by position
}

const foldColumns = 160 // where the width is not known

func (a *app) newRenderer() *renderer {
	return &renderer{w: a.out, colour: a.colours(a.out.w), terminal: a.onTerminal(), fold: cmp.Or(a.width(), foldColumns)}
}

// message writes one message and an empty line.
func (r *renderer) message(m *said) error {
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
			b.WriteString(r.colour.paint(dim, "(nothing to show)") + "\n")
		}
		if m.missing != nil {
			b.WriteString(r.colour.paint(red, "not complete: "+oneLine(m.missing.Error())) + "\n")
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

// head is a line like "12  assistant  2025-03-04 15:06:07  0195…": whole ids, since forking takes them. On a terminal it is a rule.
func (r *renderer) head(m *said) string {
	type word struct{ style, text string }
	words := []word{{bold, fmt.Sprint(m.Position)}, {voiceStyle(m.Role), oneLine(speaker(m.Message))}}
	if !m.CreatedAt.IsZero() {
		words = append(words, word{dim, m.CreatedAt.Local().Format("2006-01-02 15:04:05")})
	}
	words = append(words, word{dim, m.ID.String()})
	if r.headsOnly {
		words = append(words, word{"", humanSize(int64(whole(m.Message)))})
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

// voice is what a role is, however a framework spells it: "user", "assistant", "tool", "system", or "" for another one.
func voice(role string) string {
	switch role = strings.ToLower(role); role {
	case "user", "assistant", "tool", "system":
		return role
	case "human":
		return "user"
	case "model", "ai":
		return "assistant"
	case "function":
		return "tool"
	case "developer":
		return "system"
	}
	return ""
}

func voiceStyle(role string) string {
	switch voice(role) {
	case "user":
		return bluish
	case "assistant":
		return greener
	case "tool":
		return purple
	}
	return yellow
}

// speaker is a message's role, or its type where it has none.
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

// plain is a text as it is, but for what a terminal would obey.
func (r *renderer) plain(text string) string {
	if r.terminal {
		return harmless(text)
	}
	return text
}

// aside is what a tool is told or says, or a thought: folded to a line, or whole and indented.
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
		lines[i] = r.colour.paint(dim, strings.TrimRight(mark+l, " ")) // a pager begins each line without a colour
		mark = "  "
	}
	return strings.Join(lines, "\n")
}

// repeated are members that every record of a session has; what a record of no message says stands in others.
var repeated = map[string]bool{
	"parentUuid": true, "isSidechain": true, "userType": true, "cwd": true, "sessionId": true, "version": true, "gitBranch": true,
	"uuid": true, "timestamp": true, "type": true, "logicalParentUuid": true, "slug": true,
}

// gist is a JSON object without the members that say nothing new.
func gist(object []byte) string {
	var b strings.Builder
	err := message.Members(object, func(key string, v jsontext.Value) error {
		if !repeated[key] {
			fmt.Fprintf(&b, "%s: %s  ", key, v)
		}
		return nil
	})
	if err != nil || b.Len() == 0 {
		return string(object)
	}
	return b.String()
}

// folded is a text on one line, cut where the line ends, with the number of lines it had.
func (r *renderer) folded(mark, text string) string {
	note := ""
	if n := strings.Count(strings.TrimSpace(text), "\n"); n > 0 {
		note = fmt.Sprintf(" (%s lines)", humanCount(int64(n+1)))
	}
	// Not more of a long text than can be seen is looked at.
	if most := r.fold * 8; len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return mark + shorten(strings.Join(strings.Fields(oneLine(text)), " "), r.fold-len(mark)-len(note)) + note
}
