// Package peertest tests peers: each implementation of [replica.Peer] has to pass Test. It is for tests only, and may change
// with any version.
package peertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

// Test tests a peer. Each call of open returns another, empty one.
func Test(t *testing.T, open func(t *testing.T) replica.Peer) {
	for name, test := range map[string]func(*kit){
		"contexts": contexts, "branches": branches, "messages": messages, "payloads": payloads, "metadata": metadata,
		"conditions": conditions, "erase": erased, "unavailable": unavailable, "read in parts": parts, "unknown": unknown,
		"digests": digests,
	} {
		t.Run(name, func(t *testing.T) { test(&kit{t, open(t)}) })
	}
}

func lengths(all []replica.Branch) string {
	var parts []string
	for i := range all {
		parts = append(parts, fmt.Sprint(all[i].Name, " ", all[i].Len()))
	}
	return strings.Join(parts, ", ")
}

func contexts(k *kit) {
	first, a, _ := k.create("one")
	second, b, _ := k.create("two")
	store, err := k.p.Store(k.Context())
	again, err2 := k.p.Store(k.Context())
	if err != nil || err2 != nil || store == uuid.Nil || store != again {
		k.Errorf("store %s, %s: %v, %v", store, again, err, err2)
	}
	if all := k.states(nil); len(all) != 2 || all[first].Commit != a.Commit || all[second].Commit != b.Commit {
		k.Errorf("all: %+v", all)
	}
	known := map[uuid.UUID]string{first: a.Commit, second: b.Commit}
	if all := k.states(known); len(all) != 0 {
		k.Errorf("nothing changed: %+v", all)
	}
	c := k.apply(replica.Change{ID: first, Sequence: &a.Sequence, Ops: []replica.Op{{Kind: replica.OpNew, Branch: "x"}}})
	if all := k.states(known); len(all) != 1 || all[first].Commit != c.Commit || c.Commit == a.Commit {
		k.Errorf("one changed: %+v", all)
	}
	k.apply(replica.Change{ID: second, Sequence: &b.Sequence, Remove: true})
	missing := uuid.New()
	known[missing] = "1-0000000000000000"
	all := k.states(known)
	if len(all) != 3 || all[second].Commit != "" || !all[second].Removed || all[missing].Commit != "" || all[missing].Removed {
		k.Errorf("one was removed, one never there: %+v", all)
	}
}

func branches(k *kit) {
	id, r, _ := k.create("one", "two", "three")
	r = k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{
		{Kind: replica.OpRename, Branch: "main", To: "first"},
		{Kind: replica.OpFork, Branch: "alt", From: "first", N: 2},
		{Kind: replica.OpNew, Branch: "own"},
		{Kind: replica.OpAppend, Branch: "alt", Messages: []replica.Message{said("three on alt")}},
		{Kind: replica.OpRewind, Branch: "first", N: 1},
	}})
	if got := lengths(r.Branches); got != "first 1, alt 3, own 0" {
		k.Error(got)
	}
	h := k.head(id, "")
	if got := lengths(h.Branches); got != "first 1, alt 3, own 0" || h.Commit != r.Commit || h.Sequence != r.Sequence {
		k.Error(got, h.Commit, r.Commit)
	}
	alt := h.Branches[1]
	if len(alt.Lines) != 2 || alt.Lines[0].End != 2 || alt.Lines[1].End != 3 {
		k.Errorf("%+v", alt.Lines)
	}
	r = k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{{Kind: replica.OpRemove, Branch: "own"}}})
	if got := lengths(r.Branches); got != "first 1, alt 3" {
		k.Error(got)
	}
}

func messages(k *kit) {
	id, r, sent := k.create("one <&> \u2028", "two")
	line := r.Branches[0].Line()
	got := k.read(id, line, 0, 10)
	if len(got) != 2 {
		k.Fatalf("%d messages", len(got))
	}
	for i, m := range got {
		if m.ID != sent[i].ID || m.Position != int64(i) || !bytes.Contains(m.Envelope, []byte(`"n":1.50e2`)) ||
			!bytes.Contains(m.Envelope, []byte(`"stored_at":"2026-01-02T03:04:05Z"`)) {
			k.Errorf("%d: %s", i, m.Envelope)
		}
	}
	since := r.Commit
	next := said("two, better")
	next.ID = sent[1].ID
	next.Envelope = bytes.ReplaceAll(sent[1].Envelope, []byte(`"two"`), []byte(`"two, better"`))
	next.Envelope = bytes.Replace(next.Envelope, []byte("03:04:05Z"), []byte("04:04:05Z"), 1)
	r = k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{
		{Kind: replica.OpReplace, Branch: "main", Messages: []replica.Message{next}},
		{Kind: replica.OpAppend, Branch: "main", Messages: []replica.Message{said("three")}},
	}})
	if got := k.read(id, line, 1, 2); len(got) != 1 || !bytes.Contains(got[0].Envelope, []byte("two, better")) {
		k.Errorf("replaced: %+v", got)
	}
	h := k.head(id, since)
	if len(h.Changed) != 2 || !h.Continues || h.Changed[0].ID != sent[1].ID || h.Changed[1].Position != 2 {
		k.Errorf("since then: %t, %+v", h.Continues, h.Changed)
	}
	rows, err := k.p.Rows(k.Context(), []replica.Range{{ID: id, Line: line, From: 1, To: 3, Sums: true}, {ID: id, Line: line, From: 0, To: 1}})
	if err != nil || len(rows) != 2 || len(rows[0]) != 2 || len(rows[1]) != 1 {
		k.Fatalf("rows %+v, %v", rows, err)
	}
	if x := rows[0][0]; x.ID != sent[1].ID || x.Position != 1 || x.Sum == 0 || x.Gone || x.StoredAt.Hour() != 4 {
		k.Errorf("%+v", x)
	}
	if x := rows[1][0]; x.ID != sent[0].ID || x.Sum != 0 {
		k.Errorf("%+v", x)
	}
}

