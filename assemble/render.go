package assemble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/transcript"
)

// The formats. OpenAI is a list of messages for its API, Anthropic an object with system and messages.
const (
	Text      Format = "text"
	JSON      Format = "json" // the caller prints Items; Text and Tokens are those of the format text
	OpenAI    Format = "openai"
	Anthropic Format = "anthropic"
)

// Formats are the names of all formats.
var Formats = []Format{Text, JSON, OpenAI, Anthropic}

func (f Format) isValid() bool { return f == "" || slices.Contains(Formats, f) }

func (f Format) isMessages() bool { return f == OpenAI || f == Anthropic }

// piece is about what an item adds to the text.
func (f Format) piece(it *Item) string {
	if f.isMessages() {
		if it.Kind == Newest {
			return string(encode(turn{it.Role, it.Text})) + ",\n"
		}
		return string(encode(plainPiece(it)))
	}
	return plainPiece(it)
}

func plainPiece(it *Item) string {
	switch it.Kind {
	case Instructions, System, File, Code:
		return it.Text + "\n"
	case Summary:
		return summaryPiece(it)
	}
	if it.Position < 0 {
		return it.Text + "\n"
	}
	role := it.Role
	if role == "" {
		role = "message"
	}
	return fmt.Sprintf("#%d %s: %s\n", it.Position, role, it.Text)
}

// render returns the text of items.
func (f Format) render(items []Item) string {
	if len(items) == 0 {
		return f.empty()
	}
	if !f.isMessages() {
		var w writer
		for i := range items {
			w.add(&items[i])
		}
		return w.String()
	}
	// The newest messages are messages. What comes before and after them is in one message each.
	var before, after writer
	var messages []turn
	for i := range items {
		switch it := &items[i]; it.Kind {
		case Newest:
			messages = append(messages, turn{it.Role, it.Text})
		case Instructions, Pinned, System, Moment, File:
			before.add(it)
		default:
			after.add(it)
		}
	}
	if f == OpenAI {
		return openAI(before.String(), messages, after.String())
	}
	return anthropic(before.String(), messages, after.String())
}

func (f Format) empty() string {
	switch f {
	case OpenAI:
		return "[]\n"
	case Anthropic:
		return `{"messages":[]}` + "\n"
	}
	return ""
}

// nothing is the text without items that fits into a budget.
func (f Format) nothing(t Tokenizer, most int) string {
	for _, text := range []string{f.empty(), "{}\n"} {
		if f.isMessages() && t.Count(text) <= most && (f == Anthropic || text != "{}\n") {
			return text
		}
	}
	return ""
}

// turn is a message of an API.
type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func openAI(before string, messages []turn, after string) string {
	var all []turn
	if before != "" {
		all = append(all, turn{"system", before})
	}
	for _, m := range messages {
		switch m.Role {
		case transcript.User, transcript.Assistant, transcript.System:
		default:
			m.Role = transcript.User
		}
		all = append(all, m)
	}
	if after != "" {
		all = append(all, turn{"system", after})
	}
	return list(all)
}

// anthropic makes messages of user and assistant in turns; the first is of the user.
func anthropic(before string, messages []turn, after string) string {
	if after != "" {
		messages = append(slices.Clone(messages), turn{transcript.User, after})
	}
	var all []turn
	for _, m := range messages {
		if m.Role != transcript.Assistant {
			m.Role = transcript.User
		}
		if len(all) == 0 && m.Role == transcript.Assistant {
			all = append(all, turn{transcript.User, "(earlier messages are left out)"})
		}
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Content += "\n\n" + m.Content
		} else {
			all = append(all, m)
		}
	}
	text := `{`
	if before != "" {
		text += `"system":` + string(encode(before)) + `,`
	}
	return text + `"messages":` + strings.TrimSuffix(list(all), "\n") + "}\n"
}

// list is a JSON array with an element on each line.
func list(all []turn) string {
	var b strings.Builder
	b.WriteString("[")
	for i := range all {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(encode(all[i]))
	}
	b.WriteString("]\n")
	return b.String()
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("assemble: " + err.Error()) // texts and roles
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// writer writes items as plain text, under headings.
type writer struct {
	strings.Builder
	heading, day string
}

func (w *writer) add(it *Item) {
	if h := headingOf(it); h != w.heading {
		if w.Len() > 0 {
			w.WriteString("\n")
		}
		w.WriteString("# " + h + "\n")
		w.heading, w.day = h, ""
	}
	if it.Kind != File && it.Kind != Code && it.Position >= 0 && !it.At.IsZero() {
		if day := it.At.Format(time.DateOnly); day != w.day {
			w.WriteString(day + "\n")
			w.day = day
		}
	}
	w.WriteString(plainPiece(it))
}

func headingOf(it *Item) string {
	where := fmt.Sprintf("%s, branch %s", it.Context, it.Branch)
	if title := strings.Join(strings.Fields(it.Title), " "); title != "" {
		where = cutAt(title, 80) + ", " + where
	}
	switch it.Kind {
	case Instructions:
		return "Instructions of the workspace"
	case Pinned:
		return "Pinned messages"
	case System:
		return "System prompt"
	case Moment:
		return "Decisions, patterns and solutions"
	case Newest:
		return "Newest messages of " + where
	case File:
		return "Files"
	case Code:
		return "Code as it is now"
	case Summary:
		return "Summary of messages that are left out"
	}
	return "Earlier messages of " + where
}

// count returns the tokens of an item in the text.
func (b *builder) count(it *Item) int { return b.r.Tokens.Count(b.r.Format.piece(it)) }

// summaryPiece is a summary in the text: each line is marked, so that none looks like a heading or a message.
func summaryPiece(it *Item) string {
	var b strings.Builder
	for line := range strings.Lines(it.Text) {
		b.WriteString("- " + strings.TrimSpace(line) + "\n")
	}
	if len(it.From) > 0 {
		by := "Sentences of "
		if it.Strategy == SummariseRemote {
			by = "Written by another model from "
		}
		b.WriteString("(" + by + it.sources() + ")\n")
	}
	return b.String()
}

// sources names the messages from which a summary was made.
func (it *Item) sources() string {
	var all []string
	for from := it.From; len(from) > 0; {
		n := slices.IndexFunc(from, func(s Source) bool { return s.Context != from[0].Context || s.Branch != from[0].Branch })
		if n < 0 {
			n = len(from)
		}
		positions := make([]string, n)
		for i := range positions {
			positions[i] = fmt.Sprint("#", from[i].Position)
		}
		all = append(all, fmt.Sprintf("%s of %s, branch %s", strings.Join(positions, " "), from[0].Context, from[0].Branch))
		from = from[n:]
	}
	return strings.Join(all, "; ")
}
