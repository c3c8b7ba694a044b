package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

const (
	// maxParted bounds the messages whose parts are sent at once.
	maxParted = 500
	// backToTurn bounds the messages before a range that are sent so that it begins with a turn.
	backToTurn = 200
	// ahead bounds the messages behind a range in which results of its calls are looked for.
	ahead = 64
	// cutAbove is the size, in bytes, from which a text is cut to its beginning and its end.
	cutAbove  = 64 << 10
	beginning = 48 << 10
	ending    = 16 << 10
)

// partRecord is a part of a message as people see it. A long text is cut: Text is its beginning, Tail its end.
type partRecord struct {
	Kind    string `json:"kind"`
	Number  int    `json:"number"` // of the part in its message
	Text    string `json:"text"`
	Tail    string `json:"tail,omitempty"`
	Bytes   int    `json:"bytes"` // of the whole text
	Name    string `json:"name,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Summary string `json:"summary,omitempty"`
	Added   int64  `json:"added,omitempty"`
	Removed int64  `json:"removed,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	// Inserted says that a tool put the text into the prompt of a person; Said is what the person typed, if that is not
	// the text itself.
	Inserted bool   `json:"inserted,omitempty"`
	Said     string `json:"said,omitempty"`

	Results []resultRecord `json:"results,omitempty"`
	File    *fileOfPart    `json:"file,omitempty"`
}

// resultRecord is the result of a call, and where it is.
type resultRecord struct {
	Position int64  `json:"position"` // of the message
	ID       string `json:"id"`
	partRecord
}

// readMessage is a message as people read it.
type readMessage struct {
	Position    int64        `json:"position"`
	ID          string       `json:"id"`
	Role        string       `json:"role"`
	Voice       string       `json:"voice"`
	At          time.Time    `json:"at,omitzero"`
	Edited      bool         `json:"edited,omitempty"`
	Bookkeeping bool         `json:"bookkeeping,omitempty"`
	Summary     bool         `json:"summary,omitempty"`
	Unavailable string       `json:"unavailable,omitempty"`
	Parts       []partRecord `json:"parts"` // without results that stand with their calls

	timed bool // At is in the message, and not the time of its commit
}

type readList struct {
	Messages []readMessage `json:"messages"`
	From     int64         `json:"from"`
	To       int64         `json:"to"`
	Length   int64         `json:"length"` // of the branch
	Turns    []turnRecord  `json:"turns,omitempty"`
}

// listParts sends messages as people read them: results stand with their calls, and long texts are cut.
func (x *Server) listParts(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	s, turns, whole := p.span(), p.yes("turns"), p.yes("whole")
	if err := p.done(); err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		n, err := b.Len(r.Context())
		if err != nil {
			return err
		}
		from, to, err := s.positions(r.Context(), b, n)
		if err != nil {
			return err
		}
		if to-from > maxParted {
			return invalid("to: the range exceeds the limit of %d messages", maxParted)
		}
		list := readList{From: from, To: to, Length: n}
		if turns || whole {
			if err := x.outlineRange(r.Context(), c, b, &list, turns, whole); err != nil {
				return err
			}
		}
		reading := &reading{from: list.From, to: to, open: map[string]*partRecord{}}
		for m, err := range b.Messages(r.Context(), list.From, min(to+ahead, n)) {
			if err != nil {
				return err
			}
			if m.Position >= to && reading.closed() {
				break
			}
			if err := reading.add(r.Context(), m); err != nil {
				return err
			}
		}
		list.Messages = record.List(reading.all)
		return sendDocument(w, http.StatusOK, list)
	})
}

// outlineRange adds the turns that a range touches, and lets it begin with one.
func (x *Server) outlineRange(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, list *readList, turns, whole bool) error {
	o, err := x.outlineOf(ctx, c, b)
	if err != nil {
		return err
	}
	if begin, _ := o.Turn(o.TurnAt(list.From)); whole && list.From-begin <= backToTurn && list.To-begin <= maxParted {
		list.From = min(begin, list.From)
	}
	if turns {
		list.Turns, err = o.turns(ctx, o.TurnAt(list.From), o.TurnAt(max(list.To-1, list.From))+1)
	}
	return err
}

// reading joins the results of tools with the calls before them.
type reading struct {
	from, to int64
	all      []readMessage
	open     map[string]*partRecord // calls without a result, by id
}

func (x *reading) closed() bool { return len(x.open) == 0 }