func payloads(k *kit) {
	text := strings.Repeat("A payload. ", 10_000)
	sum := sumOf(text)
	m := said("x")
	m.Payloads = []string{sum}
	m.Envelope = bytes.Replace(m.Envelope, []byte(`"x"`), fmt.Appendf(nil, `{"$blob":"%s","size":%d}`, sum, len(text)), 1)
	if have, err := k.p.Have(k.Context(), []string{sum}); err != nil || len(have) != 1 || have[0] {
		k.Errorf("%v, %v", have, err)
	}
	id, r, _ := k.create()
	other := replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{
		{Kind: replica.OpAppend, Branch: "main", Messages: []replica.Message{m}},
	}}
	if r := k.with(other, map[string]string{sum: "another"}); r.Err == nil {
		k.Error("another payload was taken")
	}
	r = k.with(other, map[string]string{sum: text})
	if r.Err != nil {
		k.Fatal(r.Err)
	}
	line := r.Branches[0].Line()
	if got := k.read(id, line, 0, 1); len(got) != 1 || !slices.Equal(got[0].Payloads, m.Payloads) {
		k.Errorf("%+v", got)
	}
	n := 0
	err := k.p.Get(k.Context(), []replica.PayloadOf{
		{Sum: sumOf("none"), ID: id, Line: line, Message: m.ID}, {Sum: sum, ID: id, Line: line, Message: m.ID},
	}, func(got string, size int64, r io.Reader) error {
		b, err := io.ReadAll(r)
		if n++; got != sum || size != int64(len(text)) || string(b) != text {
			k.Errorf("%s, %d bytes", got, size)
		}
		return err
	})
	if err != nil || n != 1 {
		k.Errorf("%d payloads, %v", n, err)
	}
}

func metadata(k *kit) {
	id, r, _ := k.create("one")
	m := replica.Meta{
		Title: "<title> & \u2028", Labels: map[string]string{"k": "v"}, Config: json.RawMessage(`{"model_id":"m","n":1.50e2}`),
		State: json.RawMessage(`{"x":1}`), Extra: json.RawMessage(`{"other":[1]}`), Active: "main", ParentID: uuid.New(),
		Branches: []replica.BranchMeta{{Name: "main", SystemPrompt: json.RawMessage(`"Be kind."`), State: json.RawMessage(`2`)}},
	}
	k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{{Kind: replica.OpMetadata, Meta: &m}}})
	got := k.head(id, "").Meta
	got.CreatedAt, got.UpdatedAt = m.CreatedAt, m.UpdatedAt
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", m); a != b {
		k.Errorf("%s, wanted %s", a, b)
	}
}

func conditions(k *kit) {
	id, r, _ := k.create("one")
	op := []replica.Op{{Kind: replica.OpNew, Branch: "x"}}
	old := r.Sequence - 1
	if r := k.try(replica.Change{ID: id, Sequence: &old, Ops: op}); !errors.Is(r.Err, ctxdir.ErrPosition) {
		k.Errorf("on an old state: %v", r.Err)
	}
	if r := k.try(replica.Change{ID: id, Sequence: &old, Remove: true}); !errors.Is(r.Err, ctxdir.ErrPosition) {
		k.Errorf("a removal of an old state: %v", r.Err)
	}
	bad := append(slices.Clone(op), replica.Op{Kind: replica.OpRewind, Branch: "main", N: 7})
	if r := k.try(replica.Change{ID: id, Sequence: &r.Sequence, Ops: bad}); r.Err == nil {
		k.Error("a rewind beyond the end")
	}
	if h := k.head(id, ""); h.Commit != r.Commit {
		k.Error("half a change was made")
	}
	if r := k.try(replica.Change{ID: uuid.New(), Ops: op}); !errors.Is(r.Err, ctxdir.ErrNotExist) {
		k.Errorf("no context: %v", r.Err)
	}
	if r := k.apply(replica.Change{ID: id, Create: &replica.Meta{Title: "another"}}); r.Err != nil || k.head(id, "").Meta.Title != "a title" {
		k.Error("creating it again changed it")
	}
}

