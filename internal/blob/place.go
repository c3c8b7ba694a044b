package blob

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrPlace is wrapped by errors about invalid pointers of attachments.
var ErrPlace = errors.New("invalid attachment pointer")

// places are the empty strings of a message that take payloads.
type places struct {
	refs  map[string]func() (Ref, error) // by RFC 6901 pointer
	found []string                       // in the order of the message
}

// at reports whether a payload belongs where the scanner's string is.
func (p *places) at(s *scanner) bool {
	if len(p.refs) == 0 || len(s.inside()) > 0 {
		return false
	}
	pointer := s.pointer()
	if p.refs[pointer] == nil || pointer == "" {
		return false
	}
	p.found = append(p.found, pointer)
	return true
}

// err returns nil if each pointer led to one empty string.
func (p *places) err() error {
	if len(p.refs) == 0 {
		return nil
	}
	times := map[string]int{}
	for _, pointer := range p.found {
		times[pointer]++
	}
	for _, pointer := range slices.Sorted(maps.Keys(p.refs)) {
		switch n := times[pointer]; {
		case n == 0:
			return fmt.Errorf("%w: %q does not point to an empty string", ErrPlace, pointer)
		case n > 1:
			return fmt.Errorf("%w: %q matches %d strings", ErrPlace, pointer, n)
		}
	}
	return nil
}

// next returns the reference for the first place without one.
func (p *places) next() (Ref, error) {
	pointer := p.found[0]
	p.found = p.found[1:]
	ref, err := p.refs[pointer]()
	if err != nil {
		return Ref{}, fmt.Errorf("attachment at %q: %w", pointer, err)
	}
	ref.spelling = 0
	return ref, nil
}
