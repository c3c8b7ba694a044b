package peertest

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

// kit is a peer with the test of it.
type kit struct {
	*testing.T
	p replica.Peer
}

func (k *kit) apply(c replica.Change) replica.Result {
	k.Helper()
	r := k.try(c)
	if r.Err != nil {
		k.Fatal(r.Err)
	}
	return r
}

func (k *kit) try(c replica.Change) replica.Result { return k.with(c, nil) }

func (k *kit) with(c replica.Change, payloads map[string]string) replica.Result {
	k.Helper()
	all, err := k.p.Apply(k.Context(), []replica.Change{c}, func(sum string) (io.ReadCloser, int64, error) {
		text, ok := payloads[sum]
		if !ok {
			return nil, 0, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	})
	if err != nil || len(all) != 1 {
		k.Fatalf("%d results, %v", len(all), err)
	}
	return all[0]
}

func (k *kit) head(id uuid.UUID, since string) replica.Head {
	k.Helper()
	all, err := k.p.Heads(k.Context(), []replica.HeadRequest{{ID: id, Since: since}})
	if err != nil || len(all) != 1 {
		k.Fatalf("%d heads, %v", len(all), err)
	}
	return all[0]
}

func (k *kit) read(id, line uuid.UUID, from, to int64) []replica.Message {
	k.Helper()
	all, err := k.p.Read(k.Context(), []replica.Range{{ID: id, Line: line, From: from, To: to}}, 1<<20)
	if err != nil {
		k.Fatal(err)
	}
	return all
}

func (k *kit) states(known map[uuid.UUID]string) map[uuid.UUID]replica.State {
	k.Helper()
	all, err := k.p.Contexts(k.Context(), known)
	if err != nil {
		k.Fatal(err)
	}
	by := map[uuid.UUID]replica.State{}
	for _, s := range all {
		by[s.ID] = s
	}
	return by
}

// said returns a message with a text, as another store has it.
func said(text string) replica.Message {
	id := uuid.Must(uuid.NewV7())
	body, _ := json.Marshal(text)
	return replica.Message{ID: id, Envelope: fmt.Appendf(nil,
		`{"ctxdir":"message/1","id":"%s","line":"%s","position":0,"prev":null,"stored_at":"2026-01-02T03:04:05Z","role":"user",`+
			`"message":{"role":"user","content":%s,"n":1.50e2}}`, id, id, body)}
}

// create makes a context with messages on main.
func (k *kit) create(texts ...string) (uuid.UUID, replica.Result, []replica.Message) {
	k.Helper()
	id := uuid.Must(uuid.NewV7())
	var all []replica.Message
	for _, text := range texts {
		all = append(all, said(text))
	}
	r := k.apply(replica.Change{ID: id, Create: &replica.Meta{Title: "a title", Active: "main"}, Ops: []replica.Op{
		{Kind: replica.OpAppend, Branch: "main", Messages: all},
	}})
	return id, r, all
}
