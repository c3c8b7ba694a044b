package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// Trouble is a kind of problem.
type Trouble string

// The kinds of problems.
const (
	Lost       Trouble = "lost"       // what was acknowledged is not there, or not in its place
	Altered    Trouble = "altered"    // what is there is not what was written
	Invented   Trouble = "invented"   // what nobody wrote is there
	Unreadable Trouble = "unreadable" // what is there cannot be read
	Damaged    Trouble = "damaged"    // the first check finds an error
	Unsettled  Trouble = "unsettled"  // a repair leaves something to be found, or fails
	Refused    Trouble = "refused"    // something failed that had no reason to
)

// Problem is something that must not be.
type Problem struct {
	Trouble Trouble
	Detail  string
}

// expected is what a store must show. It begins with what the store showed before, and what was acknowledged since is
// done to it; what was going on is done as far as the store shows that it happened.
type expected struct {
	got      Shown
	shared   []uuid.UUID
	branches map[place][]uuid.UUID
	sums     map[name][]writer.Sum // the ones it may have
	settings map[setting]string
	erased   map[name]bool
	erasing  map[name]bool           // that may be erased or not
	stored   map[uuid.UUID]histories // contexts whose messages bear ids that are known only now
	imports  []writer.Step           // that were going on
	problems []Problem
	acked    int
}

// histories are bodies of an imported or migrated context, by position; if it was going on, as far as it came.
type histories struct {
	messages []writer.Message
	whole    bool
}

// compare compares what a store shows with what it showed before and what its writers put down since.
func compare(before, got Shown, shared []uuid.UUID, accounts [][]writer.Step) *expected {
	e := &expected{
		got: got, shared: shared, branches: maps.Clone(before.branches), sums: map[name][]writer.Sum{},
		settings: maps.Clone(before.settings), erased: map[name]bool{}, erasing: map[name]bool{}, stored: map[uuid.UUID]histories{},
	}
	for n, sum := range before.sums {
		e.sums[n] = []writer.Sum{sum}
	}
	maps.Copy(e.erased, before.erased)
	for _, c := range shared {
		e.main(place{c, "main"}, accounts)
	}
	for _, steps := range accounts {
		e.follow(steps)
	}
	e.importing()
	e.compareBranches()
	e.compareContents()
	return e
}

func (e *expected) problem(t Trouble, format string, args ...any) {
	e.problems = append(e.problems, Problem{t, fmt.Sprintf(format, args...)})
}

// main is the branch that all append to. What was there stays, what was acknowledged is in its place, and between them
// is what was going on.
func (e *expected) main(at place, accounts [][]writer.Step) {
	got, offered := e.got.branches[at], map[uuid.UUID]bool{}
	for i, id := range e.branches[at] {
		if i >= len(got) || got[i] != id {
			e.problem(Lost, "%s: message %s is not at position %d any more, where it was", at, id, i)
		}
		offered[id] = true
	}
	for _, steps := range accounts {
		for _, s := range steps {
			if s.Context != at.context || s.Branch != at.branch || s.Op != writer.Append && s.Op != writer.Burst {
				continue
			}
			for _, m := range s.Messages {
				offered[m.ID] = true
				e.sums[name{at.context, m.ID}] = []writer.Sum{m.Sum}
				if s.State != writer.Placed && (s.State != writer.Done || s.Op == writer.Burst) {
					continue
				}
				e.acked++
				if m.Position >= int64(len(got)) || got[m.Position] != m.ID {
					e.problem(Lost, "%s: message %s is not at position %d, where it was acknowledged", at, m.ID, m.Position)
				}
			}
		}
	}
	for i, id := range got {
		if !offered[id] {
			e.problem(Invented, "%s: nobody wrote message %s at position %d", at, id, i)
		}
		if slices.Index(got, id) != i {
			e.problem(Invented, "%s: message %s is at position %d too", at, id, i)
		}
	}
	e.branches[at] = got
}

// follow does what one writer did.
func (e *expected) follow(steps []writer.Step) {
	for i, s := range steps {
		switch s.State {
		case writer.Done:
			if s.Op != writer.Append {
				e.acked++
			}
			e.do(s)
		case writer.Begun:
			// An erase or import that was busy may have come far enough.
			if s.Op == writer.Erase || s.Op == writer.Import || !settled(steps[i+1:]) {
				e.going(s, steps[i+1:])
			}
		}
	}
}

