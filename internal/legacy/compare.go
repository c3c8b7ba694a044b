package legacy

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Discrepancy is a difference between a context and the legacy context that it came from.
type Discrepancy struct {
	Path   string // a JSON pointer into the legacy context, where one applies
	Reason string
}

func (d Discrepancy) String() string { return d.Path + ": " + d.Reason }

// Comparer is a [Sink] that compares what it receives with a legacy context. Objects are equal if they have the same
// members in any order; of a repeated name, the last counts. Numbers are equal if their digits are.
type Comparer struct {
	f      *File
	report func(Discrepancy)
	given  Members
	nodes  []bool // nodes received
	listed []bool // branches received
	prompt jsontext.Value
	taken  map[key]int // by key of several nodes: how many of its first nodes were received
}

// Compare returns a comparer with f that reports every discrepancy.
func (f *File) Compare(report func(Discrepancy)) *Comparer {
	return &Comparer{f: f, report: report, nodes: make([]bool, len(f.nodes)), listed: make([]bool, len(f.Branches)), taken: map[key]int{}}
}

func (c *Comparer) differ(reason string, path ...string) {
	var p jsontext.Pointer
	for _, token := range path {
		p = p.AppendToken(token)
	}
	c.report(Discrepancy{string(p), reason})
}

// Member implements [Sink].
func (c *Comparer) Member(name, value jsontext.Value) error {
	c.given = append(c.given, Member{name, value})
	return nil
}

// Prompt implements [Sink].
func (c *Comparer) Prompt(v jsontext.Value) error {
	c.prompt = v
	return nil
}

// Pool implements [Sink].
func (c *Comparer) Pool(nodes iter.Seq2[Node, error]) error {
	c.given = append(c.given, Member{Quote(NamePool), nil})
	_, err := c.Files(nodes)
	return err
}

