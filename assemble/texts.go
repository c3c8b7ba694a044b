package assemble

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/view"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/go-json-experiment/json/jsontext"
)

// maxText bounds the text of a message, in bytes.
const maxText = 256 << 10

// read returns what a message says. ok is false for a record of bookkeeping, a moment, and a message that cannot be
// read.
func (b *builder) read(m *ctxdir.Message) (voice string, all []section, ok bool) {
	if m.Unavailable != nil || message.IsBookkeeping(m.Role) || m.Role == moment.Role {
		return "", nil, false
	}
	body, err := m.Texts(b.ctx)
	if err != nil {
		b.unread.Store(true)
	}
	if err != nil && len(body) == 0 {
		body = m.Stored
	}
	if transcript.Bookkeeping(body) {
		return "", nil, false
	}
	parts := transcript.Parts(body)
	all = sectionsOf(m, parts)
	voice = transcript.VoiceOf(m.Role, parts)
	if !slices.ContainsFunc(all, func(s section) bool { return !s.result }) {
		voice = transcript.Tool
	}
	return voice, all, len(all) > 0
}

func sectionsOf(m *ctxdir.Message, parts []transcript.Part) (all []section) {
	size := 0
	add := func(label, text string, kind transcript.Kind) {
		text = strings.ToValidUTF8(strings.TrimSpace(text), "�")
		if text == "" || size > maxText {
			return
		}
		text = cutAt(text, maxText-size)
		size += len(text)
		work := kind == transcript.Thought || kind == transcript.Call || kind == transcript.Result
		all = append(all, section{label + text, work, kind == transcript.Result, kind == transcript.Text})
	}
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case transcript.Text:
			add("", p.Text, p.Kind)
		case transcript.Thought:
			add("[thought] ", p.Text, p.Kind)
		case transcript.Call:
			add("["+p.Name+"] ", plain(p.Text), p.Kind)
			for _, r := range p.Results {
				add("[result] ", r.Text, transcript.Result)
			}
		case transcript.Result:
			add("[result] ", p.Text, p.Kind)
		case transcript.Attachment:
			add("", view.File(m, p), p.Kind)
		default:
			add("", p.Text, p.Kind)
		}
	}
	return all
}

// cutAt cuts a text to at most so many bytes, between characters.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}

// plain returns the arguments of a call as lines with a name and a value, without the escapes of JSON.
func plain(arguments string) string {
	if !strings.HasPrefix(arguments, "{") {
		return arguments
	}
	var lines []string
	d := jsontext.NewDecoder(strings.NewReader(arguments), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return arguments
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return arguments
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return arguments
		}
		text := string(value)
		if value.Kind() == '"' {
			if json.Unmarshal(value, &text) != nil {
				return arguments
			}
		}
		lines = append(lines, key+": "+text)
	}
	if _, err := d.ReadToken(); err != nil {
		return arguments
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return arguments
	}
	if len(lines) == 1 {
		_, value, _ := strings.Cut(lines[0], ": ")
		return value
	}
	return strings.Join(lines, "\n")
}

// passageLength is about the length of a passage, in bytes.
const passageLength = 400

// passages splits a text into pieces of about passageLength: between lines, else between sentences, else between words.
func passages(text string) (all []string) {
	const most = passageLength * 3 / 2
	for len(text) > most {
		end := breakAt(text, passageLength, most)
		if p := strings.Trim(text[:end], "\n\r"); strings.TrimSpace(p) != "" {
			all = append(all, p)
		}
		text = text[end:]
	}
	if p := strings.Trim(text, "\n\r"); strings.TrimSpace(p) != "" {
		all = append(all, p)
	}
	return all
}

// breakAt returns where to break a text, not after most.
func breakAt(text string, about, most int) int {
	least := about / 2
	part := text[:most]
	for _, mark := range []string{"\n", ". ", "; ", " "} {
		if i := strings.Index(part[about:], mark); i >= 0 && mark == "\n" {
			return about + i + 1
		}
		if i := strings.LastIndex(part[least:], mark); i >= 0 {
			return least + i + len(mark)
		}
	}
	end := most
	for end > least && text[end]&0xc0 == 0x80 { // within a character
		end--
	}
	return end
}

// distinct is a list without repeated elements, in order.
func distinct[T comparable](all []T) (once []T) {
	for _, v := range all {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// textOf returns the text of a system prompt.
func textOf(prompt json.RawMessage) string {
	return strings.TrimSpace(transcript.Join(transcript.Content(prompt)))
}
