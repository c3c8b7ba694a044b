package replica

import (
	"slices"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// pair is a branch on both sides, or on one.
type pair struct {
	l, r     *Branch
	base     *linePair // what both sides had; nil if they never agreed on it
	name     string    // on both sides, afterwards
	common   int64     // number of messages that both certainly have in common at their beginnings
	rows     []span    // positions whose rows have to be compared, in order
	diverged string    // the branch that keeps the local messages, if both sides went on
}

// span is the positions [from, to).
type span struct{ from, to int64 }

// plan is what has to happen with one context.
type plan struct {
	id                                uuid.UUID
	base                              *agreed // nil if both sides never agreed, or one of them is not a continuation of what it was then
	begun                             *agreed // without a base: what is known of branches since a run that failed, or nil
	l, r                              Head
	createL, createR                  bool // the side does not have the context
	heal                              bool // only restore what is not available here
	pairs                             []*pair
	local, remote                     side
	versions                          []version
	erased                            map[uuid.UUID]bool // messages that one side erased: whether that is the local one
	host                              string             // names a divergence
	diverged                          []string           // branches that keep local messages
	healed, healedL                   int64
	known                             []uuid.UUID // all messages that are known to be erased
	whole                             bool        // the context was copied as a whole
	copied                            int64       // messages of a context that was copied as a whole
	copiedHere                        bool
	synced                            Synced
	moved                             map[string]int64 // branches that have so many messages of the other side by now
	removed                           *side            // the other side moved the context to its trash
	remove                            *side            // the context is removed there
	merged                            Meta             // without branches
	mergedMembers, membersL, membersR members
	sums                              map[string]uint64 // of the members on which both sides agree in the end
	err                               error
}

// before is what both sides agree on: on everything, or on some branches only. It is nil if they never agreed.
func (p *plan) before() *agreed {
	if p.base != nil {
		return p.base
	}
	return p.begun
}

// side is what has to happen on one side.
type side struct {
	steps []step
	last  []step // to be done after the metadata changed
	erase []uuid.UUID
	meta  bool // the metadata changes
	begun bool // the branch that a new context has is one of them
}

// step is one operation, or messages of the other side that follow each other.
type step struct {
	op    Op
	from  Range // of messages, on the other side
	asked int   // the index of the range in the last call of Read
}

// version is a position at which the rows of both sides differ.
type version struct {
	pair *pair
	l, r Row
}

func named(all []Branch, name string) *Branch {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// alike is named for names that cannot both be in a context: see docs/FORMAT.md, "Names and folders".
func alike(all []Branch, name string) *Branch {
	for i := range all {
		if key(all[i].Name) == key(name) {
			return &all[i]
		}
	}
	return nil
}

func key(name string) string { return cases.Fold().String(norm.NFC.String(name)) }

// owns reports whether a line owns a position of a branch.
func owns(b *Branch, line uuid.UUID, position int64) bool {
	from := int64(0)
	for _, s := range b.Lines {
		if from <= position && position < s.End {
			return s.Line == line
		}
		from = max(from, s.End)
	}
	return false
}

// isAs reports whether a branch is as it was when both sides agreed.
func isAs(b *Branch, line uuid.UUID, n int64) bool { return b.Line() == line && b.Len() == n }

func (s *side) append(branch string, from Range) {
	if from.From < from.To {
		s.steps = append(s.steps, step{op: Op{Kind: OpAppend, Branch: branch}, from: from})
	}
}

// has reports whether a step makes a branch.
func (s *side) has(branch string) bool {
	return slices.ContainsFunc(s.steps, func(t step) bool {
		return t.op.Branch == branch && (t.op.Kind == OpFork || t.op.Kind == OpNew || t.op.Kind == OpAppend) ||
			t.op.Kind == OpRename && t.op.To == branch
	})
}

// end returns up to where a branch has the other side's messages after the steps so far, 0 if no step appends to it.
func (s *side) end(branch string) (n int64) {
	for _, t := range s.steps {
		if t.op.Kind == OpAppend && t.op.Branch == branch {
			n = t.from.To
		}
	}
	return n
}

// sharedLines returns how many messages two branches of one side have in common at their beginnings.
func sharedLines(a, b *Branch) (n int64) {
	for i := range min(len(a.Lines), len(b.Lines)) {
		if a.Lines[i].Line != b.Lines[i].Line {
			break
		}
		n = min(a.Lines[i].End, b.Lines[i].End)
		if a.Lines[i].End != b.Lines[i].End {
			break
		}
	}
	return n
}

// hasWork reports whether anything has to happen on this side. remove is the side on which the context is removed, if any.
func (s *side) hasWork(remove *side) bool { return len(s.steps)+len(s.erase) > 0 || remove == s }
