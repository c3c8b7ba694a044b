package legacy

import (
	"bufio"
	"io"
	"math"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// scanBranches reads the branches, once the nodes are known. Lists may be large, but each element is small.
func (f *File) scanBranches() error {
	if f.branchesAt < 0 {
		return nil
	}
	r := bufio.NewReader(io.NewSectionReader(f.file, f.mark+f.branchesAt, math.MaxInt64-f.mark-f.branchesAt))
	for { // skip the colon and white space
		if c, err := r.ReadByte(); err != nil {
			return changed(err)
		} else if c == '{' {
			break
		}
	}
	_ = r.UnreadByte()
	in := &limitReader{r: r, limit: f.limit + 1<<20, zero: -1, stop: f.stop}
	d := jsontext.NewDecoder(in, message.Verbatim...)
	if _, err := d.ReadToken(); err != nil {
		return readable(err, in)
	}
	for d.PeekKind() == '"' {
		in.floor = d.InputOffset()
		raw, err := d.ReadValue()
		if err != nil {
			return readable(err, in)
		}
		b := Branch{}
		if b.Name, err = compacted(raw); err != nil {
			return err
		}
		if d.PeekKind() == '{' {
			err = f.scanBranch(d, in, &b)
		} else {
			err = damaged("branch %s is not an object", b.Name)
		}
		if err != nil {
			return readable(err, in)
		}
		if f.Branches = append(f.Branches, b); len(f.Branches) > maxBranches {
			return damaged("the branches exceed the limit of %d", maxBranches)
		}
	}
	return nil
}

func (f *File) scanBranch(d *jsontext.Decoder, in *limitReader, b *Branch) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	listed := false
	for d.PeekKind() == '"' {
		m, err := nextMember(d, in)
		if err != nil {
			return err
		}
		switch kind := d.PeekKind(); {
		case m.Is(NameList) && kind == '[':
			if listed {
				return damaged("branch %s: %q occurs twice", b.Name, NameList)
			}
			listed = true
			err = f.scanList(d, in, b)
		case m.Is(NameList) && kind != 'n':
			err = damaged("branch %s: %q is not an array", b.Name, NameList)
		default:
			m.Value, err = shallowNext(d)
		}
		if err != nil {
			return err
		}
		b.Members = append(b.Members, m)
	}
	_, err := d.ReadToken()
	return err
}

// maxBranches limits the branches, all of which metadata.json holds.
const maxBranches = 1 << 16

// maxMissing limits the elements of a list that the pool lacks: metadata.json keeps them.
const maxMissing = 1 << 16

func (f *File) scanList(d *jsontext.Decoder, in *limitReader, b *Branch) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		in.floor = d.InputOffset()
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		if text, ok := Text(v); ok {
			k, _ := keyOf(text)
			if n, ok := f.lookup(k); ok {
				b.Nodes = append(b.Nodes, n)
				continue
			}
		}
		id, err := shallow(v)
		if err != nil {
			return err
		}
		if b.Missing = append(b.Missing, Missing{len(b.Nodes), id}); len(b.Missing) > maxMissing {
			return damaged("branch %s: the missing messages exceed the limit of %d", b.Name, maxMissing)
		}
	}
	_, err := d.ReadToken()
	return err
}
