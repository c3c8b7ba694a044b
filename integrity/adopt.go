package integrity

import (
	"cmp"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// foreign is a valid message that was never committed here.
type foreign struct {
	*problem
	env message.Envelope
}

// adopt adopts foreign messages. A message that continues its line is appended to it. A message that contradicts its
// line, as a diverged history does, gets a new line with a branch, which those after it continue, so that nothing is
// interleaved. Without the option, adopt takes only what continues a line: where records of a log are lost, that proves what
// was committed.
func (r *repair) adopt(problems []problem) error {
	var found []foreign
	for i := range problems {
		if problems[i].Kind != KindForeign {
			continue
		}
		p, err := r.leftover(problems[i].found)
		if err != nil {
			return err
		}
		if p == nil || p.Kind != KindForeign {
			continue
		}
		env, _, err := r.envelope(p.found)
		if err != nil {
			return err
		}
		found = append(found, foreign{&problems[i], env})
	}
	slices.SortFunc(found, func(a, b foreign) int {
		return cmp.Or(comparePlaces(*a.problem, *b.problem), compareID(a.ID, b.ID))
	})
	new := map[uuid.UUID]uuid.UUID{} // the lines that were made, by their last messages
	for _, f := range found {
		at, err := r.lineFor(&f.env, new[f.env.Prev])
		if err == nil && at != uuid.Nil {
			delete(new, f.env.Prev)
			err = r.adoptOne(f, at)
		}
		if err != nil {
			return err
		}
		if at != uuid.Nil && at != f.line {
			new[f.env.ID] = at
		}
	}
	return nil
}

// adoptOne appends a message to a line.
func (r *repair) adoptOne(f foreign, to uuid.UUID) error {
	counts, _, err := r.Index.Counts(to)
	if err != nil {
		return err
	}
	line, _ := r.metadata.Line(to)
	env := f.env
	env.Line, env.Position, env.Payloads = to, max(counts.End(), line.Base), blob.Count(env.Body)
	body, own := env.AppendTo(nil), r.Dir.MessagePath(line.Folder, env.ID)
	return r.commit(journal.Item{Kind: journal.Add, Body: body}, func() error {
		if f.found != own {
			if err := r.setAside(f.found); err != nil {
				return err
			}
		}
		f.Repairable = true // it is not a problem any more
		r.did(*f.problem, "committed at position %d of line %s", env.Position, to)
		return r.Dir.ReplaceMessage(line.Folder, env.ID, body, env.StoredAt)
	})
}

// lineFor returns the line that a message continues, its own or one that was made, or makes one; [uuid.Nil] if the message is
// not to be adopted.
func (r *repair) lineFor(env *message.Envelope, made uuid.UUID) (line uuid.UUID, err error) {
	known, ok := r.metadata.Line(env.Line)
	at := int64(0)
	if ok {
		counts, _, err := r.Index.Counts(known.ID)
		if err != nil {
			return line, err
		}
		end := max(counts.End(), known.Base)
		last, there, err := r.Index.Entry(known.ID, end-1)
		if err != nil {
			return line, err
		}
		if env.Position == end && (!there || last.ID == env.Prev || last.IsLost()) {
			return known.ID, nil
		}
		at = max(min(env.Position, end), known.Base)
	}
	if made != uuid.Nil || !r.opts.Adopt {
		return made, nil
	}
	if line, err = uuid.NewV7(); err != nil {
		return line, err
	}
	m := r.metadata.Clone()
	if err := branch.Begin(m, freeName(m, cmp.Or(env.Branch, "main")+" (found)"), env.Line, at, line, ok); err != nil {
		return uuid.Nil, err
	}
	return line, r.writeMetadata(m)
}
