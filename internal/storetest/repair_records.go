package storetest

import (
	"context"
	"path/filepath"
)

// Journal changes the journal that has the messages.
func (p *Patient) Journal(f func(b []byte) []byte) {
	p.Change(filepath.Join(p.Dir, "journal-1.jsonl"), f)
}

// Readable counts the messages of main that can be had whole.
func (p *Patient) Readable() (n int) {
	p.T.Helper()
	c, err := p.Store.Context(context.Background(), p.ID)
	if err != nil {
		return 0
	}
	defer c.Close()
	for _, b := range p.Read(c)["main"] {
		if b.Text != "" {
			n++
		}
	}
	return n
}
