package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/message"
	"github.com/go-json-experiment/json/jsontext"
)

// renderer writes messages for people.
type renderer struct {
	w         io.Writer
	colour    bool
	terminal  bool
	fold      int  // columns of what is folded to a line
	headsOnly bool // leaves out what was said
}

const foldColumns = 160 // where the width is not known

func (a *app) newRenderer() *renderer {
	return &renderer{w: a.out, colour: a.colour(), terminal: a.onTerminal(), fold: cmp.Or(a.width(), foldColumns)}
}

const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	yellow  = "33"
	bluish  = "1;34"
	greener = "1;32"
)

func (r *renderer) paint(style, text string) string {
	if !r.colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// message writes one message and an empty line.
func (r *renderer) message(m *said) error {
	var b strings.Builder
	b.WriteString(r.head(m) + "\n")
	switch {
	case m.Unavailable != nil:
		b.WriteString(r.paint(red, "unavailable: "+oneLine(m.Unavailable.Error())) + "\n\n")
	case !r.headsOnly:
		for _, p := range partsOf(m.Body) {
			b.WriteString(r.part(p) + "\n")
		}
		if m.missing != nil {
			b.WriteString(r.paint(red, "not complete: "+oneLine(m.missing.Error())) + "\n")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(r.w, b.String())
	return err
}

// head is a line like "12  assistant  2025-03-04 15:06  0195…": whole ids, since forking takes them.
func (r *renderer) head(m *said) string {
	who, style := speaker(m.Message), yellow
	switch m.Role {
	case "user":
		style = bluish
	case "assistant":
		style = greener
	}
	words := []string{r.paint(bold, fmt.Sprint(m.Position)), r.paint(style, oneLine(who))}
	if !m.CreatedAt.IsZero() {
		words = append(words, r.paint(dim, m.CreatedAt.Local().Format("2006-01-02 15:04:05")))
	}
	words = append(words, r.paint(dim, m.ID.String()))
	if r.headsOnly {
		words = append(words, humanSize(int64(whole(m.Message))))
	}
	if m.Edited {
		words = append(words, r.paint(yellow, "edited by hand"))
	}
	return strings.Join(words, "  ")
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
		if r.terminal {
			return harmless(p.text)
		}
		return p.text
	case thoughtPart:
		return r.paint(dim, r.folded("~ ", p.text))
	case callPart:
		return r.paint(dim, r.folded("> ", strings.TrimSpace(p.name+" "+p.text)))
	case resultPart:
		return r.paint(dim, r.folded("< ", strings.TrimSpace(p.name+" "+p.text)))
	case attachedPart:
		return r.paint(dim, r.folded("+ ", p.text))
	}
	return r.paint(dim, r.folded("  ", gist([]byte(p.text))))
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

// folded is a text on one line, cut where the line ends.
func (r *renderer) folded(mark, text string) string {
	// Not more of a long text than can be seen is looked at.
	if most := r.fold * 8; len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return mark + shorten(strings.Join(strings.Fields(oneLine(text)), " "), r.fold-len(mark))
}
