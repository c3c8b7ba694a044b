package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// seen are the messages that have a file, and that no record names any more.
type seen struct {
	of  string // the logs when they were looked for
	all []message.Envelope
}

// takeViews takes from the files of messages what damaged records do not say any more: which messages are at lost positions,
// and, where the end of a log is torn, that a line goes on. A file is made behind its commit, so there was one. The caller
// has the state to itself, and holds advance.
func (x *seen) takeViews(dir Folder, s *state) error {
	if s.metadata.m == nil || !s.lenient && !s.torn {
		return nil
	}
	if of := fmt.Sprint(s.listing, " ", s.at.Seq); x.of != of {
		all, err := s.lookForViews(dir)
		if err != nil {
			return err
		}
		*x = seen{of, all}
	}
	for i := range x.all {
		if err := s.takeView(&x.all[i]); err != nil {
			return err
		}
	}
	return nil
}

// lookForViews reads the files of messages that no record names.
func (s *state) lookForViews(in Folder) (all []message.Envelope, err error) {
	dir := &ctxfolder.Dir{ID: in.Context, FS: in.Logs}
	defer dir.ForgetFolders()
	for _, l := range s.metadata.m.Lines {
		known := map[uuid.UUID]bool{}
		if ln := s.lines[l.ID]; ln != nil {
			v := lineView{ln.Counts, ln.recent, ln.changed, s.segments}
			for from := v.Base; from < v.End(); from += pageEntries {
				page, err := v.entries(from, from+pageEntries)
				if err != nil {
					return nil, err
				}
				for i := range page {
					known[page[i].ID] = true
				}
			}
		}
		var unknown []uuid.UUID
		err := dir.MessageIDs(l.Folder, func(id uuid.UUID) error {
			if !known[id] {
				unknown = append(unknown, id)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, id := range unknown {
			raw, _, err := dir.ReadMessage(l.Folder, id)
			if err != nil {
				continue // whatever it is, it is no message
			}
			if env, err := message.Parse(raw); err == nil && env.ID == id && env.Line == l.ID {
				all = append(all, message.Envelope{ID: id, Line: env.Line, Position: env.Position, Prev: env.Prev, StoredAt: env.StoredAt})
			}
		}
	}
	slices.SortFunc(all, func(a, b message.Envelope) int { // of several versions, the newest comes first
		return cmp.Or(cmp.Compare(a.Position, b.Position), b.StoredAt.Compare(a.StoredAt))
	})
	return all, nil
}

// takeView takes a message that has a file, if its position is lost, or is the next one of its line.
func (s *state) takeView(env *message.Envelope) error {
	ln := s.lines[env.Line]
	if ln == nil {
		l, ok := s.metadata.m.Line(env.Line)
		if !ok || env.Position != l.Base {
			return nil
		}
		ln = s.line(l.ID, l.Base)
	}
	lost := Entry{Line: env.Line, Position: env.Position, ID: env.ID, At: env.StoredAt.UnixMicro(), Gone: archive.Lost}
	v := lineView{ln.Counts, ln.recent, ln.changed, s.segments}
	switch {
	case env.Position < ln.Base || env.Position > ln.End():
		return nil
	case env.Position == ln.End():
		if last, err := v.at(ln.End() - 1); ln.Count > 0 && (err != nil || !last.IsLost() && last.ID != env.Prev) {
			return err
		}
		s.problem(Problem{From: s.at.Seq + 1, Detail: fmt.Sprintf("the record of message %s is missing, but its file exists", env.ID)})
		s.broken, s.gaps = true, true
		ln.recent = append(ln.recent, lost)
		ln.Count++
		ln.Last = env.ID
	default:
		e, err := v.at(env.Position)
		if err != nil || !e.IsLost() || e.ID != uuid.Nil {
			return err
		}
		if i := env.Position - ln.start(); i >= 0 {
			ln.recent[i] = lost
		} else {
			ln.change(&lost)
		}
	}
	if slices.Compare(env.ID[:], ln.Greatest[:]) > 0 {
		ln.Greatest = env.ID
	}
	return nil
}
