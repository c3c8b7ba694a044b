package importer

import (
	"slices"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// repeats links the records of a history that repeat each other. It looks only at earlier records, so the later of two
// names the other. It keeps a hash and an id of each text.
//
// A record that people do not read is a copy of the last record before it that has its text, and of the next one: some
// tools write the copy first, others last. So an erase of either takes it along. Records that people read are linked only
// where the tool says that they belong together: two equal prompts are two prompts.
type repeats struct {
	shown  map[key]uuid.UUID   // the last record for people with a text
	hidden map[key][]uuid.UUID // records for no reader with that text, or about that call, since
	calls  map[key][]uuid.UUID // records for people about a call
	tasks  map[key]uuid.UUID   // the last call with a text
	args   map[key]arguments
}

// arguments are the texts in the arguments of a call that has no answer yet.
type arguments struct {
	id    uuid.UUID
	texts []key
}

func newRepeats() *repeats {
	return &repeats{map[key]uuid.UUID{}, map[key][]uuid.UUID{}, map[key][]uuid.UUID{}, map[key]uuid.UUID{}, map[key]arguments{}}
}

// link fills in CopyOf and Repeats of the next record.
func (x *repeats) link(r *Record) {
	is := message.IsBookkeeping(r.Role)
	for _, k := range r.says.parts {
		if id, ok := x.shown[k]; ok && !slices.Contains(r.Repeats, id) {
			r.Repeats = append(r.Repeats, id)
		}
	}
	for _, k := range r.says.texts {
		for _, had := range []map[key]uuid.UUID{x.shown, x.tasks} {
			if id, ok := had[k]; ok && is {
				r.copyOf(id)
			}
		}
		x.meet(k, r, is)
		if !is {
			x.shown[k] = r.ID
		}
	}
	for _, k := range r.says.calls {
		if is {
			r.copyOf(x.calls[k]...)
		}
		x.meet(k, r, is)
		if !is && !slices.Contains(x.calls[k], r.ID) {
			x.calls[k] = append(x.calls[k], r.ID)
		}
	}
	x.linkArguments(r)
	r.says = says{}
}

// meet makes a record for people name the copies before it, and notes any other for the next one.
func (x *repeats) meet(k key, r *Record, is bool) {
	if is {
		x.hidden[k] = append(x.hidden[k], r.ID)
		return
	}
	r.copyOf(x.hidden[k]...)
	delete(x.hidden, k)
}

// linkArguments links a call with the sidechain that it began, and with an answer that repeats its arguments.
func (x *repeats) linkArguments(r *Record) {
	if id, ok := x.tasks[r.says.task]; ok && r.says.task != (key{}) {
		r.copyOf(id)
	}
	for _, g := range r.says.gives {
		a := x.args[g.call]
		x.args[g.call] = arguments{r.ID, append(a.texts, g.text)}
	}
	for _, k := range r.says.spawns {
		x.tasks[k] = r.ID
	}
	for _, e := range r.says.echo {
		if a := x.args[e.call]; slices.Contains(a.texts, e.text) && !slices.Contains(r.Repeats, a.id) {
			r.Repeats = append(r.Repeats, a.id)
		}
	}
	for _, e := range r.says.echo {
		delete(x.args, e.call)
	}
}

func (r *Record) copyOf(ids ...uuid.UUID) {
	for _, id := range ids {
		if id != r.ID && !slices.Contains(r.CopyOf, id) {
			r.CopyOf = append(r.CopyOf, id)
		}
	}
}

// add adds a text, unless it is blank.
func (s *says) add(texts ...string) {
	for _, t := range texts {
		if t != "" {
			s.texts = append(s.texts, keyOf(t))
		}
	}
}

func (s *says) addCall(id string) {
	if id != "" {
		s.calls = append(s.calls, callKey(id))
	}
}

// contentTexts calls f for each text of a message's content: a string, or a list of blocks.
func contentTexts(v jsontext.Value, f func(string)) {
	if t := text(v, len(v)); t != "" {
		f(t)
	}
	_ = elements(v, func(part jsontext.Value) error {
		if part.Kind() == '{' {
			for _, name := range []string{"text", "thinking"} {
				if t := textAt(part, len(part), name); t != "" {
					f(t)
				}
			}
		}
		return nil
	})
}

// allTexts calls f for each string in a value, at any depth, except names of files and folders: they are not what a
// record says, but what it is about.
func allTexts(v jsontext.Value, f func(string)) { allTextsAt(v, "", maxNesting, f) }

func allTextsAt(v jsontext.Value, name string, depth int, f func(string)) {
	switch {
	case depth == 0:
	case v.Kind() == '"' && !isPathName(name):
		if t := text(v, len(v)); t != "" {
			f(t)
		}
	case v.Kind() == '[':
		_ = elements(v, func(v jsontext.Value) error {
			allTextsAt(v, name, depth-1, f)
			return nil
		})
	case v.Kind() == '{':
		_ = message.Members(v, func(name string, v jsontext.Value) error {
			allTextsAt(v, name, depth-1, f)
			return nil
		})
	}
}

// isPathName reports whether a member has a path, or a word of a fixed set.
func isPathName(name string) bool {
	switch name {
	case "file_path", "filePath", "notebook_path", "path", "cwd", "type", "status", "mode", "subagent_type", "model", "agentId":
		return true
	}
	return false
}
