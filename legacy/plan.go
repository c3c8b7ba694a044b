package legacy

import "slices"

// Item is a place in a list: a node, for the first time there or for one more.
type Item struct {
	Node  int32
	Again int32 // times it was there before
}

// Line is what becomes a line: what a branch adds to what it has in common with one that comes before it.
type Line struct {
	Branch int // in File.Branches; [Unlisted] for the nodes that no branch has
	Parent int // the line that it begins on, before it in the plan; -1 for none
	Base   int // so many items it has in common with the parent's branch
	Items  []Item
}

// Unlisted stands for the branch of the nodes that no list names.
const Unlisted = -1

// Plan turns the lists into lines. Two branches share items as far as their lists are equal, whatever the nodes say of their
// parents. The branch "main" comes first, then the others in the order of the file, then what no list names.
func (f *File) Plan() []Line {
	order := make([]int, len(f.Branches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return f.mains(b) - f.mains(a)
	})
	p := planning{next: map[edge]int32{}, owner: []int32{-1}, listed: make([]bool, len(f.nodes)), seen: make([]int32, len(f.nodes))}
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

func (f *File) mains(i int) int {
	if name, _ := Text(f.Branches[i].Name); name == "main" {
		return 1
	}
	return 0
}

// planning is a tree of the lists so far: a path from the root is the beginning of one.
type planning struct {
	next   map[edge]int32
	owner  []int32 // the line that a place in the tree belongs to
	listed []bool  // nodes
	seen   []int32 // of each node, the number of the last line that looked at it, plus one
}

type edge struct {
	from int32
	item Item
}

func (p *planning) line(branch int, number int32, nodes []int32, more bool) Line {
	l := Line{Branch: branch, Parent: -1}
	times := map[int32]int32{} // of nodes that are there more than once
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
