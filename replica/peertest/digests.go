package peertest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

func (k *kit) digests(ids ...uuid.UUID) []replica.Digest {
	k.Helper()
	all, err := k.p.Digests(k.Context(), ids)
	if err != nil || len(all) != len(ids) {
		k.Fatalf("%d digests, %v", len(all), err)
	}
	return all
}

// digests: the sum tells of every change of a branch, a message or a payload, and of nothing else.
func digests(k *kit) {
	text := strings.Repeat("a long text ", 10_000)
	sum := sumOf(text)
	long := said("long")
	long.Envelope = bytes.Replace(long.Envelope, []byte(`"long"`), fmt.Appendf(nil, `{"$blob":"%s","size":%d}`, sum, len(text)), 1)
	long.Payloads = []string{sum}
	one, two, later := said("one"), said("two"), said("later")
	fork := replica.Op{Kind: replica.OpFork, Branch: "alt", From: "main", N: 1}
	first, second := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	create := func(id uuid.UUID, ops ...replica.Op) {
		k.Helper()
		r := k.with(replica.Change{ID: id, Create: &replica.Meta{Active: "main"}, Ops: ops}, map[string]string{sum: text})
		if r.Err != nil {
			k.Fatal(r.Err)
		}
	}
	said := func(branch string, all ...replica.Message) replica.Op {
		return replica.Op{Kind: replica.OpAppend, Branch: branch, Messages: all}
	}
	create(first, said("main", one, long), fork, said("alt", two))
	create(second, said("main", one, long), replica.Op{Kind: replica.OpNew, Branch: "alt"}, said("alt", one, two))
	all := k.digests(first, uuid.New(), second)
	if all[0].Err != nil || all[2].Err != nil || all[0].Messages != 3 || !errors.Is(all[1].Err, ctxdir.ErrNotExist) {
		k.Fatalf("%+v", all)
	}
	if all[0].Sum != all[2].Sum {
		k.Error("the same, in lines of another form, has another sum")
	}
	seen := map[[32]byte]bool{all[0].Sum: true}
	for _, ops := range [][]replica.Op{
		{{Kind: replica.OpRename, Branch: "alt", To: "other"}}, {{Kind: replica.OpNew, Branch: "empty"}},
		{{Kind: replica.OpRewind, Branch: "main", N: 1}}, {said("main", later)},
	} {
		r := k.apply(replica.Change{ID: first, Ops: ops})
		d := k.digests(first)[0]
		if d.Err != nil || seen[d.Sum] || d.Sequence != r.Sequence {
			k.Errorf("%+v: %+v", ops, d)
		}
		seen[d.Sum] = true
	}
	k.apply(replica.Change{ID: first, Erase: []uuid.UUID{later.ID}})
	if d := k.digests(first)[0]; d.Err != nil || seen[d.Sum] {
		k.Errorf("erased: %+v", d)
	}
	lost := replica.Message{ID: uuid.Must(uuid.NewV7())}
	k.apply(replica.Change{ID: second, Ops: []replica.Op{said("main", lost)}})
	if d := k.digests(second)[0]; !errors.Is(d.Err, ctxdir.ErrDamaged) {
		k.Errorf("lost: %+v", d)
	}
}
