package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/chat"
	"github.com/ctxdir/ctxdir/internal/view"
)

// turnExport is what exports to other tools' forms have in common: each message once it has the results of its tools.
type turnExport struct {
	w io.Writer
	conversation
	calls    int // calls that had no id
	unlisted int // messages that the form cannot hold
}

func (e *turnExport) message(ctx context.Context, m *loadedMessage) error {
	m, err := m.inMemory(ctx)
	if err != nil {
		return err
	}
	return e.add(m)
}

// verbatim writes a record as it is, after what came before.
func (e *turnExport) verbatim(m *loadedMessage) error {
	if err := e.turns.Flush(); err != nil {
		return err
	}
	_, err := e.w.Write(append(m.Body[:len(m.Body):len(m.Body)], '\n'))
	return err
}

func (e *turnExport) end() error { return e.turns.Flush() }
func (e *turnExport) unfit() int { return e.unlisted }
func (e *turnExport) line(v any) error {
	_, err := e.w.Write(append(encode(v), '\n'))
	return err
}

// said is a turn in pieces that every form has.
type said struct {
	voice    string
	texts    []string
	thoughts []string
	calls    []*chat.Part // with their ids
	orphans  []chat.Part  // results whose calls are not there
	images   []image
}

// image is an image in base64.
type image struct{ mediaType, data, name string }

// said splits a turn. Tool calls without an id get one. Images beyond maxParsedBody in all, in base64, are named and not
// shown.
func (e *turnExport) said(t *chat.Turn[*loadedMessage]) said {
	s := said{voice: t.Voice}
	left := int64(maxParsedBody)
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case chat.Text:
			s.texts = append(s.texts, p.Text)
		case chat.Thought:
			s.thoughts = append(s.thoughts, p.Text)
		case chat.Call:
			if p.ID == "" {
				e.calls++
				p.ID = fmt.Sprintf("call_%d", e.calls)
			}
			s.calls = append(s.calls, p)
		case chat.Result:
			s.orphans = append(s.orphans, *p)
		case chat.Attachment:
			if img, ok := imageOf(t.Message.Message, p, left); ok {
				s.images = append(s.images, img)
				left -= int64(len(img.data))
			} else {
				s.texts = append(s.texts, view.File(t.Message.Message, p))
			}
		}
	}
	// A result without its call is a text of the user: no form has another place for it.
	for _, r := range s.orphans {
		s.texts = append(s.texts, strings.TrimSpace("[result of a tool] "+r.Text))
	}
	if s.voice == chat.Tool || s.voice == "" && len(s.orphans) > 0 {
		s.voice = chat.User
	}
	return s
}

func (s *said) nothing() bool { return len(s.texts)+len(s.calls)+len(s.images) == 0 }

// imageOf returns the content of an attachment that is an image of at most limit bytes in base64.
func imageOf(m *ctxdir.Message, p *chat.Part, limit int64) (image, bool) {
	f := p.File
	if f == nil || !strings.HasPrefix(f.MediaType, "image/") || f.HasText() { // SVG is a text
		return image{}, false
	}
	data := contentOf(m, f, limit/4*3)
	return image{f.MediaType, data, p.Text}, data != ""
}

// contentOf is the content of an attachment in base64, "" if it cannot be read.
func contentOf(m *ctxdir.Message, f *chat.FileRef, limit int64) string {
	if f.Payload == nil {
		return f.Base64
	}
	b, err := view.Content(m, f, limit)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(b)
}

// resultText is the text of the results of a call. An API wants a result for each call.
func resultText(p *chat.Part) string {
	if p.Results == nil {
		return "(no result was recorded)"
	}
	return chat.Join(p.Results)
}

// argumentObject is the arguments of a call as a JSON object.
func argumentObject(p *chat.Part) json.RawMessage {
	if chat.ObjectOf(json.RawMessage(p.Text)) != nil {
		return json.RawMessage(p.Text)
	}
	if chat.KindOf(json.RawMessage(p.Text)) == '"' && json.Valid([]byte(p.Text)) {
		return encode(map[string]json.RawMessage{"input": json.RawMessage(p.Text)})
	}
	return encode(map[string]string{"input": p.Text})
}

// jsonList writes the elements of a JSON array, one a line.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) element(v any) error {
	separator := "\n  "
	if l.begun {
		separator = ",\n  "
	}
	l.begun = true
	if _, err := io.WriteString(l.w, separator); err != nil {
		return err
	}
	_, err := l.w.Write(encode(v))
	return err
}