// settled says whether the step before these has an end, other than a failure.
func settled(behind []writer.Step) bool {
	for _, s := range behind {
		switch s.State {
		case writer.Placed:
		case writer.Done, writer.Busy:
			return true
		default:
			return false
		}
	}
	return false
}

func (e *expected) everybodys(s writer.Step) bool {
	return s.Branch == "main" && slices.Contains(e.shared, s.Context)
}

// do does a step.
func (e *expected) do(s writer.Step) {
	at := place{s.Context, s.Branch}
	switch s.Op {
	case writer.Append:
		if e.everybodys(s) {
			return
		}
		e.acked += len(s.Messages)
		if _, there := e.branches[at]; !there {
			e.problem(Lost, "%s: messages were acknowledged on a branch that nobody made", at)
			return
		}
		for _, m := range s.Messages {
			if m.Position != int64(len(e.branches[at])) {
				e.problem(Lost, "%s: message %s was acknowledged at position %d of a branch of %d", at, m.ID, m.Position, len(e.branches[at]))
			}
			e.append(at, m)
		}
	case writer.Replace:
		e.sums[name{s.Context, s.Messages[0].ID}] = []writer.Sum{s.Messages[0].Sum}
	case writer.Erase:
		e.erased[name{s.Context, s.Messages[0].ID}] = true
	case writer.New:
		e.branches[at] = nil
	case writer.Fork:
		from := e.branches[at]
		if s.At > int64(len(from)) {
			e.problem(Lost, "%s: %q was forked from its %d messages, and it has %d", at, s.To, s.At, len(from))
			return
		}
		e.branches[place{s.Context, s.To}] = from[:s.At:s.At]
	case writer.Rename:
		e.branches[place{s.Context, s.To}] = e.branches[at]
		delete(e.branches, at)
	case writer.Rewind:
		from := e.branches[at]
		if s.At > int64(len(from)) {
			e.problem(Lost, "%s was rewound to message %d, and it has %d", at, s.At, len(from))
			return
		}
		e.branches[at] = from[:s.At:s.At]
	case writer.Remove:
		delete(e.branches, at)
	case writer.Configure:
		e.settings[setting{s.Context, s.Branch}] = s.Value
	case writer.Create:
		e.branches[place{s.Context, "main"}] = nil
	case writer.Delete:
		maps.DeleteFunc(e.branches, func(p place, _ []uuid.UUID) bool { return p.context == s.Context })
		delete(e.stored, s.Context)
	case writer.Import, writer.Migrate:
		e.stored[s.Context] = histories{s.Messages, true}
	}
}

func (e *expected) append(at place, m writer.Message) {
	e.branches[at] = append(e.branches[at], m.ID)
	e.sums[name{at.context, m.ID}] = []writer.Sum{m.Sum}
}

// going does a step that was going on, if it happened, as far as it happened. Behind a cut, a writer may have gone on for
// some steps, and all of them were going on: so a later one may have given the branch another name.
func (e *expected) going(s writer.Step, later []writer.Step) {
	at, to := place{s.Context, s.Branch}, place{s.Context, s.To}
	there := func(p place) bool { _, ok := e.got.branches[p]; return ok }
	now := at
	for _, l := range later {
		if l.State == writer.Begun && l.Op == writer.Rename && now == (place{l.Context, l.Branch}) && there(place{l.Context, l.To}) {
			now.branch = l.To
		}
	}
	switch s.Op {
	case writer.Append:
		if e.everybodys(s) {
			return
		}
		for _, m := range s.Messages {
			if n := len(e.branches[at]); n < len(e.got.branches[now]) && e.got.branches[now][n] == m.ID {
				e.append(at, m)
			}
		}
	case writer.Replace:
		n := name{s.Context, s.Messages[0].ID}
		e.sums[n] = append(slices.Clone(e.sums[n]), s.Messages[0].Sum)
	case writer.Erase:
		e.erasing[name{s.Context, s.Messages[0].ID}] = true
	case writer.New:
		e.doIf(there(now), s)
	case writer.Fork, writer.Rename:
		e.doIf(there(to), s)
	case writer.Rewind:
		got := e.got.branches[now]
		appended := int64(len(got)) > s.At && slices.ContainsFunc(later, func(l writer.Step) bool {
			return l.State == writer.Begun && l.Op == writer.Append && l.Context == s.Context && l.Messages[0].ID == got[s.At]
		})
		e.doIf(appended || int64(len(got)) == s.At, s)
	case writer.Remove:
		e.doIf(!there(at), s)
	case writer.Configure:
		e.doIf(e.got.settings[setting{s.Context, s.Branch}] == s.Value, s)
	case writer.Create:
		e.doIf(there(place{s.Context, "main"}), s)
	case writer.Delete:
		e.doIf(!there(place{s.Context, "main"}), s)
	case writer.Migrate:
		e.doIf(there(place{s.Context, "main"}), s)
	case writer.Import:
		e.imports = append(e.imports, s)
	}
}