func (x *reading) add(ctx context.Context, m *ctxdir.Message) error {
	is := readMessage{Position: m.Position, ID: m.ID.String(), Role: m.Role, At: m.CreatedAt, Edited: m.Edited, Parts: []partRecord{}}
	if is.timed = !is.At.IsZero(); !is.timed {
		is.At = m.StoredAt
	}
	var parts []transcript.Part
	if m.Unavailable != nil {
		is.Unavailable = record.Problem(m.Unavailable)
	} else {
		body, err := m.Texts(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			is.Unavailable = record.Problem(err)
		}
		if len(body) == 0 {
			body = m.Stored
		}
		parts = transcript.Parts(body)
		is.Voice = transcript.VoiceOf(m.Role, parts)
		is.Summary = transcript.IsSummary(body)
		is.Bookkeeping = message.IsBookkeeping(m.Role) || transcript.Bookkeeping(body)
	}
	is.Parts = make([]partRecord, 0, len(parts)) // calls are referred to: it does not grow
	for i := range parts {
		p := &parts[i]
		if p.Kind == transcript.Result && x.join(m, p, i) {
			continue
		}
		if m.Position >= x.to {
			continue
		}
		part := partOf(m, p, i)
		if is.Voice == transcript.User && p.Kind == transcript.Text {
			part.say(p.Text)
		}
		is.Parts = append(is.Parts, part)
		if last := &is.Parts[len(is.Parts)-1]; p.Kind == transcript.Call && p.ID != "" && p.Results == nil {
			x.open[p.ID] = last
		}
	}
	if m.Position < x.to {
		x.all = append(x.all, is)
	}
	return nil
}

// say adds what a person says in a text.
func (p *partRecord) say(text string) {
	said := message.Said(text)
	if p.Inserted = said == "" && strings.TrimSpace(text) != ""; !p.Inserted && said != strings.TrimSpace(text) {
		p.Said, _ = cut(said)
	}
}

// join gives a result to the call that waits for it.
func (x *reading) join(m *ctxdir.Message, p *transcript.Part, number int) bool {
	call := x.open[p.ID]
	if p.ID == "" || call == nil {
		return false
	}
	delete(x.open, p.ID)
	call.Results = append(call.Results, resultRecord{m.Position, m.ID.String(), partOf(m, p, number)})
	return true
}

func partOf(m *ctxdir.Message, p *transcript.Part, number int) partRecord {
	is := partRecord{Kind: p.Kind.String(), Number: number, Bytes: len(p.Text), Name: p.Name, Failed: p.Failed}
	is.Text, is.Tail = cut(p.Text)
	switch p.Kind {
	case transcript.Call:
		is.Tool, is.Summary = p.ToolKind().String(), line(p.Summary())
		is.Added, is.Removed = p.Changes(maxChanges)
		for i := range p.Results {
			is.Results = append(is.Results, resultRecord{m.Position, m.ID.String(), partOf(m, &p.Results[i], number)})
		}
	case transcript.Attachment:
		is.File = fileOf(m, p.File)
	}
	return is
}

// maxChanges bounds the arguments of a call whose changes are counted, in bytes.
const maxChanges = 256 << 10

// cut cuts a long text to its beginning and its end.
func cut(text string) (begin, end string) {
	if len(text) <= cutAbove {
		return text, ""
	}
	at, tail := beginning, len(text)-ending
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:at], text[tail:]
}

// line is the beginning of a text, in one line.
func line(text string) string {
	const most = 300 // bytes
	if len(text) > 4*most {
		text = text[:4*most]
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// getPart sends the whole text of a part of a message, or a range of it. The text is anybody's, so a browser must not
// show it as a page.
func (x *Server) getPart(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	result := p.number("result", -1)
	if err := p.done(); err != nil {
		return err
	}
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 31)
	if err != nil {
		return problem(codeNotFound, "%q is not the number of a part", short(r.PathValue("number")))
	}
	return x.withMessage(r, func(_ *ctxdir.Branch, m *ctxdir.Message) error {
		if m.Unavailable != nil {
			return m.Unavailable
		}
		body, err := m.Texts(r.Context())
		if err != nil {
			return err
		}
		parts := transcript.Parts(body)
		if int(number) < len(parts) && result >= 0 {
			parts, number = parts[number].Results, uint64(result)
		}
		if number >= uint64(len(parts)) {
			return problem(codeNotFound, "the message has no such part")
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Disposition", "attachment")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(parts[number].Text))
		return nil
	})
}
