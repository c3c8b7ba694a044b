package importer

import (
	"encoding/json"
	"errors"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// chat imports chat messages, or objects of any kind. The file is one conversation, or each of its objects holds a
// conversation under "messages".
func (j *job) chat() error {
	// Read until the kind of file is known.
	var opening []json.RawMessage
	many := false
	err := j.each(j.records(nil, nil), func(body json.RawMessage, _ int64) error {
		_, many = conversationOf(body)
		many = many && j.format == OpenAI
		opening = append(opening, body)
		if !many && instruction(body) && len(opening) < openingRecords {
			return nil
		}
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !many {
		info := Info{Format: j.format}
		info.begin(opening)
		return j.messages(info, nil, func(report func(int64, string)) records { return j.records(report, j.o.Progress) })
	}
	return j.each(j.records(j.report, j.o.Progress), func(body json.RawMessage, line int64) error {
		messages, ok := conversationOf(body)
		if !ok {
			j.report(line, `not a conversation: it has no "messages"`)
			return nil
		}
		info := Info{Format: j.format}
		extra, err := info.members(body)
		if err != nil {
			return err
		}
		opening := openingOf(messages)
		if len(opening) == 0 {
			j.report(line, "a conversation without messages")
			return nil
		}
		info.begin(opening)
		info.Replaces = true
		err = j.messages(info, extra, func(report func(int64, string)) records { return newInMemory(messages, line, report) })
		if err != nil {
			if j.ctx.Err() != nil {
				return err
			}
			if !j.emit(j.result(), err) {
				return errStop
			}
		}
		if j.stopped {
			return errStop
		}
		return nil
	})
}

// messages imports one conversation.
func (j *job) messages(info Info, extra json.RawMessage, open func(report func(int64, string)) records) error {
	if info.ID == uuid.Nil {
		// There is no opening: only report the problems of the file.
		return j.each(open(j.report), func(json.RawMessage, int64) error { return nil })
	}
	report := j.once()
	j.emit(j.attempt(info, func(s *session) error {
		if err := s.extra(extra); err != nil {
			return err
		}
		main := &target{name: Main}
		return j.each(open(report()), func(body json.RawMessage, _ int64) error { return s.put(main, ownID(body), body) })
	}))
	return nil
}

// begin fills in what the first messages of a conversation reveal about it.
func (info *Info) begin(opening []json.RawMessage) {
	var titled json.RawMessage
	for i, body := range opening {
		_ = message.Members(body, func(name string, v jsontext.Value) error {
			switch name {
			case "sessionId", "session_id", "conversation_id", "thread_id":
				// Only from the first message: a longer state of the file has the same one.
				if i == 0 && info.Session == "" {
					info.Session = text(v, maxName)
				}
			case "model":
				if info.Model == "" {
					info.Model = text(v, maxName)
				}
			}
			return nil
		})
		role, _, at := message.Describe(body)
		info.CreatedAt = earliest(info.CreatedAt, at)
		if before := info.Title; role == "user" {
			if info.Title = promptTitle(before, content(body)); info.Title != before {
				titled = body
			}
		}
	}
	switch {
	case info.Session != "":
		info.ID = ContextID(info.Format, info.Session)
	case len(opening) > 0:
		info.ID = openingID(info.Format, opening)
	}
	if titled != nil {
		info.TitleFrom, _ = newIDs(info.ID).next(ownID(titled), titled)
	}
}

// members reads the members of an object beside "messages".
func (info *Info) members(body json.RawMessage) (extra json.RawMessage, err error) {
	b := []byte{'{'}
	seen := false
	err = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "messages":
			if !seen {
				seen = true
				return nil
			}
		case "id", "sessionId", "session_id", "conversation_id", "thread_id":
			if info.Session == "" {
				info.Session = text(v, maxName)
			}
		case "title":
			info.Title = title(text(v, 64<<10))
		case "model":
			info.Model = text(v, maxName)
		case "created", "created_at", "create_time":
			info.CreatedAt = earliest(info.CreatedAt, message.Time(v))
		}
		b = appendMember(b, name, v)
		return nil
	})
	if len(b) == 1 {
		return nil, err
	}
	b = append(b, '}')
	if len(b) <= MaxExtra {
		info.Extra = b
	}
	return b, err
}

// conversationOf returns the array under "messages".
func conversationOf(body json.RawMessage) (messages jsontext.Value, ok bool) {
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		if name == "messages" && v.Kind() == '[' && !ok {
			messages, ok = v.Clone(), true
		}
		return nil
	})
	return messages, ok
}

func openingOf(messages jsontext.Value) (opening []json.RawMessage) {
	_ = elements(messages, func(v jsontext.Value) error {
		body, err := message.Compact(v)
		if err != nil {
			return nil
		}
		opening = append(opening, body)
		if instruction(body) && len(opening) < openingRecords {
			return nil
		}
		return errEnough
	})
	return opening
}

// instruction reports whether many conversations may share a message: the opening that an id is derived from does not
// end there.
func instruction(body json.RawMessage) bool {
	role, _, _ := message.Describe(body)
	return role == "system" || role == "developer"
}

// ownID is the message's own id.
func ownID(body json.RawMessage) (own string) {
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		if name == "uuid" || name == "id" && own == "" {
			if s := text(v, maxName); s != "" {
				own = s
			}
		}
		return nil
	})
	return own
}

// content is the text of a message, for use as a title.
func content(body json.RawMessage) string {
	return contentText(member(jsontext.Value(body), "content"))
}
