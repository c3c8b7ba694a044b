package export

import (
	"io"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// chatGPTForm writes a file like conversations.json in an export of ChatGPT, with one conversation. A node is written
// when the next one is known: it names its child.
type chatGPTForm struct {
	turnForm
	nodes elements
	last  *chatGPTNode
	start session
}

func newChatGPT(w io.Writer, all bool) form {
	e := &chatGPTForm{turnForm: turnForm{w: w}, nodes: elements{w: w}}
	e.All, e.Show = all, e.turn
	return e
}

type chatGPTNode struct {
	ID       uuid.UUID       `json:"id"`
	Message  *chatGPTMessage `json:"message"`
	Parent   *uuid.UUID      `json:"parent"`
	Children []uuid.UUID     `json:"children"`
}

type chatGPTMessage struct {
	ID        uuid.UUID      `json:"id"`
	Author    map[string]any `json:"author"`
	CreatedAt float64        `json:"create_time"`
	Content   any            `json:"content"`
	Status    string         `json:"status"`
	Recipient string         `json:"recipient"`
}

func (e *chatGPTForm) begin(c *ctxdir.Metadata, prompt string) error {
	e.start = sessionOf(c)
	e.last = &chatGPTNode{ID: uuid.NewSHA1(c.ID, []byte("root")), Children: []uuid.UUID{}}
	head := `[{"id":` + string(textOf(c.ID.String())) + `,"title":` + string(textOf(c.Title)) +
		`,"create_time":` + string(record.Encode(seconds(c.CreatedAt))) +
		`,"update_time":` + string(record.Encode(seconds(c.UpdatedAt))) + `,"mapping":{`
	if _, err := io.WriteString(e.w, head); err != nil {
		return err
	}
	if prompt != "" {
		return e.text(uuid.NewSHA1(c.ID, []byte("system prompt")), transcript.System, seconds(c.CreatedAt), prompt)
	}
	return nil
}

// text writes a node with a text.
func (e *chatGPTForm) text(id uuid.UUID, role string, at float64, text string) error {
	content := map[string]any{"content_type": "text", "parts": []string{text}}
	return e.node(&chatGPTMessage{ID: id, Author: author(role, ""), CreatedAt: at, Content: content, Recipient: "all"})
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (e *chatGPTForm) end() error {
	if err := e.turnForm.end(); err != nil {
		return err
	}
	current := e.last.ID
	if err := e.nodes.member(current.String(), e.last); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n},\"current_node\":"+string(textOf(current.String()))+"}]\n")
	return err
}

func (e *chatGPTForm) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	if m.Unavailable != nil {
		return nil
	}
	s := e.said(t)
	if !e.fits(&s) {
		return nil
	}
	at := seconds(e.start.timeOf(m))
	var texts []string
	texts = append(texts, s.texts...)
	for _, img := range s.images {
		texts = append(texts, "["+img.name+"]")
	}
	if len(texts) > 0 {
		if err := e.text(m.ID, s.voice, at, strings.Join(texts, "\n\n")); err != nil {
			return err
		}
	}
	for _, p := range s.calls {
		call := &chatGPTMessage{
			ID: uuid.NewSHA1(m.ID, []byte("call "+p.ID)), Author: author(transcript.Assistant, ""), CreatedAt: at, Recipient: functionName(p.Name),
			Content: map[string]any{"content_type": "code", "language": "unknown", "text": p.Text},
		}
		result := &chatGPTMessage{
			ID: uuid.NewSHA1(m.ID, []byte("result "+p.ID)), Author: author(transcript.Tool, functionName(p.Name)), CreatedAt: at, Recipient: "all",
			Content: map[string]any{"content_type": "execution_output", "text": resultText(p)},
		}
		for _, x := range []*chatGPTMessage{call, result} {
			if err := e.node(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func author(role, name string) map[string]any {
	if name == "" {
		return map[string]any{"role": role, "name": nil, "metadata": map[string]any{}}
	}
	return map[string]any{"role": role, "name": name, "metadata": map[string]any{}}
}

// node writes the node before, which now knows its child.
func (e *chatGPTForm) node(m *chatGPTMessage) error {
	m.Status = "finished_successfully"
	before := e.last
	before.Children = append(before.Children, m.ID)
	e.last = &chatGPTNode{ID: m.ID, Message: m, Parent: &before.ID, Children: []uuid.UUID{}}
	return e.nodes.member(before.ID.String(), before)
}
