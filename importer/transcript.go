package importer

import (
	"encoding/json"
	"fmt"
	"math"
)

// transcript decides which branch each line of a Claude Code transcript belongs to.
//
// The lines link to parents, but most parents with several children are not forks: a tool call with its progress and
// its result, or the parallel calls of one reply. At a fork, two human prompts, or two replies to one prompt, have the
// same parent. Everything else is one line of conversation in file order. So are lines after a compaction, whose parent
// is absent or not in the file.
//
// The state for each line is small and of fixed size.
type transcript struct {
	main, current *target
	forks         int
	nodes         map[key]node    // by uuid; the latest of equal ones
	prompted      map[key]bool    // parents of human prompts
	replies       map[key][]reply // by prompt

	side   *target // the sidechain of the last sidechain line
	agents map[string]*target
	calls  map[key]node // tool calls by id, and by the task for a subagent
}

// node is the place of a line.
type node struct {
	to     *target
	at     int64
	prompt bool
}

// reply is one of several replies to a prompt.
type reply struct {
	id key
	to *target
}

func newTranscript() *transcript {
	main := &target{name: Main}
	return &transcript{
		main: main, current: main,
		nodes: map[key]node{}, prompted: map[key]bool{}, replies: map[key][]reply{},
		agents: map[string]*target{}, calls: map[key]node{},
	}
}

// place returns the branch of the next line. It looks only at earlier lines.
func (t *transcript) place(e *entry) *target {
	if e.sidechain {
		t.side = t.placeSide(e)
		return t.side
	}
	t.current = t.placeMain(e)
	return t.current
}

func (t *transcript) placeMain(e *entry) *target {
	if e.parent == "" {
		return t.current
	}
	under := keyOf(e.parent)
	parent, ok := t.nodes[under]
	if !ok || parent.to.side {
		return t.current
	}
	switch {
	case e.prompt:
		if _, repeated := t.nodes[keyOf(e.uuid)]; repeated && e.uuid != "" {
			break
		}
		if t.prompted[under] {
			return t.fork(parent)
		}
		t.prompted[under] = true
	case e.typ == "assistant" && e.messageID != "" && parent.prompt:
		id := keyOf(e.messageID)
		for _, r := range t.replies[under] {
			if r.id == id {
				return r.to
			}
		}
		to := t.current
		switch {
		case len(t.replies[under]) > 0:
			to = t.fork(parent)
		case !visible(to, parent):
			to = parent.to
		}
		t.replies[under] = append(t.replies[under], reply{id, to})
		return to
	}
	if visible(t.current, parent) {
		return t.current
	}
	return parent.to
}

// visible reports whether branch b shows a line, its own or inherited.
func visible(b *target, n node) bool {
	below := int64(math.MaxInt64)
	for ; b != nil; b = b.parent {
		if b == n.to {
			return n.at < below
		}
		below = min(below, b.base)
	}
	return false
}

// fork returns a new branch that begins with all messages through parent.
func (t *transcript) fork(parent node) *target {
	t.forks++
	return &target{name: fmt.Sprintf("fork-%d", t.forks), parent: parent.to, base: parent.at + 1}
}

// placeSide gives each sidechain its own branch, forked where it was spawned.
func (t *transcript) placeSide(e *entry) *target {
	if e.agent != "" {
		if to := t.agents[e.agent]; to != nil {
			return to
		}
	} else {
		if parent, ok := t.nodes[keyOf(e.parent)]; ok && e.parent != "" && parent.to.side {
			return parent.to
		}
		// Only a task begins a sidechain. Any other line without a known parent belongs to the current one.
		if !e.prompt && t.side != nil {
			return t.side
		}
	}
	name := e.agent
	if !plain(name) {
		name = short([]byte(e.agent), []byte(e.uuid), []byte(e.session), []byte(e.text))
	}
	to := &target{name: "sidechain-" + name, side: true, attrs: map[string]json.RawMessage{"sidechain": json.RawMessage("true")}}
	if from, ok := t.spawn(e); ok {
		to.parent, to.base = from.to, from.at+1
	}
	if e.agent != "" {
		t.agents[e.agent] = to
	}
	return to
}

// spawn finds the line with the tool call that spawned a sidechain: by the call's id, by the task, or by the parent
// link.
func (t *transcript) spawn(e *entry) (node, bool) {
	for _, id := range e.spawnedBy {
		if n, ok := t.calls[callKey(id)]; ok {
			return n, true
		}
	}
	if e.prompt && e.text != "" {
		if n, ok := t.calls[taskKey(e.text)]; ok {
			return n, true
		}
	}
	n, ok := t.nodes[keyOf(e.parent)]
	return n, ok && e.parent != ""
}

func taskKey(prompt string) key { return keyOf("task\x00" + prompt) }

// plain reports whether an agent's name may be part of a branch's name.
func plain(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 40
}

// placed records the stored line as the last one of to.
func (t *transcript) placed(e *entry, to *target) {
	n := node{to, to.at - 1, e.prompt && !e.sidechain}
	for _, c := range e.calls {
		if c.id != "" {
			t.calls[callKey(c.id)] = n
		}
		if c.prompt != "" {
			t.calls[taskKey(c.prompt)] = n
		}
	}
	if e.uuid == "" {
		return
	}
	k := keyOf(e.uuid)
	if _, repeated := t.nodes[k]; repeated {
		// The history was written again: the lines that followed the first copy follow this one too.
		delete(t.prompted, k)
		delete(t.replies, k)
	}
	t.nodes[k] = n
}

// entry is the part of a transcript's line that decides its branch.
type entry struct {
	uuid, parent, session, agent, messageID, model string
	cwd, gitBranch, title, leaf, logicalParent     string

	typ, subtype string

	sidechain bool
	prompt    bool // a human's prompt, or a sidechain's task
	text      string
	said      string // what a person says in it

	spawnedBy []string  // ids of the tool calls that it names as its origin
	calls     []toolUse // tool calls in it

	says    says
	answers []string // ids of the tool calls whose results are in it
	beside  []key    // texts in the results that are not part of the message
	ofAgent bool     // progress of a subagent
}

type toolUse struct {
	id     string
	prompt string // the task of a subagent; "" for other tools
}