// Files implements [Sink].
func (c *Comparer) Files(nodes iter.Seq2[Node, error]) (made bool, err error) {
	for n, err := range nodes {
		if err == nil {
			err = c.node(n)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// node compares a node with those of the same key, usually one.
func (c *Comparer) node(n Node) error {
	text, _ := Text(n.Key)
	k, _ := keyOf(text)
	from, to := c.f.run(k)
	if from == to {
		c.differ("it is missing from the legacy context", NamePool, text)
		return nil
	}
	reason, other := "duplicate", int32(-1)
	for i := from + c.taken[k]; i < to; i++ {
		at := c.f.byKey[i]
		if c.nodes[at] {
			continue
		}
		there, err := c.f.Node(at)
		if err != nil {
			return err
		}
		if there.InFile == n.InFile && bytes.Equal(there.Key, n.Key) && Equal(there.Value, n.Value) {
			c.nodes[at] = true
			if i == from+c.taken[k] && to-from > 1 {
				c.taken[k]++
			}
			return nil
		}
		if reason = "it differs"; other < 0 {
			other = at
		}
	}
	if other >= 0 {
		c.nodes[other] = true // report it once
	}
	c.differ(reason, NamePool, text)
	return nil
}

// Branches implements [Sink].
func (c *Comparer) Branches(branches iter.Seq2[ListedBranch, error]) error {
	c.given = append(c.given, Member{Quote(NameBranches), nil})
	named := map[string][]int{} // branches by name, usually one
	for i, b := range c.f.Branches {
		named[string(b.Name)] = append(named[string(b.Name)], i)
	}
	for b, err := range branches {
		if err != nil {
			return err
		}
		name, _ := Text(b.Name)
		of := named[string(b.Name)]
		if len(of) == 0 {
			c.differ("it is missing from the legacy context", NameBranches, name)
			continue
		}
		i := of[0]
		named[string(b.Name)], c.listed[i] = of[1:], true
		if err := c.branch(&c.f.Branches[i], &b, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Comparer) branch(want *Branch, got *ListedBranch, name string) error {
	c.members(want.Members, got.Members, NameBranches, name)
	at, missing, elements := 0, want.Missing, 0
	for id, err := range got.List {
		if err != nil {
			return err
		}
		elements++
		text, _ := Text(id)
		k, _ := keyOf(text)
		switch {
		case len(missing) > 0 && missing[0].At == at && Equal(missing[0].ID, id):
			missing = missing[1:]
		case at < len(want.Nodes) && id.Kind() == '"' && c.f.nodes[want.Nodes[at]].key == k:
			at++
		default:
			c.differ("another message is at "+fmt.Sprint(elements-1), NameBranches, name, NameList)
			return nil
		}
	}
	if n := len(want.Nodes) + len(want.Missing); elements != n {
		c.differ(fmt.Sprintf("%d messages instead of %d", elements, n), NameBranches, name, NameList)
	}
	return nil
}

// members compares two objects. Members without a value are compared elsewhere.
func (c *Comparer) members(want, got Members, path ...string) {
	seen, last := map[string]bool{}, got.Lasts()
	for _, m := range slices.Backward(want) {
		name, _ := Text(m.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		i, ok := last[name]
		switch {
		case !ok:
			c.differ("it is missing", append(slices.Clone(path), name)...)
		case (m.Value == nil) != (got[i].Value == nil), m.Value != nil && !Equal(m.Value, got[i].Value):
			c.differ("it has another value", append(slices.Clone(path), name)...)
		}
	}
	for _, m := range got {
		if name, _ := Text(m.Name); !seen[name] {
			c.differ("it is missing from the legacy context", append(slices.Clone(path), name)...)
		}
	}
}

// Finish reports what only the end can show: missing parts, and differences of members and of the prompt.
func (c *Comparer) Finish() error {
	c.members(c.f.Members, c.given)
	for i, there := range c.nodes {
		if there {
			continue
		}
		n, err := c.f.Node(int32(i))
		if err != nil {
			return err
		}
		name, _ := Text(n.Key)
		c.differ("it is missing", NamePool, name)
	}
	for i, there := range c.listed {
		if name, _ := Text(c.f.Branches[i].Name); !there {
			c.differ("it is missing", NameBranches, name)
		}
	}
	if (c.prompt == nil) != (c.f.Prompt == nil) || c.prompt != nil && !Equal(c.prompt, c.f.Prompt) {
		c.report(Discrepancy{PromptFile, "it differs"})
	}
	return nil
}

var _ Sink = (*Comparer)(nil)

// Equal reports whether two JSON values are equal: objects by their members (of a repeated name, the last), strings by
// their content, numbers by their digits.
func Equal(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := compacted(a)
	y, yerr := compacted(b)
	if errors.Join(err, yerr) != nil {
		return false
	}
	return bytes.Equal(x, y) || equal(x, y)
}

func equal(a, b jsontext.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case '"':
		x, xok := Text(a)
		y, yok := Text(b)
		return xok && yok && x == y && halves(a) == halves(b)
	case '{':
		x, err := lasts(a)
		y, yerr := lasts(b)
		return errors.Join(err, yerr) == nil && maps.EqualFunc(x, y, equal)
	case '[':
		x, err := elements(a)
		y, yerr := elements(b)
		return errors.Join(err, yerr) == nil && slices.EqualFunc(x, y, equal)
	}
	return bytes.Equal(a, b)
}

// halves distinguishes strings that hold half of a surrogate pair: decoded, all of those look alike.
func halves(s jsontext.Value) string {
	if text, _ := Text(s); bytes.ContainsRune([]byte(text), '\ufffd') {
		return string(s)
	}
	return ""
}

func lasts(object jsontext.Value) (map[string]jsontext.Value, error) {
	ms, err := MembersOf(object)
	out := make(map[string]jsontext.Value, len(ms))
	for _, m := range ms {
		name, _ := Text(m.Name)
		out[name] = m.Value
	}
	return out, err
}
