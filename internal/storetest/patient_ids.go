package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// IDs are those of branch main at some positions.
func (p *Patient) IDs(positions ...int) (ids []uuid.UUID) {
	for _, i := range positions {
		ids = append(ids, p.Want["main"][i].ID)
	}
	return ids
}

// In does something with a handle of its own.
func (p *Patient) In(do func(c *engine.Context)) {
	p.T.Helper()
	c := Must[*engine.Context](p.T)(p.Store.Context(context.Background(), p.ID))
	defer c.Close()
	do(c)
}

// Settle repairs until nothing repairable is left, which must be after the first repair.
func (p *Patient) Settle(when string) {
	p.T.Helper()
	p.Repair(checking.Options{})
	for _, f := range p.Check(true) {
		if f.Repairable || f.Severity == integrity.SeverityError {
			p.T.Errorf("%s, after a repair: %+v", when, f)
		}
	}
	if again := p.Repair(checking.Options{}); len(again) > 0 {
		p.T.Errorf("%s: a second repair did %+v", when, again)
	}
}

// VerifyIDs looks whether branches show each id once: every message of what the patient had with its content, but for
// the lost ones, whose ids are found all the same.
func (p *Patient) VerifyIDs(when string, lost []uuid.UUID) {
	p.T.Helper()
	ctx := context.Background()
	p.In(func(c *engine.Context) {
		for _, name := range []string{"main", "alt"} {
			b := Must[*engine.Branch](p.T)(c.Branch(name))
			seen := map[uuid.UUID]bool{}
			for i, m := range Load(p.T, b) {
				if seen[m.ID] {
					p.T.Errorf("%s: branch %s shows %s again at %d", when, name, m.ID, i)
				}
				seen[m.ID] = true
				if i >= len(p.Want[name]) {
					continue
				}
				body, err := m.Body(ctx)
				if w := p.Want[name][i]; m.ID != w.ID || (err != nil) != slices.Contains(lost, w.ID) || err == nil && string(body) != w.Text {
					p.T.Errorf("%s: branch %s, position %d: %s %s, %v; wanted %s %s", when, name, i, m.ID, body, err, w.ID, w.Text)
				}
				found, err := b.Message(ctx, m.ID)
				if err != nil || found.Position != m.Position || (found.Unavailable == nil) != (m.Unavailable == nil) {
					p.T.Errorf("%s: branch %s, position %d is not found by its id: %+v, %v", when, name, i, found, err)
				}
			}
		}
	})
}

// Retry appends messages of main anew under the ids they have. Each is to be there already.
func (p *Patient) Retry(when string, ids []uuid.UUID) {
	p.T.Helper()
	p.In(func(c *engine.Context) {
		for i, w := range p.Want["main"] {
			if !slices.Contains(ids, w.ID) {
				continue
			}
			at, err := c.Active().Append(context.Background(), engine.Draft{ID: w.ID, Body: json.RawMessage(w.Text)})
			if err != nil || !at.Existed || at.Position != int64(i) {
				p.T.Errorf("%s: position %d was appended anew: %+v, %v", when, i, at, err)
			}
		}
	})
}

// Garble damages messages of branch main in the segments, and removes their files: no copy is whole.
func (p *Patient) Garble(positions ...int) {
	p.T.Helper()
	for _, i := range positions {
		id := []byte(`"id":"` + p.Want["main"][i].ID.String())
		for _, path := range p.Glob("segments/*.zst") {
			p.Change(path, func(b []byte) []byte {
				if at := bytes.Index(b, id); at >= 0 {
					b[at+bytes.Index(b[at:], []byte(`"content":`))+12] ^= 1
				}
				return b
			})
		}
		p.Remove(p.Main[i])
	}
}
