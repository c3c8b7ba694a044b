package importer

import (
	"encoding/json"
	"fmt"
)

// conversation is a conversation of a document.
type conversation struct {
	info     Info
	opening  []json.RawMessage // derives the id of a conversation without one
	extra    []byte            // the members beside the messages, an unfinished object
	current  string            // the name of the node that the person saw last; "" for the last leaf
	nodes    []treeNode
	titled   int      // the number of the node whose text the title is, from 1; 0 for a title of the tool
	mirrors  []Record // records that repeat the conversation; they get a branch of their own
	problems []string
}

// treeNode is a message and its place in the tree.
type treeNode struct {
	name, parent string // unique in the conversation
	children     []string
	own          string // the message's id in the tool
	Record              // with body, without ids
}

// plan puts each node of a tree on its branch, once and after its parent. The path to the current node is main and
// comes first. Then each further leaf, in the order of the file, adds the part of its path that is not stored yet. plan
// returns main.
//
// The parent link decides. If it leads nowhere, a node that lists this one as a child is its parent. If links form a
// circle, plan cuts it at the node that comes first in the file.
func (c *conversation) plan(put func(*target, *treeNode) error) (*target, error) {
	parent := c.parents()
	main := &target{name: Main}
	to := make([]node, len(c.nodes)) // the place of each node
	forks := 0
	branch := func(leaf int, t *target) error {
		var path []int
		at := leaf
		for at >= 0 && to[at].to == nil {
			path = append(path, at)
			at = parent[at]
		}
		if t == nil {
			forks++
			t = &target{name: fmt.Sprintf("fork-%d", forks)}
			if at >= 0 {
				t.parent, t.base = to[at].to, to[at].at+1
			}
		}
		for i := len(path) - 1; i >= 0; i-- {
			if err := put(t, &c.nodes[path[i]]); err != nil {
				return err
			}
			to[path[i]] = node{to: t, at: t.at - 1}
		}
		return nil
	}
	if err := branch(c.currentNode(parent), main); err != nil {
		return main, err
	}
	for _, leaf := range leaves(parent) {
		if to[leaf].to == nil {
			if err := branch(leaf, nil); err != nil {
				return main, err
			}
		}
	}
	return main, nil
}

// parents returns the index of each node's parent, -1 if none, without circles.
func (c *conversation) parents() []int {
	byName := make(map[string]int, len(c.nodes))
	for i := range c.nodes {
		byName[c.nodes[i].name] = i
	}
	listedBy := map[string]int{}
	for i := range c.nodes {
		for _, child := range c.nodes[i].children {
			if _, again := listedBy[child]; !again {
				listedBy[child] = i
			}
		}
	}
	parent := make([]int, len(c.nodes))
	for i := range c.nodes {
		p, ok := byName[c.nodes[i].parent]
		if !ok {
			if p, ok = listedBy[c.nodes[i].name]; !ok {
				p = -1
			}
		}
		parent[i] = p
	}
	cutCircles(parent)
	return parent
}

func cutCircles(parent []int) {
	const unseen, onPath, done = 0, 1, 2
	state := make([]byte, len(parent))
	for i := range parent {
		var path []int
		at := i
		for at >= 0 && state[at] == unseen {
			state[at] = onPath
			path = append(path, at)
			at = parent[at]
		}
		if at >= 0 && state[at] == onPath {
			first := at
			for n := parent[at]; n != at; n = parent[n] {
				first = min(first, n)
			}
			parent[first] = -1
		}
		for _, n := range path {
			state[n] = done
		}
	}
}

// leaves returns the nodes without children, in the order of the file.
func leaves(parent []int) (out []int) {
	inner := make([]bool, len(parent))
	for _, p := range parent {
		if p >= 0 {
			inner[p] = true
		}
	}
	for i := range parent {
		if !inner[i] {
			out = append(out, i)
		}
	}
	return out
}

// currentNode is the node that the person saw last; the last leaf of the file if it names none.
func (c *conversation) currentNode(parent []int) int {
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if c.nodes[i].name == c.current {
			return i
		}
	}
	l := leaves(parent)
	return l[len(l)-1]
}
