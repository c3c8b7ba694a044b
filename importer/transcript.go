package importer

import (
	"encoding/json"
	"fmt"
	"math"
)

// transcript decides which branch each line of a Claude Code transcript belongs to.
//
// The lines link to parents, and most parents with several children are no forks: a tool call with its
// progress and its result, the parallel calls of one reply. A fork is where two human prompts, or two
// replies to one prompt, stand under one parent. Everything else is one line of conversation in file order;
// so is what follows a compaction, which has no parent, or a parent that is not in the file.
//
// What it keeps for each line is small and of fixed size.
type transcript struct {
	main, current *target
	forks         int
	nodes         map[key]node    // by uuid; the latest of equal ones
	prompted      map[key]bool    // parents that a human prompt stands under
	replies       map[key][]reply // by the prompt

	side   *target // the sidechain that had the last line of any
	agents map[string]*target
	calls  map[key]node // tool calls by id, and by what they tell a subagent
}

// node is where a line went.
type node struct {
	to     *target
	at     int64
	prompt bool
}

// reply is one of several under a prompt.
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

// place says where the next line goes. It looks at earlier lines only.
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

// visible says whether branch b shows a line: its own, or one that it inherits.
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

// fork is a new branch that begins with all up to and with parent.
func (t *transcript) fork(parent node) *target {
	t.forks++
	return &target{name: fmt.Sprintf("fork-%d", t.forks), parent: parent.to, base: parent.at + 1}
}

// placeSide gives each sidechain a branch of its own, forked where it was spawned.
func (t *transcript) placeSide(e *entry) *target {
	if e.agent != "" {
		if to := t.agents[e.agent]; to != nil {
			return to
		}
	} else {
		if parent, ok := t.nodes[keyOf(e.parent)]; ok && e.parent != "" && parent.to.side {
			return parent.to
		}
		// Only a task begins one; anything else whose parent is not there belongs to the one at hand.
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

// spawn finds the line that holds the tool call a sidechain came from: by the call's id, by the task it was
// given, or by the parent link.
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

func callKey(id string) key     { return keyOf("call\x00" + id) }
func taskKey(prompt string) key { return keyOf("task\x00" + prompt) }

// plain says whether an agent's name can be part of a branch's.
func plain(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 40
}

// placed remembers the line that has just been stored as the last one of to.
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
		// A history that was written out again: what followed the first copy follows this one too.
		delete(t.prompted, k)
		delete(t.replies, k)
	}
	t.nodes[k] = n
}
