package integrity

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// foreign is a valid message that was never committed here.
type foreign struct {
	problem
	env message.Envelope
}

// adopt takes in foreign messages. One that goes on where its line ends becomes the line's next; what contradicts a line, as a
// history that went on elsewhere does, becomes a line of its own, with a branch, so that nothing is interleaved.
func (r *repair) adopt(problems []problem) error {
	var found []foreign
	for _, p := range problems {
		if p.Kind != KindForeign {
			continue
		}
		raw, err := readFound(r.Dir, p.found)
		if err != nil {
			return err
		}
		if env, err := message.Parse(raw); err == nil {
			found = append(found, foreign{p, env})
		}
	}
	slices.SortFunc(found, func(a, b foreign) int {
		return cmp.Or(compareID(a.env.Line, b.env.Line), cmp.Compare(a.env.Position, b.env.Position), compareID(a.env.ID, b.env.ID))
	})
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].env.Line == found[0].env.Line && found[n].env.Position == found[n-1].env.Position+1 {
			n++
		}
		if err := r.adoptRun(found[:n]); err != nil {
			return err
		}
		found = found[n:]
	}
	return nil
}

// adoptRun takes in messages that stand behind each other.
func (r *repair) adoptRun(run []foreign) error {
	line, goesOn, err := r.lineFor(run[0].env)
	if err != nil {
		return err
	}
	counts, _, err := r.Log.Counts(line.ID)
	if err != nil {
		return err
	}
	position, prev := max(counts.End(), line.Base), counts.Last
	if !goesOn {
		prev = run[0].env.Prev
	}
	items := make([]index.Item, 0, len(run))
	for i := range run {
		env := &run[i].env
		env.Line, env.Position, env.Prev = line.ID, position, prev
		env.Payloads = blob.Count(env.Body)
		if !goesOn || path.Dir(run[i].found) != ctxfolder.Messages+"/"+line.Folder {
			env.File = uuid.Nil
			if _, err := r.Dir.StatMessage(line.Folder, env.ID); err == nil {
				env.File = message.DerivedID(line.ID, env.ID.String())
			}
		}
		items = append(items, index.Item{Kind: index.KindAppend, Envelope: env, Body: env.AppendTo(nil)})
		position, prev = position+1, env.ID
	}
	commit := r.Log.Append(items)
	if commit.Err != nil {
		return commit.Err
	}
	if err := commit.Sync(); err != nil {
		return err
	}
	for i := range run {
		// The record is durable: the file that was found goes to trash, unless it is the message's own.
		env, own := &run[i].env, pathOf(line.Folder, run[i].env.FileID())
		if run[i].found != own {
			if err := r.setAside(run[i].found); err != nil {
				return err
			}
		}
		if err := r.Dir.ReplaceMessage(line.Folder, env.FileID(), items[i].Body, env.StoredAt); err != nil {
			return err
		}
		r.wrote[own], r.wrote[ctxfolder.Messages+"/"+line.Folder] = true, true
		r.did(run[i].problem, "taken in at position %d of line %s", env.Position, line.ID)
	}
	return nil
}

// lineFor returns the line that a run of messages goes on, or a new one for it.
func (r *repair) lineFor(first message.Envelope) (line ctxfolder.Line, goesOn bool, err error) {
	known, ok := r.metadata.Line(first.Line)
	at := int64(0)
	if ok {
		counts, _, err := r.Log.Counts(known.ID)
		if err != nil {
			return line, false, err
		}
		end := max(counts.End(), known.Base)
		if first.Position == end && (counts.Count == 0 || first.Prev == counts.Last) {
			return *known, true, nil
		}
		if at = min(first.Position, end); at < known.Base {
			at = known.Base
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return line, false, err
	}
	m := r.metadata.Clone()
	stem := cmp.Or(first.Branch, "main") + " (found)"
	name := stem
	for n := 2; branch.Taken(m, name); n++ {
		name = fmt.Sprintf("%s %d", stem, n)
	}
	if _, err := branch.Folder(name); err != nil {
		name = "found " + id.String()
	}
	if err := branch.Begin(m, name, first.Line, at, id, ok); err != nil {
		return line, false, err
	}
	if err := r.writeMetadata(m); err != nil {
		return line, false, err
	}
	added, _ := m.Line(id)
	return *added, false, nil
}
