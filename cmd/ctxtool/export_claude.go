package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// claudeExport writes a session of Claude Code. The records of such a session stay verbatim. Of other conversations, what
// the system says is left out: Claude Code keeps no instructions in a session.
type claudeExport struct {
	turnExport
	start session
	own   bool // the context was imported from a session
	last  *uuid.UUID
}

func newClaude(w io.Writer, read reading) exporter {
	e := &claudeExport{turnExport: turnExport{w: w}}
	e.All, e.Show = read.all, e.turn
	return e
}

type claudeRecord struct {
	Parent    *uuid.UUID      `json:"parentUuid"`
	Sidechain bool            `json:"isSidechain"`
	UserType  string          `json:"userType"`
	CWD       string          `json:"cwd"`
	Session   uuid.UUID       `json:"sessionId"`
	Version   string          `json:"version"`
	Type      string          `json:"type"`
	Message   json.RawMessage `json:"message"`
	ID        uuid.UUID       `json:"uuid"`
	Timestamp string          `json:"timestamp"`
}

func (e *claudeExport) begin(c *ctxdir.Metadata, branch string) error {
	e.start, e.own = sessionOf(c), isImportOf(c, importer.ClaudeCode)
	e.lost.prompt = systemPrompt(c, branch) != ""
	return nil
}

// message writes a record of Claude Code as it is, in its place.
func (e *claudeExport) message(ctx context.Context, m *record.Loaded) error {
	m, err := m.InMemory(ctx)
	if err != nil {
		return err
	}
	if m.Unavailable == nil && (transcript.IsClaude(m.Body) || e.own && m.Role == "") {
		return e.verbatim(m)
	}
	return e.Add(m)
}

func (e *claudeExport) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	if m.Unavailable != nil {
		return nil
	}
	s := e.said(t)
	if s.voice == transcript.System {
		s.voice = ""
	}
	if !e.fits(&s) {
		return nil
	}
	var content, results []any
	for _, text := range s.texts {
		content = append(content, textContent{"text", text})
	}
	for _, img := range s.images {
		content = append(content, imageBlock{"image", fileSource{"base64", img.mediaType, img.data}})
	}
	for _, p := range s.calls {
		content = append(content, toolUse{"tool_use", p.ID, functionName(p.Name), argumentObject(p)})
		results = append(results, toolResult{"tool_result", p.ID, resultText(p), len(p.Results) > 0 && p.Results[0].Failed})
	}
	at := e.start.timeOf(m)
	if err := e.record(s.voice, content, m.ID, at); err != nil || len(results) == 0 {
		return err
	}
	return e.record(transcript.User, results, ctxdir.DerivedID(m.ID, "results"), at)
}

func (e *claudeExport) record(role string, content []any, id uuid.UUID, at time.Time) error {
	message := map[string]any{"role": role, "content": content}
	if role == transcript.Assistant {
		message["type"], message["model"], message["id"] = "message", "<synthetic>", "msg_"+strings.ReplaceAll(id.String(), "-", "")
	}
	r := claudeRecord{e.last, false, "external", e.start.cwd, e.start.id, "0.0.0", role, record.Encode(message), id, sessionTime(at)}
	e.last = &id
	return e.line(r)
}
