package main

import "github.com/ctxdir/ctxdir"

type appendedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Branch   string `json:"branch"`
	ID       string `json:"id"`
	Position int64  `json:"position"`
	Existed  bool   `json:"existed,omitempty"` // it was stored before, with equal content, or its message was lost
}

func (a *app) printAppended(c *ctxdir.Context, b *ctxdir.Branch, at ctxdir.AppendResult) error {
	r := appendedRecord{"appended", c.ID().String(), b.Name(), at.ID.String(), at.Position, at.Existed}
	return a.result(r, "%s", at.ID)
}

// expect returns the condition that an append gets a position, none if it is negative.
func expect(position int64) (o ctxdir.WriteOptions) {
	if position >= 0 {
		o.Position = &position
	}
	return o
}
