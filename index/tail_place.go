package index

import (
	"cmp"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Metadata returns the newest metadata at the tail's place, nil for none. It must not be changed.
func (t *Tail) Metadata() *ctxfolder.Metadata { return t.m }

// Log returns the name of the log to which the next record goes, as far as is known; empty without one.
func (t *Tail) Log() (name string, err error) {
	if t.log == nil {
		return t.ix.NewestLog()
	}
	return cmp.Or(t.log.Next(), t.log.Name()), nil
}
