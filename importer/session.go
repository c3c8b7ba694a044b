package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// session is the import of one conversation.
type session struct {
	j    *job
	conv Conversation
	walk *walk
	ids  *ids
	info Info

	repeats *repeats
	titled  string // the title after the last record

	first uuid.UUID // the first record with a UUID of its own
}

func (j *job) begin(info Info) (*session, error) {
	s := &session{j: j, info: info, repeats: newRepeats(), titled: info.Title}
	conv, err := j.store.Open(j.ctx, info)
	if err != nil {
		return nil, fmt.Errorf("%s: context %s: %w", j.path, info.ID, err)
	}
	s.conv, s.ids = conv, newIDs(info.ID)
	if s.walk, err = newWalk(j.ctx, conv); err != nil {
		return nil, fmt.Errorf("%s: context %s: %w", j.path, info.ID, errors.Join(err, conv.Close()))
	}
	return s, nil
}

// maxStuck limits how often an import starts again although no process stored anything meanwhile.
const maxStuck = 3

// attempt imports one conversation: f stores its records. It begins again when another import stored the same
// conversation meanwhile, and then finds what that import stored.
func (j *job) attempt(info Info, f func(s *session) error) (Result, error) {
	added, before, stuck := int64(0), int64(-1), 0
	for {
		s, err := j.begin(info)
		if err != nil {
			return Result{Path: j.path, Format: info.Format, Context: info.ID, Title: info.Title}, err
		}
		if stuck++; s.walk.size() != before {
			before, stuck = s.walk.size(), 0
		}
		r, err := s.end(f(s))
		if !errors.Is(err, ErrChanged) || stuck == maxStuck || j.ctx.Err() != nil {
			r.Added, r.Skipped = r.Added+added, max(r.Skipped-added, 0)
			return r, err
		}
		added += r.Added
	}
}

// once returns j.report for the first attempt, and nil for the others.
func (j *job) once() func() func(line int64, reason string) {
	report := j.report
	return func() func(int64, string) {
		defer func() { report = nil }()
		return report
	}
}

// put stores a record with its own id, "" if it has none.
func (s *session) put(t *target, own string, body json.RawMessage) error {
	r := Record{Body: body}
	r.Role, r.Type, r.CreatedAt = message.Describe(body)
	return s.putRecord(t, own, r)
}

// putRecord stores a record that its format describes.
func (s *session) putRecord(t *target, own string, r Record) error {
	r.ID, r.OriginID = s.ids.next(own, r.Body)
	for _, id := range r.says.about {
		other, _ := newIDs(s.info.ID).next(id, nil)
		r.copyOf(other)
	}
	s.repeats.link(&r)
	if s.info.Title != s.titled { // the record gave it
		s.titled, s.info.TitleFrom = s.info.Title, r.ID
	}
	if s.first == uuid.Nil && own != "" && r.OriginID == "" {
		s.first = r.ID
	}
	s.info.span(r.CreatedAt)
	return s.walk.put(t, r)
}

// end completes a successful import, and closes the conversation. It adds the path and the context to an error.
func (s *session) end(err error) (Result, error) {
	if err == nil {
		// An older slice of the history does not hide the newest one.
		if _, updatedAt := s.conv.Times(); s.info.UpdatedAt.Before(updatedAt) && !s.info.UpdatedAt.IsZero() {
			s.walk.active = nil
		}
		err = s.walk.finish()
	}
	if err == nil {
		err = s.conv.Describe(s.j.ctx, s.info, s.walk.added+s.walk.replaced > 0)
	}
	if closing := s.conv.Close(); err == nil {
		err = closing
	}
	if err != nil {
		err = fmt.Errorf("%s: context %s: %w", s.j.path, s.info.ID, err)
	}
	w := s.walk
	return Result{
		Path: s.j.path, Format: s.info.Format, Context: s.info.ID, Title: s.info.Title,
		Branches: len(w.branches), Messages: w.messages, Added: w.added, Skipped: w.skipped, Replaced: w.replaced, First: s.first,
	}, err
}

// each calls f for every record.
func (j *job) each(r records, f func(body json.RawMessage, line int64) error) error {
	for {
		if err := j.ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", j.path, err)
		}
		body, line, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", j.path, line, err)
		}
		if err := f(body, line); err != nil {
			return err
		}
	}
}

// extra keeps the members of an export beside its messages. If they are too large for the context's metadata, which
// every open reads, they become a message on a separate branch: at the head of the conversation, every later export
// would change it.
func (s *session) extra(members json.RawMessage) error {
	if len(members) <= MaxExtra {
		return nil
	}
	t := &target{name: "export", side: true, update: s.info.Replaces, byID: true}
	r := Record{Type: "export", Body: members}
	r.ID, _ = s.ids.next("\x00export", members)
	return s.walk.put(t, r)
}

// title makes a title from the beginning of a text, on one line.
func title(s string) string {
	const most = 80
	var b []rune
	space := false
	for _, r := range s {
		if r <= ' ' || r == '\u00a0' || r == 0x7f {
			space = len(b) > 0
			continue
		}
		if space {
			b = append(b, ' ')
			space = false
		}
		if len(b) >= most {
			return string(b[:most-1]) + "…"
		}
		b = append(b, r)
	}
	return string(b)
}

// promptTitle returns the title of a conversation after a text in the role of the user: the first thing that a person
// says. A command alone, such as "/mode", is the title only until then.
func promptTitle(have, text string) string {
	said := message.Said(text)
	if said == "" || have != "" && (!message.IsCommand(have) || message.IsCommand(said)) {
		return have
	}
	return title(said)
}

// earliest returns have, or t if have is zero.
func earliest(have, t time.Time) time.Time {
	if have.IsZero() {
		return t
	}
	return have
}
