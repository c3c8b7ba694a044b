package export

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// The forms in which agent tools keep their sessions, so that they can resume a conversation from elsewhere.

// sessionTime is the time of a record, as Claude Code and Codex write it.
func sessionTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// session is a session: where it took place, and the time until now.
type session struct {
	id  uuid.UUID
	at  time.Time
	cwd string
}

func sessionOf(c *ctxdir.Metadata) session {
	s := session{id: c.ID, at: c.CreatedAt, cwd: c.Labels["project"]}
	s.cwd = cmp.Or(s.cwd, "/")
	return s
}

// codexForm writes a rollout of Codex. Its records of type event_msg are what Codex shows of a session that it resumes.
type codexForm struct {
	turnForm
	start session
	meta  *codexRecord // the first record, until it is written
}

func newCodex(w io.Writer, all bool) form {
	e := &codexForm{turnForm: turnForm{w: w}}
	e.All, e.Show = all, e.turn
	return e
}

type codexRecord struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

func (e *codexForm) begin(c *ctxdir.Metadata, prompt string) error {
	e.start = sessionOf(c)
	meta := map[string]any{
		"id": e.start.id, "timestamp": sessionTime(e.start.at), "cwd": e.start.cwd, "originator": "ctxtool", "cli_version": "0.0.0",
		"instructions": nil, "source": "cli",
	}
	if prompt != "" {
		meta["instructions"] = prompt
	}
	e.meta = &codexRecord{sessionTime(e.start.at), "session_meta", meta}
	return nil
}

// message writes a record of Codex as it is, in its place.
func (e *codexForm) message(m *record.Loaded) error {
	if m.Unavailable != nil || !transcript.IsCodex(m.Body) {
		return e.Add(m)
	}
	e.meta = nil
	return e.verbatim(m)
}

func (e *codexForm) end() error {
	if err := e.begun(); err != nil {
		return err
	}
	return e.turnForm.end()
}

// begun writes the first record, unless that was done.
func (e *codexForm) begun() error {
	meta := e.meta
	if e.meta = nil; meta == nil {
		return nil
	}
	return e.line(meta)
}

func (e *codexForm) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	if m.Unavailable != nil {
		return nil
	}
	s := e.said(t)
	if s.voice == "" || len(s.texts)+len(s.thoughts)+len(s.calls)+len(s.images) == 0 {
		e.lost.Messages++
		return nil
	}
	at := sessionTime(e.start.timeOf(m))
	failed := e.begun()
	put := func(kind string, payload any) {
		if failed == nil {
			failed = e.line(codexRecord{at, kind, payload})
		}
	}
	if len(s.thoughts) > 0 {
		var summary []any
		for _, text := range s.thoughts {
			summary = append(summary, textBlock{"summary_text", text})
		}
		put("response_item", map[string]any{"type": "reasoning", "summary": summary})
	}
	role, block, event := "user", "input_text", "user_message"
	switch s.voice {
	case transcript.Assistant:
		role, block, event = "assistant", "output_text", "agent_message"
	case transcript.System:
		role, event = "developer", ""
	}
	var content []any
	for _, text := range s.texts {
		content = append(content, textBlock{block, text})
	}
	for _, img := range s.images {
		content = append(content, map[string]string{"type": "input_image", "image_url": "data:" + img.mediaType + ";base64," + img.data})
	}
	if len(content) > 0 {
		put("response_item", map[string]any{"type": "message", "role": role, "content": content})
	}
	if event != "" && len(s.texts) > 0 {
		put("event_msg", map[string]string{"type": event, "message": strings.Join(s.texts, "\n\n")})
	}
	for _, p := range s.calls {
		put("response_item", map[string]string{
			"type": "function_call", "name": functionName(p.Name), "arguments": string(argumentObject(p)), "call_id": p.ID,
		})
		put("response_item", map[string]string{"type": "function_call_output", "call_id": p.ID, "output": resultText(p)})
	}
	return failed
}

// timeOf is the time of a message, or that of the one before it.
func (s *session) timeOf(m *record.Loaded) time.Time {
	if !m.CreatedAt.IsZero() {
		s.at = m.CreatedAt
	}
	return s.at
}
