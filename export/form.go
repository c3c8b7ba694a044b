package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/view"
	"github.com/ctxdir/ctxdir/transcript"
)

// form writes a conversation as a provider or another tool takes it.
type form interface {
	begin(c *ctxdir.Metadata, prompt string) error
	message(m *record.Loaded) error // with its body in memory
	end() error
	omitted() Omissions
}

// Omissions counts what a form cannot hold.
type Omissions struct {
	Prompt             bool // the system prompt
	Messages, Thoughts int
}

// turnForm is what forms have in common: each message once it has the results of its tools.
type turnForm struct {
	w io.Writer
	conversation.Reader
	unnamed int            // calls that had no id
	ids     map[string]int // of the calls that were written; how many wanted each
	lost    Omissions
}

func (e *turnForm) message(m *record.Loaded) error { return e.Add(m) }

// verbatim writes a record as it is, after what came before.
func (e *turnForm) verbatim(m *record.Loaded) error {
	if err := e.Flush(); err != nil {
		return err
	}
	_, err := e.w.Write(append(m.Body[:len(m.Body):len(m.Body)], '\n'))
	return err
}

func (e *turnForm) end() error         { return e.Flush() }
func (e *turnForm) omitted() Omissions { return e.lost }
func (e *turnForm) line(v any) error {
	_, err := e.w.Write(append(record.Encode(v), '\n'))
	return err
}

// said is a turn in pieces that every form has.
type said struct {
	voice    string // "" if no form has a place for the turn
	texts    []string
	thoughts []string
	calls    []*transcript.Part // each with an id of its own
	images   []picture          // of the user
}

// picture is an image in base64.
type picture struct{ mediaType, data, name string }

// maxImages bounds the images of a message, in bytes of base64.
const maxImages = 64 << 20

// said splits a turn, and decides who speaks:
//
//   - the assistant, if the turn has calls of tools;
//   - the user, if it is a result without its call, or the summary that a tool made to go on with;
//   - else its own speaker. A record of an agent tool without a speaker has no place in another form.
//
// Images beyond maxImages in all, in base64, and those that no API takes, are named and not shown; so are images that
// the user did not send.
func (e *turnForm) said(t *transcript.Turn[*record.Loaded]) said {
	s := said{voice: t.Voice}
	orphan := false
	for i := range t.Parts {
		orphan = orphan || t.Parts[i].Kind == transcript.Result
		if p := &t.Parts[i]; p.Kind == transcript.Call {
			p.ID = e.callID(p.ID)
			s.calls = append(s.calls, p)
		}
	}
	switch {
	case len(s.calls) > 0:
		s.voice = transcript.Assistant
	case s.voice == transcript.Tool, s.voice == "" && (orphan || transcript.IsSummary(t.Message.Body)):
		s.voice = transcript.User
	}
	left := int64(maxImages)
	for i := range t.Parts {
		switch p := &t.Parts[i]; p.Kind {
		case transcript.Text:
			s.texts = append(s.texts, p.Text)
		case transcript.Thought:
			s.thoughts = append(s.thoughts, p.Text)
		case transcript.Result:
			s.texts = append(s.texts, strings.TrimSpace("[result of a tool] "+p.Text))
		case transcript.Attachment:
			if img, ok := imageOf(t.Message.Message, p, left); ok && s.voice == transcript.User {
				s.images = append(s.images, img)
				left -= int64(len(img.data))
			} else {
				s.texts = append(s.texts, view.File(t.Message.Message, p))
			}
		}
	}
	return s
}

// fits counts what a form without thoughts leaves out of a turn, and reports whether there is a message to write.
func (e *turnForm) fits(s *said) bool {
	fits := s.voice != "" && len(s.texts)+len(s.calls)+len(s.images) > 0
	e.lost.Thoughts += len(s.thoughts)
	if !fits && len(s.thoughts) == 0 {
		e.lost.Messages++
	}
	return fits
}

// maxCallID is the greatest length of the id of a call that the APIs take, in bytes.
const maxCallID = 40

// callID is an id for a call that no other one in the export has, from its own id. The APIs take each id once.
func (e *turnForm) callID(own string) string {
	if own == "" {
		e.unnamed++
		own = fmt.Sprintf("call_%d", e.unnamed)
	}
	if e.ids == nil {
		e.ids = map[string]int{}
	}
	wanted := toolName(own, maxCallID)
	id := wanted
	for e.ids[id] > 0 {
		e.ids[wanted]++
		suffix := fmt.Sprintf("_%d", e.ids[wanted])
		id = wanted[:min(len(wanted), maxCallID-len(suffix))] + suffix
	}
	e.ids[id]++
	return id
}

// functionName is a name of a tool that the APIs take.
func functionName(name string) string {
	const longest = 64 // bytes
	return toolName(name, longest)
}

// toolName keeps the letters, digits, underscores and dashes of a name, up to a length in bytes.
func toolName(name string, longest int) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), longest)]
}

// imageTypes are the types of images that the APIs take.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// imageOf returns the content of an attachment that is an image for an API, of at most limit bytes in base64.
func imageOf(m *ctxdir.Message, p *transcript.Part, limit int64) (picture, bool) {
	f := p.File
	if f == nil || !slices.Contains(imageTypes, f.MediaType) {
		return picture{}, false
	}
	data := view.Base64(m, f, limit/4*3)
	return picture{f.MediaType, data, p.Text}, data != ""
}

// resultText is the text of the results of a call. An API wants a result for each call.
func resultText(p *transcript.Part) string {
	if p.Results == nil {
		return "(no result was recorded)"
	}
	return transcript.Join(p.Results)
}

// argumentObject is the arguments of a call as a JSON object.
func argumentObject(p *transcript.Part) json.RawMessage {
	switch arguments := json.RawMessage(p.Text); {
	case transcript.ObjectOf(arguments) != nil:
		return arguments
	case p.Text == "", p.Text == "null":
		return json.RawMessage("{}")
	}
	if transcript.KindOf(json.RawMessage(p.Text)) == '"' && json.Valid([]byte(p.Text)) {
		return record.Encode(map[string]json.RawMessage{"input": json.RawMessage(p.Text)})
	}
	return record.Encode(map[string]string{"input": p.Text})
}

// textOf is a text as JSON.
func textOf(text string) json.RawMessage { return record.Encode(text) }

// elements writes the elements of a JSON array, or the members of an object, one a line.
type elements struct {
	w     io.Writer
	begun bool
}

func (l *elements) element(v any) error { return l.add(record.Encode(v)) }

func (l *elements) member(key string, v any) error {
	return l.add(append(append(textOf(key), ':'), record.Encode(v)...))
}

func (l *elements) add(text []byte) error {
	separator := "\n  "
	if l.begun {
		separator = ",\n  "
	}
	l.begun = true
	_, err := l.w.Write(append([]byte(separator), text...))
	return err
}
