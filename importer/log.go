package importer

import (
	"encoding/json"
	"errors"
	"fmt"
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
}

// log imports a log as one context.
func (j *job) log(newFormat func() logFormat) error {
	info, err := j.logInfo(newFormat())
	if err != nil {
		return err
	}
	report := j.once()
	j.emit(j.attempt(info, func(s *session) error {
		f := newFormat()
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

// logInfo reads the beginning of a log, up to the record that names the session.
func (j *job) logInfo(f logFormat) (Info, error) {
	info := Info{Format: j.format}
	var first json.RawMessage
	n := 0
	err := j.each(j.records(nil, nil), func(body json.RawMessage, _ int64) error {
		if first == nil {
			first = body
		}
		_, r := f.read(body, &info)
		info.span(r.CreatedAt)
		if n++; n >= openingRecords && info.Session != "" {
			return errKnown
		}
		return nil
	})
	if err != nil && !errors.Is(err, errKnown) {
		return info, err
	}
	if first == nil {
		return info, j.empty()
	}
	// The description comes with the whole file.
	info = Info{Format: j.format, Session: info.Session, CreatedAt: info.CreatedAt, Title: info.Title}
	if info.Session == "" {
		info.Session = sessionOfName(j.path)
	}
	if info.Session == "" {
		info.ID = openingID(j.format, []json.RawMessage{first})
	} else {
		info.ID = contextID(j.format, info.Session)
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
}

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