func (e *expected) doIf(happened bool, s writer.Step) {
	if happened {
		e.do(s)
	}
}

// importing finds the contexts of imports that were going on, among those that nobody else made: an id is the
// importer's affair. One that is empty still can be any's.
func (e *expected) importing() {
	for _, empty := range []bool{false, true} {
		e.imports = slices.DeleteFunc(e.imports, func(s writer.Step) bool {
			for at, ids := range e.got.branches {
				_, known := e.branches[at]
				_, stored := e.stored[at.context]
				if known || stored || len(ids) == 0 != empty || !empty && e.got.sums[name{at.context, ids[0]}] != s.Messages[0].Sum {
					continue
				}
				e.stored[at.context] = histories{s.Messages, false}
				return true
			}
			return false
		})
	}
}

// compareBranches compares names, and the ids behind them.
func (e *expected) compareBranches() {
	for at, want := range e.branches {
		got, ok := e.got.branches[at]
		switch {
		case !ok:
			e.problem(Lost, "%s is not there; it had %d messages", at, len(want))
		case !slices.Equal(got, want):
			e.problem(Lost, "%s: %s", at, difference(got, want))
		}
	}
	for at, got := range e.got.branches {
		if _, ok := e.branches[at]; ok {
			continue
		}
		if h, ok := e.stored[at.context]; ok {
			e.compareHistory(at, h, got)
		} else {
			e.problem(Invented, "%s: nobody made it; it has %d messages", at, len(got))
		}
	}
	for id := range e.stored {
		if _, ok := e.got.branches[place{id, "main"}]; !ok {
			e.problem(Lost, "context %s was imported or migrated, and is not there", id)
		}
	}
}

func difference(got, want []uuid.UUID) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("position %d has message %s instead of %s; %d messages instead of %d", i, got[i], want[i], len(got), len(want))
		}
	}
	return fmt.Sprintf("%d messages instead of %d", len(got), len(want))
}

// compareHistory compares the one branch of a context that was imported or migrated.
func (e *expected) compareHistory(at place, h histories, got []uuid.UUID) {
	if len(got) > len(h.messages) || h.whole && len(got) < len(h.messages) {
		e.problem(Lost, "%s: %d messages instead of %d", at, len(got), len(h.messages))
	}
	for i, id := range got {
		n := name{at.context, id}
		if i < len(h.messages) {
			e.sums[n] = []writer.Sum{h.messages[i].Sum}
		}
	}
}

// compareContents compares bodies, and the configuration.
func (e *expected) compareContents() {
	for n := range e.got.erased {
		if !e.erased[n] && !e.erasing[n] {
			e.problem(Lost, "context %s, message %s: nobody erased it", n.context, n.id)
		}
	}
	for n, sum := range e.got.sums {
		if e.erased[n] {
			e.problem(Invented, "context %s, message %s can be read, and was erased", n.context, n.id)
		}
		if !slices.Contains(e.sums[n], sum) {
			e.problem(Altered, "context %s, message %s: its sum is %s, and should be %v", n.context, n.id, sum, e.sums[n])
		}
	}
	for k, want := range e.settings {
		if got := e.got.settings[k]; got != want && slices.Contains(e.shared, k.context) {
			e.problem(Lost, "context %s: configuration of %s is %q instead of %q", k.context, k.member, got, want)
		}
	}
	for k, got := range e.got.settings {
		if _, ok := e.settings[k]; !ok && slices.Contains(e.shared, k.context) {
			e.problem(Invented, "context %s: nobody made the configuration of %s %q", k.context, k.member, got)
		}
	}
}

// failures are the steps that failed, but for what the disk refused, if it did.
func failures(accounts [][]writer.Step, faults bool) (problems []Problem) {
	for _, steps := range accounts {
		for _, s := range steps {
			if s.State == writer.Failed && (!faults || !strings.Contains(s.Error, syscall.EIO.Error())) {
				problems = append(problems, Problem{Refused, strings.TrimSpace(fmt.Sprintf("%s %s: %s", s.Op, s.Value, s.Error))})
			}
		}
	}
	return problems
}
