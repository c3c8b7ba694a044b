package importer

// linked places the records of a log that name the record before them. A record that continues no end of a branch
// begins a fork. A record without a link, or with one that leads nowhere, continues the current branch.
type linked struct {
	branches
	nodes      map[key]node
	last       map[*target]int64 // the position of the last record with an id
	id, parent string            // of the record that was read last
}

func newLinked() linked {
	return linked{branches: newBranches(), nodes: map[key]node{}, last: map[*target]int64{}}
}

func (l *linked) place() *target {
	before, ok := l.nodes[keyOf(l.parent)]
	switch {
	case l.parent == "" || !ok:
	case l.last[before.to] == before.at:
		l.current = before.to
	default:
		l.forkAt(before.to, before.at+1)
	}
	return l.current
}

func (l *linked) placed(n node) {
	if l.id != "" {
		l.nodes[keyOf(l.id)] = n
		l.last[n.to] = n.at
	}
}
