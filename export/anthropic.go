package export

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// anthropicForm writes an object with system prompt and messages that the API of Anthropic takes: user and assistant
// in turns, and the result of each tool call in the next message of the user. What the system says is all in the prompt.
// Thoughts are left out: the API takes only those that it signed, and only from the model that had them.
type anthropicForm struct {
	turnForm
	list    elements
	system  []string
	role    string // of the message that is not written yet
	content []any
	results []any // of its calls
}

func newAnthropic(w io.Writer, all bool) form {
	e := &anthropicForm{turnForm: turnForm{w: w}, list: elements{w: w}}
	e.All, e.Show = all, e.turn
	return e
}

func (e *anthropicForm) begin(_ *ctxdir.Metadata, prompt string) error {
	if prompt != "" {
		e.system = append(e.system, prompt)
	}
	_, err := io.WriteString(e.w, `{"messages":[`)
	return err
}

func (e *anthropicForm) end() error {
	err := e.turnForm.end()
	for err == nil && e.role != "" {
		err = e.flush()
	}
	if err != nil {
		return err
	}
	end := "\n]"
	if len(e.system) > 0 {
		end += `,"system":` + string(textOf(strings.Join(e.system, "\n\n")))
	}
	_, err = io.WriteString(e.w, end+"}\n")
	return err
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// textBlock is a text of the APIs, and of the tools that keep what they send.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imageBlock struct {
	Type   string      `json:"type"`
	Source imageSource `json:"source"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
}

// anthropicBlocks are the blocks of a turn, and the results of its calls, which are of the user.
func (s *said) anthropicBlocks() (content, results []any) {
	for _, text := range s.texts {
		content = append(content, textBlock{"text", text})
	}
	for _, img := range s.images {
		content = append(content, imageBlock{"image", imageSource{"base64", img.mediaType, img.data}})
	}
	for _, p := range s.calls {
		content = append(content, toolUse{"tool_use", p.ID, functionName(p.Name), argumentObject(p)})
		failed := len(p.Results) > 0 && p.Results[0].Failed
		results = append(results, toolResult{"tool_result", p.ID, resultText(p), failed})
	}
	return content, results
}

func (e *anthropicForm) turn(t *transcript.Turn[*record.Loaded]) error {
	if t.Message.Unavailable != nil {
		return nil
	}
	s := e.said(t)
	if !e.fits(&s) {
		return nil
	}
	if s.voice == transcript.System {
		e.system = append(e.system, s.texts...)
		return nil
	}
	if !e.list.begun && e.role == "" && s.voice == transcript.Assistant { // the API wants a message of the user first
		e.role, e.content = transcript.User, []any{textBlock{"text", "(the conversation begins with the assistant)"}}
	}
	for e.role != "" && (s.voice != e.role || len(e.results) > 0) {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.role = s.voice
	content, results := s.anthropicBlocks()
	e.content, e.results = append(e.content, content...), append(e.results, results...)
	return nil
}

// flush writes the message that is not written yet. The results of its calls begin the next one, of the user.
func (e *anthropicForm) flush() error {
	if len(e.content) > 0 {
		if err := e.list.element(anthropicMessage{e.role, e.content}); err != nil {
			return err
		}
	}
	e.content, e.role, e.results = e.results, "", nil
	if len(e.content) > 0 {
		e.role = transcript.User
	}
	return nil
}
