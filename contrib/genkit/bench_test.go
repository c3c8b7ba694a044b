package genkit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/ai/exp/localstore"
)

// BenchmarkTurn compares the durable write of a turn's snapshot with that of Genkit's own file store, in sessions that have
// some turns already, and reading the latest snapshot.
func BenchmarkTurn(b *testing.B) {
	files, err := localstore.NewFileSessionStore[state](b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	stores := map[string]exp.SessionStore[state]{"ctxdir": genkit.NewStore[state](adaptertest.Open(b, "")), "files": files}
	for _, turns := range []int{1, 100, 1000} {
		for name, s := range stores {
			session, texts := fmt.Sprint(turns), []string{}
			turn := func() { // of 2 KB
				for range 2 {
					texts = append(texts, strings.Repeat(fmt.Sprint("message ", len(texts), " "), 80))
				}
			}
			for range turns {
				turn()
			}
			parent := save(b, s, "", at(session, "", 0, state{}, texts...)).SnapshotID
			b.Run(fmt.Sprintf("%s/%d/save", name, turns), func(b *testing.B) {
				for b.Loop() {
					turn()
					parent = save(b, s, "", at(session, parent, len(texts), state{Step: len(texts)}, texts...)).SnapshotID
				}
			})
			b.Run(fmt.Sprintf("%s/%d/latest", name, turns), func(b *testing.B) {
				for b.Loop() {
					if sn, err := s.GetLatestSnapshot(b.Context(), session); sn == nil || err != nil {
						b.Fatal(sn, err)
					}
				}
			})
		}
	}
}
