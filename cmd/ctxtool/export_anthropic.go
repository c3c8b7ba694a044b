package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// anthropicExport writes an object with system prompt and messages that the API of Anthropic takes: user and assistant
// in turns, and the result of each tool call in the next message of the user. What the system says is all in the prompt.
// Thoughts are left out: the API takes only those that it signed, and only from the model that had them.
type anthropicExport struct {
	turnExport
	list    jsonList
	system  []string
	role    string // of the message that is not written yet
	content []any
	results []any // of its calls
}

func newAnthropic(w io.Writer, read reading) exporter {
	e := &anthropicExport{turnExport: turnExport{w: w}, list: jsonList{w: w}}
	e.All, e.Show = read.all, e.turn
	return e
}

func (e *anthropicExport) begin(c *ctxdir.Metadata, branch string) error {
	if prompt := systemPrompt(c, branch); prompt != "" {
		e.system = append(e.system, prompt)
	}
	_, err := io.WriteString(e.w, `{"messages":[`)
	return err
}

func (e *anthropicExport) end() error {
	err := e.turnExport.end()
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

type imageBlock struct {
	Type   string     `json:"type"`
	Source fileSource `json:"source"`
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

func (e *anthropicExport) turn(t *transcript.Turn[*record.Loaded]) error {
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
		e.role, e.content = transcript.User, []any{textContent{"text", "(the conversation begins with the assistant)"}}
	}
	for e.role != "" && (s.voice != e.role || len(e.results) > 0) {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.role = s.voice
	for _, text := range s.texts {
		e.content = append(e.content, textContent{"text", text})
	}
	for _, img := range s.images {
		e.content = append(e.content, imageBlock{"image", fileSource{"base64", img.mediaType, img.data}})
	}
	for _, p := range s.calls {
		e.content = append(e.content, toolUse{"tool_use", p.ID, functionName(p.Name), argumentObject(p)})
		failed := len(p.Results) > 0 && p.Results[0].Failed
		e.results = append(e.results, toolResult{"tool_result", p.ID, resultText(p), failed})
	}
	return nil
}

// flush writes the message that is not written yet. The results of its calls begin the next one, of the user.
func (e *anthropicExport) flush() error {
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
