package legacy

import "slices"

// Item is a node's occurrence in a list.
type Item struct {
	Node  int32
	Again int32 // earlier occurrences in the list
}

// Line becomes a line of the context: the items of a branch beyond those that it shares with an earlier one.
type Line struct {
	Branch int // in File.Branches; [Unlisted] for nodes without a branch
	Parent int // the earlier line that it begins on; -1 if none
	Base   int // number of items shared with the parent's branch
	Items  []Item
}

// Unlisted is the branch of the nodes that no list names.
const Unlisted = -1

// Plan turns the lists into lines. Two branches share items as far as their lists are equal, regardless of the nodes'
// parents. The branch "main" comes first, then the others in the order of the file, then the nodes that no list names.
func (f *File) Plan() []Line {
	order := make([]int, len(f.Branches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return f.isMain(b) - f.isMain(a)
	})
	p := planner{next: map[edge]int32{}, owner: []int32{-1}, listed: make([]bool, len(f.nodes)), seen: make([]int32, len(f.nodes))}
	lines := make([]Line, 0, len(order)+1)
	for at, i := range order {
		lines = append(lines, p.line(i, int32(at), f.Branches[i].Nodes, at < len(order)-1))
	}
	rest := Line{Branch: Unlisted, Parent: -1}
	for n, there := range p.listed {
		if !there {
			rest.Items = append(rest.Items, Item{Node: int32(n)})
		}
	}
	if len(rest.Items) > 0 {
		lines = append(lines, rest)
	}
	return lines
}

func (f *File) isMain(i int) int {
	if name, _ := Text(f.Branches[i].Name); name == "main" {
		return 1
	}
	return 0
}

// planner is a tree of the lists so far: each path from the root is the beginning of a list.
type planner struct {
	next   map[edge]int32
	owner  []int32 // line of each place in the tree
	listed []bool  // by node
	seen   []int32 // by node: the number of the last line that met it, plus one
}

type edge struct {
	from int32
	item Item
}

func (p *planner) line(branch int, number int32, nodes []int32, more bool) Line {
	l := Line{Branch: branch, Parent: -1}
	times := map[int32]int32{} // repetitions of nodes
	place, shares := int32(0), true
	for _, n := range nodes {
		item := Item{Node: n}
		if p.seen[n] == number+1 {
			times[n]++
			item.Again = times[n]
		}
		p.seen[n], p.listed[n] = number+1, true
		to, ok := int32(0), false
		if shares {
			to, ok = p.next[edge{place, item}]
		}
		if ok {
			place, l.Parent = to, int(p.owner[to])
			l.Base++
			continue
		}
		shares = false
		l.Items = append(l.Items, item)
		if more {
			to = int32(len(p.owner))
			p.owner = append(p.owner, number)
			p.next[edge{place, item}] = to
			place = to
		}
	}
	return l
}
