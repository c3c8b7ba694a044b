package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// logFormat understands one format of logs: files to which a tool appends records. It sees the records in order and
// looks only at earlier ones, so a longer state of a file has the same result as an early state and then the rest.
type logFormat interface {
	// read describes a record, without its ids: own is the record's id in the tool, "" if it has none. It adds to info
	// what the record says about the conversation. Only the first session counts.
	read(body json.RawMessage, info *Info) (own string, r Record)

	// place returns the branch of the record that was read last, and placed learns its position there.
	place() *target
	placed(n node)

	// first returns the first record with an id.
	first() opening
	// start makes the history continue behind a stored message, on the branch of the target.
	start(behind *target, base int64)
}

// log imports a log as one context.
func (j *job) log(newFormat func() logFormat) error {
	o := newFormat()
	info, err := j.logInfo(o)
	if err != nil {
		return err
	}
	if info.Session == "" && j.o.Growing && j.format != OpenHands {
		return nil // a record that follows will name the session
	}
	report := j.once()
	j.emit(j.attempt(info, func(s *session) error {
		f := newFormat()
		s.info.Title, s.info.TitleFrom, s.titled = "", uuid.Nil, "" // the records give it again
		if err := s.resume(f, o.first()); err != nil {
			return err
		}
		return j.each(j.records(report(), j.o.Progress), func(body json.RawMessage, _ int64) error {
			own, r := f.read(body, &s.info)
			r.Body = body
			to := f.place()
			if err := s.putRecord(to, own, r); err != nil {
				return err
			}
			f.placed(node{to: to, at: to.at - 1})
			return nil
		})
	}))
	return nil
}

// opening is the first record of a file that has an id. A tool that resumes a session may begin a new file: then the
// record follows one in another file.
type opening struct {
	id, follows string
	at          int64 // its position in the file
}

// see counts a record; id and follows are those of the tool.
func (o *opening) see(id, follows string) {
	if o.id == "" {
		if o.id, o.follows = id, follows; id == "" {
			o.at++
		}
	}
}

// resume starts a history behind the stored message that its first record follows, unless the history is stored from
// its own beginning.
func (s *session) resume(f logFormat, o opening) error {
	if o.id == "" || o.follows == "" {
		return nil
	}
	first, _ := newIDs(s.info.ID).next(o.id, nil)
	for _, b := range s.walk.branches {
		if o.at < b.before {
			stored, err := s.walk.glance(b, o.at)
			if err != nil || stored.ID == first {
				return err
			}
		}
	}
	behind, _ := newIDs(s.info.ID).next(o.follows, nil)
	name, at, ok, err := s.conv.Find(s.j.ctx, behind)
	if err != nil || !ok {
		return err
	}
	b := s.walk.named(name)
	if b == nil || at >= b.before {
		return nil
	}
	// A record that the branch shows already is stored again, with another id.
	for next := int64(0); next <= at; {
		stored, err := s.walk.fetch(b, next, at+1)
		if err != nil {
			return err
		}
		for i := range stored {
			s.ids.seen[stored[i].ID] = 1
		}
		next += int64(len(stored))
	}
	f.start(&target{name: name, on: b}, at+1)
	return nil
}

// logInfo reads the beginning of a log, up to the record that names the session.
func (j *job) logInfo(f logFormat) (Info, error) {
	info := Info{Format: j.format}
	var first, titled json.RawMessage
	titledBy := "" // the id of the record that gave the title, in the tool
	n := 0
	err := j.each(j.records(nil, nil), func(body json.RawMessage, _ int64) error {
		if first == nil {
			first = body
		}
		before := info.Title
		own, r := f.read(body, &info)
		if info.Title != before {
			titled, titledBy = body, own
		}
		info.span(r.CreatedAt)
		if n++; n >= openingRecords && info.Session != "" {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return info, err
	}
	if first == nil {
		return info, j.empty()
	}
	// The rest of the description comes with the whole file.
	info = Info{Format: j.format, Session: info.Session, CreatedAt: info.CreatedAt, Title: info.Title, Labels: info.Labels}
	if info.Session == "" {
		info.Session = sessionOfName(j.path)
	}
	if info.Session == "" {
		info.ID = openingID(j.format, []json.RawMessage{first})
	} else {
		info.ID = ContextID(j.format, info.Session)
	}
	if titled != nil {
		info.TitleFrom, _ = newIDs(info.ID).next(titledBy, titled)
	}
	return info, nil
}

// sessionOfName returns the session that a file's name ends with, "" if none: tools name files after their sessions.
func sessionOfName(path string) string {
	stem := filepath.Base(path)
	for _, ending := range []string{".zst", ".jsonl", ".json"} {
		stem = strings.TrimSuffix(stem, ending)
	}
	if len(stem) < 36 {
		return ""
	}
	id := stem[len(stem)-36:]
	if uuid.Validate(id) != nil {
		return ""
	}
	return strings.ToLower(id)
}

// branches makes the targets of a log: main, and forks where the conversation was rewound.
type branches struct {
	main, current *target
	forks         int

	opened opening
}

func (b *branches) first() opening { return b.opened }

func (b *branches) start(behind *target, base int64) { b.main.resume(behind, base) }

func newBranches() branches {
	main := &target{name: Main}
	return branches{main: main, current: main}
}

// forkAt continues on a new branch that begins with the messages before position at of a branch.
func (b *branches) forkAt(of *target, at int64) {
	b.forks++
	b.current = &target{name: fmt.Sprintf("fork-%d", b.forks)}
	// A branch that begins where its parent begins, or before, forks from the grandparent.
	for of != nil && at <= of.base && of.parent != nil {
		at, of = min(at, of.base), of.parent
	}
	if at > 0 {
		b.current.parent, b.current.base = of, at
	}
}

// openingRecords limits the records that are read for a description. The search for a session covers the whole file.
const openingRecords = 200

// empty reports the problems of a file without records.
func (j *job) empty() error {
	_ = j.each(j.records(j.report, nil), func(json.RawMessage, int64) error { return io.EOF })
	return fmt.Errorf("%s: %w", j.path, ErrEmpty)
}
