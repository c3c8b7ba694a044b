package genkit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/ai/exp/localstore"
)

// TestModel: after random saves, all snapshots are those of Genkit's store in memory, and so is the latest one.
func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			s, model := genkit.NewStore[state](adaptertest.Open(t, "")), localstore.NewInMemorySessionStore[state]()
			var ids []string
			histories := map[string][]string{}
			for step := range 60 {
				id, second := fmt.Sprint("s", len(ids)), r.IntN(40)
				var texts []string
				parent := ""
				if len(ids) > 0 && r.IntN(8) > 0 {
					parent = ids[max(r.IntN(len(ids)), r.IntN(len(ids)))]
					texts = append(texts, histories[parent]...)
				}
				if len(ids) > 0 && r.IntN(3) == 0 { // a rewrite
					id = ids[r.IntN(len(ids))]
					was, err := model.GetSnapshot(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					parent, second = was.ParentID, was.CreatedAt.Second()
				} else {
					ids = append(ids, id)
				}
				if r.IntN(4) == 0 {
					texts = texts[:r.IntN(len(texts)+1)]
				}
				for range r.IntN(3) {
					texts = append(texts, fmt.Sprint(step, " ", len(texts)))
				}
				next := at("x", parent, second, state{Step: step}, texts...)
				if r.IntN(5) == 0 {
					next.State, next.Status = nil, exp.SnapshotStatusPending
				}
				histories[id] = texts
				save(t, s, id, next)
				save(t, model, id, next)
				if compare(t, s, model, ids[len(ids)-1:]); step%10 == 9 {
					compare(t, s, model, ids)
				}
			}
		})
	}
}

func compare(t *testing.T, s, model exp.SessionStore[state], ids []string) {
	t.Helper()
	text := func(sn *snapshot, err error) string {
		body, other := json.Marshal(sn)
		return fmt.Sprintf("%s %v %v", body, err, other)
	}
	for _, id := range ids {
		if got, want := text(s.GetSnapshot(t.Context(), id)), text(model.GetSnapshot(t.Context(), id)); got != want {
			t.Fatalf("snapshot %s: %s, not %s", id, got, want)
		}
	}
	if got, want := text(s.GetLatestSnapshot(t.Context(), "x")), text(model.GetLatestSnapshot(t.Context(), "x")); got != want {
		t.Fatalf("latest: %s, not %s", got, want)
	}
}