func erased(k *kit) {
	id, r, sent := k.create("one", "two")
	since := r.Commit
	k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Erase: []uuid.UUID{sent[0].ID, uuid.New()}})
	line := r.Branches[0].Line()
	got := k.read(id, line, 0, 2)
	if len(got) != 2 || !got[0].Erased || got[0].Envelope != nil || got[0].ID != sent[0].ID || got[1].Erased {
		k.Errorf("%+v", got)
	}
	for _, since := range []string{since, ""} {
		h := k.head(id, since)
		found := slices.ContainsFunc(h.Changed, func(r ctxdir.Row) bool { return r.ID == sent[0].ID && r.Erased })
		if !found || h.Continues != (since != "") {
			k.Errorf("since %q: %t, %+v", since, h.Continues, h.Changed)
		}
	}
	// It stays erased, also on another line.
	h := k.head(id, "")
	k.apply(replica.Change{ID: id, Sequence: &h.Sequence, Ops: []replica.Op{
		{Kind: replica.OpNew, Branch: "x"}, {Kind: replica.OpAppend, Branch: "x", Messages: sent[:1]},
	}})
	if h = k.head(id, ""); len(h.Branches) != 2 {
		k.Fatal(lengths(h.Branches))
	}
	if got := k.read(id, h.Branches[1].Line(), 0, 1); len(got) != 1 || !got[0].Erased {
		k.Errorf("%+v", got)
	}
}

func unavailable(k *kit) {
	id, r, sent := k.create("one")
	gone, lost := replica.Message{ID: uuid.New(), Erased: true}, replica.Message{ID: uuid.New()}
	r = k.apply(replica.Change{ID: id, Sequence: &r.Sequence, Ops: []replica.Op{
		{Kind: replica.OpAppend, Branch: "main", Messages: []replica.Message{gone, lost, said("four")}},
	}})
	h := k.head(id, "")
	line := h.Branches[0].Line()
	got := k.read(id, line, 0, 4)
	if len(got) != 4 || got[0].ID != sent[0].ID || !got[1].Erased || got[1].ID != gone.ID ||
		got[2].Erased || got[2].Envelope != nil || got[2].ID != lost.ID {
		k.Fatalf("%+v", got)
	}
	m := said("three")
	m.Envelope = bytes.ReplaceAll(m.Envelope, []byte(m.ID.String()), []byte(lost.ID.String()))
	m.ID = lost.ID
	k.apply(replica.Change{ID: id, Sequence: &h.Sequence, Ops: []replica.Op{
		{Kind: replica.OpAppend, Branch: "main", Messages: []replica.Message{m}},
	}})
	if got := k.read(id, line, 0, 9); len(got) != 4 || got[2].Envelope == nil {
		k.Errorf("a lost message that comes back: %+v", got)
	}
}

func parts(k *kit) {
	var texts []string
	for i := range 20 {
		texts = append(texts, fmt.Sprint(i))
	}
	id, r, sent := k.create(texts...)
	line := r.Branches[0].Line()
	of := []replica.Range{{ID: id, Line: line, From: 2, To: 4}, {ID: id, Line: line, From: 0, To: 20}}
	one, err := k.p.Read(k.Context(), of, 0)
	if err != nil || len(one) != 1 || one[0].ID != sent[2].ID || one[0].Of != 0 {
		k.Fatalf("the first: %+v, %v", one, err)
	}
	all, err := k.p.Read(k.Context(), of, 1<<20)
	if err != nil || len(all) != 22 || all[2].Of != 1 || all[2].Position != 0 || all[21].Position != 19 {
		k.Errorf("%d messages, %v", len(all), err)
	}
	some, err := k.p.Read(k.Context(), of, 1000)
	if err != nil || len(some) < 2 || len(some) > 10 {
		k.Errorf("%d messages, %v", len(some), err)
	}
}

func unknown(k *kit) {
	if h := k.head(uuid.New(), ""); !errors.Is(h.Err, ctxdir.ErrNotExist) {
		k.Errorf("%v", h.Err)
	}
	id, _, _ := k.create("one")
	if h := k.head(id, "77-00000000000000ff"); h.Err != nil || h.Continues {
		k.Errorf("a commit that never was: %v, %t", h.Err, h.Continues)
	}
	if h := k.head(id, "no commit"); h.Err != nil || h.Continues {
		k.Errorf("no commit: %v, %t", h.Err, h.Continues)
	}
	for _, of := range []replica.Range{{ID: id, Line: uuid.New(), To: 1}, {ID: uuid.New(), Line: uuid.New(), To: 1}} {
		if _, err := k.p.Read(k.Context(), []replica.Range{of}, 1); err == nil {
			k.Errorf("read of %+v", of)
		}
		if _, err := k.p.Rows(k.Context(), []replica.Range{of}); err == nil {
			k.Errorf("rows of %+v", of)
		}
	}
}
