package main

import (
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// shortIDs are the shortest beginnings of ids that no other id has: what lists show, and people type.
type shortIDs map[uuid.UUID]string

// minShortID is the least length of a beginning, so that one is likely to stay unique.
const minShortID = 8

func shortIDsOf(ids []uuid.UUID) shortIDs {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	short := shortIDs{}
	for i, text := range texts {
		short[uuid.MustParse(text)] = shortID(texts, i)
	}
	return short
}

// shortID is the short form of an id among sorted ones.
func shortID(sorted []string, i int) string {
	text, n := sorted[i], minShortID
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(sorted) {
			n = max(n, common(text, sorted[j])+1)
		}
	}
	n = min(n, len(text))
	if text[n-1] == '-' {
		n++
	}
	return text[:n]
}

// common is the length of the beginning that two texts share.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// shortIDsIn are those of the contexts of a store. It reads the names in the store's folder, no context.
func shortIDsIn(s *ctxdir.Store) shortIDs {
	var all []uuid.UUID
	for id, err := range s.IDs() {
		if err != nil {
			break // the ids are longer than they need be, or not unique
		}
		all = append(all, id)
	}
	return shortIDsOf(all)
}

// of is the short form of an id, or the whole id of a context that is not there.
func (s shortIDs) of(id uuid.UUID) string {
	if short, ok := s[id]; ok {
		return short
	}
	return id.String()
}

// endOf is the last group of digits of an id. It distinguishes items of the trash better than the beginning, which is the
// time of their removal: one operation removes many.
func endOf(id uuid.UUID) string { return id.String()[24:] }

// growingIDs are the short forms of the ids of a store that gets new contexts.
type growingIDs struct{ all []string } // sorted

// newGrowingIDs begins with the ids that a store has; nil is a store that does not exist yet.
func newGrowingIDs(s *ctxdir.Store) *growingIDs {
	g := &growingIDs{}
	if s == nil {
		return g
	}
	for id, err := range s.IDs() {
		if err != nil {
			break // as in shortIDsIn
		}
		g.all = append(g.all, id.String())
	}
	slices.Sort(g.all)
	return g
}

// of is the short form of an id among those that the store has had so far, which a context with a similar id that comes
// later may make ambiguous.
func (g *growingIDs) of(id uuid.UUID) string {
	text := id.String()
	i, found := slices.BinarySearch(g.all, text)
	if !found {
		g.all = slices.Insert(g.all, i, text)
	}
	return shortID(g.all, i)
}
