package export

import (
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

// claudeForm writes a session of Claude Code. The records of such a session stay verbatim. Of other conversations, what
// the system says is left out: Claude Code keeps no instructions in a session.
type claudeForm struct {
	turnForm
	start session
	own   bool // the context was imported from a session
	last  *uuid.UUID
}

func newClaude(w io.Writer, all bool) form {
	e := &claudeForm{turnForm: turnForm{w: w}}
	e.All, e.Show = all, e.turn
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

func (e *claudeForm) begin(c *ctxdir.Metadata, prompt string) error {
	e.start, e.own = sessionOf(c), isImportOf(c, importer.ClaudeCode)
	e.lost.Prompt = prompt != ""
	return nil
}

// message writes a record of Claude Code as it is, in its place.
func (e *claudeForm) message(m *record.Loaded) error {
	if m.Unavailable == nil && (transcript.IsClaude(m.Body) || e.own && m.Role == "") {
		return e.verbatim(m)
	}
	return e.Add(m)
}

func (e *claudeForm) turn(t *transcript.Turn[*record.Loaded]) error {
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
	content, results := s.anthropicBlocks()
	at := e.start.timeOf(m)
	if err := e.record(s.voice, content, m.ID, at); err != nil || len(results) == 0 {
		return err
	}
	return e.record(transcript.User, results, uuid.NewSHA1(m.ID, []byte("results")), at)
}

func (e *claudeForm) record(role string, content []any, id uuid.UUID, at time.Time) error {
	message := map[string]any{"role": role, "content": content}
	if role == transcript.Assistant {
		message["type"], message["model"], message["id"] = "message", "<synthetic>", "msg_"+strings.ReplaceAll(id.String(), "-", "")
	}
	r := claudeRecord{e.last, false, "external", e.start.cwd, e.start.id, "0.0.0", role, record.Encode(message), id, sessionTime(at)}
	e.last = &id
	return e.line(r)
}
