package listing

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
)

// Forgotten returns the contexts that a list would have to read again.
func (l *Lister) Forgotten(ids []uuid.UUID) (forgotten []uuid.UUID) {
	var x examination
	l.read(&x)
	for _, id := range ids {
		if !slices.ContainsFunc(x.known, func(r *cachedSummary) bool { return r.id == id && r.current(l.s) != nil }) {
			forgotten = append(forgotten, id)
		}
	}
	return forgotten
}

// ForgetCheck makes the next list examine all files.
func (l *Lister) ForgetCheck() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head.checked = 0
}

// Holds reports whether a text is in a row that the Lister keeps in memory.
func (l *Lister) Holds(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.known, func(r *cachedSummary) bool { return bytes.Contains(r.line, []byte(text)) })
}
