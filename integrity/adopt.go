package integrity

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

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

// adopt adopts foreign messages. A message that continues its line is appended to it. A message that contradicts its
// line, as a diverged history does, gets a new line with a branch, so that nothing is interleaved.
func (r *repair) adopt(problems []problem) error {
	found, err := r.foreignMessages(problems)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b foreign) int {
		return cmp.Or(compareID(a.env.Line, b.env.Line), cmp.Compare(a.env.Position, b.env.Position), compareID(a.env.ID, b.env.ID))
	})
	for _, run := range runsOf(found) {
		if err := r.adoptRun(run); err != nil {
			return err
		}
	}
	if err := r.endLines(problems); err != nil {
		return err
	}
	return r.link()
}

// link corrects the lines whose parents only the adopted messages prove.
func (r *repair) link() error {
	for range r.metadata.Lines { // a corrected parent can prove another one
		wrong, _, err := wrongLines(r.metadata, r.Dir, r.Log)
		if err != nil || len(wrong) == 0 {
			return err
		}
		p := problem{
			Finding: Finding{Kind: KindStructure, Path: r.Dir.ID.String() + "/" + ctxfolder.MetadataFile, Detail: strings.Join(wrong, "; ")},
		}
		if err := r.mendStructure(p); err != nil {
			return err
		}
	}
	return nil
}

// endLines ends lines in the index that metadata.json does not know: their messages are on other lines now.
//
// Crash order: the adopted messages are durable in their new places. Without the record, a repair finds nothing to
// adopt.
func (r *repair) endLines(problems []problem) error {
	for _, p := range problems {
		if p.Kind != KindForeign || p.found != "" || p.pack != uuid.Nil {
			continue
		}
		counts, _, err := r.Log.Counts(p.line)
		if err != nil {
			return err
		}
		item, err := r.Log.TrimItem(p.line, counts.Base)
		if err != nil {
			return err
		}
		commit := r.Log.Append([]index.Item{item})
		if commit.Err != nil {
			return commit.Err
		}
		if err := commit.Sync(); err != nil {
			return err
		}
		r.did(p, "its messages were adopted; was: %s", p.Detail)
	}
	return nil
}

// foreignMessages returns the messages to adopt, each once: from files, and from journals and packs of other histories.
func (r *repair) foreignMessages(problems []problem) (found []foreign, err error) {
	type place struct{ line, id uuid.UUID }
	seen := map[place]bool{}
	add := func(p problem, raw []byte) {
		env, err := message.Parse(raw)
		if key := (place{env.Line, env.ID}); err == nil && !seen[key] {
			seen[key] = true
			p.ID = env.ID
			found = append(found, foreign{p, env})
		}
	}
	for _, p := range problems {
		if p.Kind != KindForeign || p.found == "" {
			continue
		}
		raw, err := readFound(r.Dir, p.found)
		if err != nil {
			return nil, err
		}
		add(p, raw)
	}
	for _, p := range problems {
		take := func(raw []byte) error {
			add(p, raw)
			return nil
		}
		switch {
		case p.stray != 0:
			err = r.Log.HiddenInJournal(p.stray, take)
		case p.Kind == KindForeign && p.pack != uuid.Nil:
			err = r.Log.HiddenInPack(p.pack, take)
		case p.Kind == KindForeign && p.found == "":
			err = r.Log.HiddenInLine(p.line, take)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// runsOf divides sorted messages into runs: each message follows the one before on the same line. If several claim a
// position, the run continues with the message whose Prev is the last one of the run.
func runsOf(found []foreign) (runs [][]foreign) {
	taken := make([]bool, len(found))
	for i := range found {
		if taken[i] {
			continue
		}
		run, at := []foreign{found[i]}, i+1
		for {
			last, next := &run[len(run)-1].env, -1
			for ; at < len(found) && found[at].env.Line == last.Line && found[at].env.Position <= last.Position+1; at++ {
				if !taken[at] && found[at].env.Position > last.Position && (next < 0 || found[at].env.Prev == last.ID) {
					next = at
				}
			}
			if next < 0 {
				break
			}
			taken[next] = true
			run = append(run, found[next])
		}
		runs = append(runs, run)
	}
	return runs
}

// adoptRun adopts a run of messages.
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
		if !goesOn || run[i].found == "" || path.Dir(run[i].found) != ctxfolder.Messages+"/"+line.Folder {
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
		// The record is durable. The file that was found moves to the trash, unless it is the message's own.
		env, own := &run[i].env, pathOf(line.Folder, run[i].env.FileID())
		if run[i].found != "" && run[i].found != own {
			if err := r.setAside(run[i].found); err != nil {
				return err
			}
		}
		if err := r.Dir.ReplaceMessage(line.Folder, env.FileID(), items[i].Body, env.StoredAt); err != nil {
			return err
		}
		r.wrote[own], r.wrote[ctxfolder.Messages+"/"+line.Folder] = true, true
		r.did(run[i].problem, "adopted at position %d of line %s", env.Position, line.ID)
	}
	return nil
}

// lineFor returns the line that a run continues, or a new one for it.
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
